/* SPDX-License-Identifier: MIT */
/* gradient_sums.h - gradients of micro-batches, or of slices of sequences (slices.h), each a
 * leaf of a binary tree: summed in this process (branches.h), then over the processes that have
 * the others (tree_sum.h). The tree, and with it every bit, is the same for any number of
 * processes.
 *
 * Slices go through a layer one after the other, so that their tree is walked for some tensors
 * at a time: those of a span of the array, from its end to its beginning. */
#ifndef TN_GRADIENT_SUMS_H
#define TN_GRADIENT_SUMS_H

#include "comm/branches.h"
#include "comm/tree_sum.h"
#include "model/weights.h"

struct tn_span {
    const float *from, *to; /* as pointers of a leaf's weights */
};

struct tn_gradient_sums {
    struct tn_branches branches; /* its first sum becomes that of all */
    struct tn_tree_sum across;
    struct tn_weights weights[TN_TREE_DEPTH]; /* carved from the sums */
};

/* Leaves of this process, a power of two, of so many floats. */
void tn_gradient_sums_init(struct tn_gradient_sums *sums, size_t leaves, size_t floats,
                           bool bf16, const tarn_comm *comm, const struct tn_host *host);
void tn_gradient_sums_lay_out(struct tn_gradient_sums *sums, const struct tn_arch *arch,
                              struct tn_arena *arena);

/* Gradients begin; the next leaf, as weights; gradients from there on are complete, if so they
 * are, and other processes may have them; all are summed over all processes. What one process
 * could not compute is whatever it has: all leave with the same failure. */
void tn_gradient_sums_begin(struct tn_gradient_sums *sums);
const struct tn_weights *tn_gradient_sums_leaf(const struct tn_gradient_sums *sums);
void tn_gradient_sums_complete(struct tn_gradient_sums *sums, const float *from);
tarn_status tn_gradient_sums_finish(struct tn_gradient_sums *sums, tarn_error *err);

/* ---- Leaf by leaf ------------------------------------------------------- */

/* A leaf begins as zeros and ends. Of the last one, gradients from there on may be complete
 * earlier. */
void tn_gradient_sums_begin_leaf(struct tn_gradient_sums *sums);
bool tn_gradient_sums_is_last(const struct tn_gradient_sums *sums);
void tn_gradient_sums_complete_last(struct tn_gradient_sums *sums, const float *from);
void tn_gradient_sums_end_leaf(struct tn_gradient_sums *sums);

/* ---- Span by span ------------------------------------------------------- */

/* After tn_branches_begin() all own slices go through some tensors: each takes a leaf, clears
 * it where it adds to it, adds it to the sums and ends it with tn_branches_end_leaf(). */
void tn_gradient_sums_clear(const struct tn_gradient_sums *sums, struct tn_span span);
void tn_gradient_sums_add(const struct tn_gradient_sums *sums, struct tn_span span);

#endif
