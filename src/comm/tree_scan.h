/* SPDX-License-Identifier: MIT */
/* tree_scan.h - for each of a row of arrays, the leaves, the sum of all before it, or of all
 * behind it. Each process has as many leaves, a power of two, in the order of the ranks.
 *
 * Sums are those of the branches of a binary tree (tree_sum.h), nearest first: before leaf 7
 * stand 6, then 4 + 5, then (0 + 1) + (2 + 3). A process sends the sum of its own leaves to all
 * others and nothing else, and every bit is the same for any number of processes.
 *
 * Of states that decay, what is summed here is what positions add to them; the transition of a
 * branch would be its second half, and join() in tree_scan.c the composition of two. */
#ifndef TN_TREE_SCAN_H
#define TN_TREE_SCAN_H

#include "comm/transfer.h"
#include "kernel/host.h"

enum { TN_SCAN_LEVELS = 32 };

struct tn_tree_scan {
    const tarn_comm *comm; /* NULL: one process has all leaves */
    const struct tn_host *host;
    size_t own, all;               /* leaves of this process, and of all */
    size_t own_level, top_level;   /* at which these are one branch */
    size_t floats;                 /* of a leaf */
    float *levels[TN_SCAN_LEVELS]; /* sums of 1, 2, 4, ... leaves: of this process up to `own`,
                                      then of all, the processes' first */
    bool behind;                   /* of the scan under way */
    size_t sent;                   /* bytes, since it was laid out */
};

/* comm, host, own and floats are set. */
void tn_tree_scan_lay_out(struct tn_tree_scan *scan, struct tn_arena *arena);

/* The place of each own leaf i, to be filled; and all are there: `behind` is set, too. */
float *tn_tree_scan_leaf(const struct tn_tree_scan *scan, size_t i);
tarn_status tn_tree_scan_exchange(struct tn_tree_scan *scan, tarn_error *err);

/* The sum of all leaves. */
const float *tn_tree_scan_total(const struct tn_tree_scan *scan);

/* sum += what is before own leaf i, or behind it. */
void tn_tree_scan_add(const struct tn_tree_scan *scan, float *sum, size_t i);

#endif
