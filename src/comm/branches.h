/* SPDX-License-Identifier: MIT */
/* branches.h - the sum of arrays that come one after the other, as a binary tree (tree_sum.h).
 * Branches that wait for their neighbours are kept: as many as the number of arrays so far has
 * ones in binary. */
#ifndef TN_BRANCHES_H
#define TN_BRANCHES_H

#include "kernel/host.h"

enum { TN_TREE_DEPTH = 21 }; /* of up to 2^20 leaves */

struct tn_branches {
    const struct tn_host *host;
    bool bf16;                  /* leaves and sums are rounded to bf16 */
    size_t leaves;              /* a power of two */
    size_t floats;              /* of a leaf */
    float *sums[TN_TREE_DEPTH]; /* of branches that wait, the next leaf behind the last of them;
                                   the first becomes the sum of all */
    size_t done, waiting;       /* leaves, branches */
};

bool tn_is_power_of_two(size_t n);

void tn_branches_lay_out(struct tn_branches *branches, struct tn_arena *arena);

/* The sum begins; the next leaf, for the caller to fill; floats of it that are filled are added
 * to the branches that end with it; and those of all of it were. */
void tn_branches_begin(struct tn_branches *branches);
float *tn_branches_leaf(const struct tn_branches *branches);
void tn_branches_add(const struct tn_branches *branches, size_t from, size_t count);
void tn_branches_end_leaf(struct tn_branches *branches);

#endif
