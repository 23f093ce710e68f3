/* SPDX-License-Identifier: MIT */
/* nearest.h - which of some names someone meant who misspelled one. */
#ifndef TN_NEAREST_H
#define TN_NEAREST_H

#include "base/base.h"

/* Zeros but for the word and its length; then the names are tried one after the other. */
struct tn_nearest {
    const char *word;
    size_t length;
    const char *name; /* the nearest so far; NULL: none is near */
    size_t distance;
};

/* A name is near if it takes at most two letters inserted, deleted, replaced or swapped with
 * their neighbour, and fewer than half of its own. Of equally near ones the first stays. */
void tn_nearest_try(struct tn_nearest *nearest, const char *name);

#endif
