/* SPDX-License-Identifier: MIT */
/* edit_distance.c - d(i, j), the edits of the first i wanted symbols into the first j found
 * ones:
 *
 *     d(i, j) = least of  d(i-1, j-1) + [w_i != f_j],   d(i, j-1) + 1 inserted,
 *                         d(i-1, j) + 1 deleted
 *
 * least by the sum, then by insertions and deletions. One row is kept; its scratch is n + 1
 * edits. */
#include "data/edit_distance.h"

size_t tn_edit_scratch_size(size_t found)
{
    struct tn_arena arena = tn_arena_over(NULL);

    tn_arena_alloc(&arena, found < SIZE_MAX ? found + 1 : found, sizeof(struct tn_edits));
    return tn_arena_bytes(&arena);
}

static struct tn_edits lesser(struct tn_edits a, struct tn_edits b)
{
    const size_t sum_a = tn_edits_sum(a), sum_b = tn_edits_sum(b);

    if (sum_a != sum_b)
        return sum_a < sum_b ? a : b;
    return b.substitutions > a.substitutions ? b : a;
}

/* The row of one more wanted symbol, in the place of the one before. */
static void next_row(struct tn_edits *row, int32_t wanted, const int32_t *found, size_t count)
{
    struct tn_edits corner = row[0];

    row[0].deletions++;
    for (size_t j = 1; j <= count; j++) {
        struct tn_edits substituted = corner, inserted = row[j - 1], deleted = row[j];

        corner = row[j];
        substituted.substitutions += wanted != found[j - 1];
        inserted.insertions++;
        deleted.deletions++;
        row[j] = lesser(substituted, lesser(inserted, deleted));
    }
}

struct tn_edits tn_edit_distance(const int32_t *wanted, size_t wanted_count,
                                 const int32_t *found, size_t found_count, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct tn_edits *const row = tn_arena_alloc(&arena, found_count + 1, sizeof *row);

    for (size_t j = 0; j <= found_count; j++)
        row[j] = (struct tn_edits){.insertions = j};
    for (size_t i = 0; i < wanted_count; i++)
        next_row(row, wanted[i], found, found_count);
    return row[found_count];
}
