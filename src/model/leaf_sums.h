/* SPDX-License-Identifier: MIT */
/* leaf_sums.h - gradients of sequences in slices (slices.h), each slice being a leaf of a
 * binary tree (branches.h), then of the processes that have the other slices (tree_sum.h).
 *
 * Slices go through a layer one after the other, so that the tree is walked for some tensors
 * at a time: those of a span of the array, from its end to its beginning. */
#ifndef TN_LEAF_SUMS_H
#define TN_LEAF_SUMS_H

#include "comm/branches.h"
#include "comm/tree_sum.h"
#include "model/weights.h"

struct tn_span {
    const float *from, *to; /* as pointers of a leaf's weights */
};

struct tn_leaf_sums {
    struct tn_branches branches; /* all but sums is set by the caller; floats: of the model */
    struct tn_tree_sum across;   /* likewise, comm, host, bf16 and count */
    struct tn_weights weights[TN_TREE_DEPTH]; /* carved from the sums */
};

void tn_leaf_sums_lay_out(struct tn_leaf_sums *sums, const struct tn_arch *arch,
                          struct tn_arena *arena);
void tn_leaf_sums_carve(struct tn_leaf_sums *sums, const struct tn_arch *arch);

/* Gradients begin; and are summed over all processes: tn_leaf_sums_total(). */
void tn_leaf_sums_begin(struct tn_leaf_sums *sums);
tarn_status tn_leaf_sums_finish(struct tn_leaf_sums *sums, tarn_error *err);

static inline float *tn_leaf_sums_total(const struct tn_leaf_sums *sums)
{
    return sums->branches.sums[0];
}

/* All own slices go through some tensors: each takes a leaf, clears it where it adds to it, and
 * ends it. When all have, gradients from there on are complete, if so they are. */
void tn_leaf_sums_walk(struct tn_leaf_sums *sums);
const struct tn_weights *tn_leaf_sums_leaf(const struct tn_leaf_sums *sums);
void tn_leaf_sums_clear(const struct tn_leaf_sums *sums, struct tn_span span);
void tn_leaf_sums_add(const struct tn_leaf_sums *sums, struct tn_span span);
void tn_leaf_sums_end_leaf(struct tn_leaf_sums *sums);
void tn_leaf_sums_complete(struct tn_leaf_sums *sums, const float *from);

#endif
