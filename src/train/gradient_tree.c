/* SPDX-License-Identifier: MIT */
#include "train/gradient_tree.h"

#include <string.h>

static tarn_status check(size_t leaves, size_t batch, const tarn_comm *comm, tarn_error *err)
{
    const size_t size = tn_comm_size(comm);

    if (!tn_is_power_of_two(leaves) || leaves >= (size_t)1 << TN_TREE_DEPTH)
        return tn_fail(err, TARN_EINVAL, "micro_batches is %zu; it must be a power of two",
                       leaves);
    if (batch % leaves != 0)
        return tn_fail(err, TARN_EINVAL,
                       "micro_batches is %zu; it must divide batch, which is %zu", leaves,
                       batch);
    if (leaves % size != 0)
        return tn_fail(err, TARN_EINVAL,
                       "%zu ranks cannot share %zu micro-batches evenly; run a number of ranks "
                       "that divides micro_batches, or set that to a power of two that divides "
                       "batch and is a multiple of the ranks",
                       size, leaves);
    return tn_comm_check(comm, err);
}

tarn_status tn_gradient_tree_init(struct tn_gradient_tree *tree, size_t leaves, size_t batch,
                                  const tarn_comm *comm, tarn_error *err)
{
    const size_t own = leaves / tn_comm_size(comm);

    tree->leaves = leaves;
    tree->own = own;
    tree->first = own * tn_comm_rank(comm);
    tree->sum.comm = comm;
    tree->branches = (struct tn_branches){.host = tree->sum.host,
                                          .bf16 = tree->sum.bf16,
                                          .leaves = own,
                                          .floats = tree->sum.count};
    return check(leaves, batch, comm, err);
}

void tn_gradient_tree_lay_out(struct tn_gradient_tree *tree, struct tn_arena *arena)
{
    tn_branches_lay_out(&tree->branches, arena);
    tn_tree_sum_lay_out(&tree->sum, arena);
}

void tn_gradient_tree_begin(struct tn_gradient_tree *tree)
{
    tn_branches_begin(&tree->branches);
    tn_tree_sum_begin(&tree->sum, tree->branches.sums[0]);
}

float *tn_gradient_tree_leaf(struct tn_gradient_tree *tree)
{
    float *const leaf = tn_branches_leaf(&tree->branches);

    memset(leaf, 0, tree->sum.count * sizeof *leaf);
    return leaf;
}

bool tn_gradient_tree_is_last(const struct tn_gradient_tree *tree)
{
    return tree->branches.done + 1 == tree->own;
}

void tn_gradient_tree_complete(struct tn_gradient_tree *tree, size_t final)
{
    size_t from, count;

    while (tn_tree_sum_next(&tree->sum, final, &from, &count)) {
        tn_branches_add(&tree->branches, from, count);
        tn_tree_sum_start(&tree->sum, from, count);
    }
    tn_tree_sum_advance(&tree->sum);
}

void tn_gradient_tree_end_leaf(struct tn_gradient_tree *tree)
{
    if (tn_gradient_tree_is_last(tree))
        tn_gradient_tree_complete(tree, 0);
    else
        tn_branches_add(&tree->branches, 0, tree->sum.count);
    tn_branches_end_leaf(&tree->branches);
}

tarn_status tn_gradient_tree_finish(struct tn_gradient_tree *tree, tarn_error *err)
{
    size_t from, count;

    while (tn_tree_sum_next(&tree->sum, 0, &from, &count))
        tn_tree_sum_start(&tree->sum, from, count);
    return tn_tree_sum_finish(&tree->sum, err);
}
