/* SPDX-License-Identifier: MIT */
/* edit_distance.h - how far symbols that were found are from those that were wanted.
 *
 * The fewest substitutions, insertions and deletions that make the wanted symbols into the
 * found ones (Levenshtein 1965); of several ways that are equally short, one with the most
 * substitutions. */
#ifndef TN_EDIT_DISTANCE_H
#define TN_EDIT_DISTANCE_H

#include "base/base.h"

struct tn_edits {
    size_t substitutions, insertions, deletions;
};

/* Bytes of scratch, of any alignment, for `found` symbols that were found. */
size_t tn_edit_scratch_size(size_t found);

struct tn_edits tn_edit_distance(const int32_t *wanted, size_t wanted_count,
                                 const int32_t *found, size_t found_count, void *scratch);

static inline size_t tn_edits_sum(struct tn_edits edits)
{
    return edits.substitutions + edits.insertions + edits.deletions;
}

#endif
