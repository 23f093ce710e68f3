/* SPDX-License-Identifier: MIT */
/* gradient_tree.h - the gradients of an update: a batch is cut into micro-batches, whose
 * gradients are summed as a binary tree (tree_sum.h). Each process computes a branch of it; the
 * tree, and with it every bit of the sum, is the same for any number of processes. */
#ifndef TN_GRADIENT_TREE_H
#define TN_GRADIENT_TREE_H

#include "comm/branches.h"
#include "comm/tree_sum.h"

struct tn_gradient_tree {
    size_t leaves;               /* micro-batches of a batch, a power of two */
    size_t first, own;           /* those of this process, likewise */
    struct tn_branches branches; /* of micro-batches; the first becomes the sum of all */
    struct tn_tree_sum sum;      /* of processes */
};

/* Refuses micro-batches that a batch cannot be cut into, or the processes not share. sum.host,
 * sum.bf16 and sum.count were set. */
tarn_status tn_gradient_tree_init(struct tn_gradient_tree *tree, size_t leaves, size_t batch,
                                  const tarn_comm *comm, tarn_error *err);

void tn_gradient_tree_lay_out(struct tn_gradient_tree *tree, struct tn_arena *arena);

/* An update begins; its next leaf, zeros that gradients are to be added to; and that is done.
 * Of the last one, floats from number `final` on may be complete earlier. */
void tn_gradient_tree_begin(struct tn_gradient_tree *tree);
float *tn_gradient_tree_leaf(struct tn_gradient_tree *tree);
bool tn_gradient_tree_is_last(const struct tn_gradient_tree *tree);
void tn_gradient_tree_complete(struct tn_gradient_tree *tree, size_t final);
void tn_gradient_tree_end_leaf(struct tn_gradient_tree *tree);

/* What one process could not compute is whatever it has: all leave with the same failure. */
tarn_status tn_gradient_tree_finish(struct tn_gradient_tree *tree, tarn_error *err);

#endif
