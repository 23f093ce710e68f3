/* SPDX-License-Identifier: MIT */
#include "train/gradient_tree.h"

#include <string.h>

static bool is_power_of_two(size_t n)
{
    return n > 0 && (n & (n - 1)) == 0;
}

static tarn_status check(size_t leaves, size_t batch, const tarn_comm *comm, tarn_error *err)
{
    const size_t size = tn_comm_size(comm);

    if (!is_power_of_two(leaves) || leaves >= (size_t)1 << TN_TREE_DEPTH)
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
    return check(leaves, batch, comm, err);
}

/* Branches that wait at most: one of each size, and the leaf under way. */
static size_t depth_of(const struct tn_gradient_tree *tree)
{
    size_t depth = 1;

    while ((size_t)1 << (depth - 1) < tree->own)
        depth++;
    return depth;
}

void tn_gradient_tree_lay_out(struct tn_gradient_tree *tree, struct tn_arena *arena)
{
    for (size_t i = 0; i < depth_of(tree); i++)
        tree->sums[i] = tn_arena_floats(arena, tree->sum.count);
    tn_tree_sum_lay_out(&tree->sum, arena);
}

void tn_gradient_tree_begin(struct tn_gradient_tree *tree)
{
    tree->done = tree->waiting = 0;
    tn_tree_sum_begin(&tree->sum, tree->sums[0]);
}

float *tn_gradient_tree_leaf(struct tn_gradient_tree *tree)
{
    float *const leaf = tree->sums[tree->waiting];

    memset(leaf, 0, tree->sum.count * sizeof *leaf);
    return leaf;
}

bool tn_gradient_tree_is_last(const struct tn_gradient_tree *tree)
{
    return tree->done + 1 == tree->own;
}

/* How many branches end with the leaf under way: its number ends with as many ones in binary.
 */
static size_t branches_that_end(const struct tn_gradient_tree *tree)
{
    size_t count = 0;

    while (tree->done >> count & 1)
        count++;
    return count;
}

/* Of part of the array. */
static void add_branches(const struct tn_gradient_tree *tree, size_t from, size_t count)
{
    const struct tn_tree_sum *const sum = &tree->sum;
    const size_t top = tree->waiting;

    tn_tree_add(sum->host, tree->sums[top] + from, NULL, count, sum->bf16);
    for (size_t i = 0; i < branches_that_end(tree); i++)
        tn_tree_add(sum->host, tree->sums[top - i - 1] + from, tree->sums[top - i] + from,
                    count, sum->bf16);
}

void tn_gradient_tree_complete(struct tn_gradient_tree *tree, size_t final)
{
    size_t from, count;

    while (tn_tree_sum_next(&tree->sum, final, &from, &count)) {
        add_branches(tree, from, count);
        tn_tree_sum_start(&tree->sum, from, count);
    }
    tn_tree_sum_advance(&tree->sum);
}

void tn_gradient_tree_end_leaf(struct tn_gradient_tree *tree)
{
    if (tn_gradient_tree_is_last(tree))
        tn_gradient_tree_complete(tree, 0);
    else
        add_branches(tree, 0, tree->sum.count);
    tree->waiting = tree->waiting + 1 - branches_that_end(tree);
    tree->done++;
}

tarn_status tn_gradient_tree_finish(struct tn_gradient_tree *tree, tarn_error *err)
{
    size_t from, count;

    while (tn_tree_sum_next(&tree->sum, 0, &from, &count))
        tn_tree_sum_start(&tree->sum, from, count);
    return tn_tree_sum_finish(&tree->sum, err);
}
