/* SPDX-License-Identifier: MIT */
#include "model/leaf_sums.h"

#include <string.h>

void tn_leaf_sums_lay_out(struct tn_leaf_sums *sums, const struct tn_arch *arch,
                          struct tn_arena *arena)
{
    tn_branches_lay_out(&sums->branches, arena);
    tn_tree_sum_lay_out(&sums->across, arena);
    for (size_t i = 0; i == 0 || (size_t)1 << (i - 1) < sums->branches.leaves; i++)
        sums->weights[i].blocks =
            tn_arena_alloc(arena, arch->config.layers, sizeof *sums->weights[i].blocks);
}

void tn_leaf_sums_carve(struct tn_leaf_sums *sums, const struct tn_arch *arch)
{
    for (size_t i = 0; i == 0 || (size_t)1 << (i - 1) < sums->branches.leaves; i++)
        tn_weights_carve(&sums->weights[i], arch, sums->branches.sums[i]);
}

void tn_leaf_sums_begin(struct tn_leaf_sums *sums)
{
    tn_branches_begin(&sums->branches);
    tn_tree_sum_begin(&sums->across, sums->branches.sums[0]);
}

tarn_status tn_leaf_sums_finish(struct tn_leaf_sums *sums, tarn_error *err)
{
    tn_leaf_sums_complete(sums, sums->branches.sums[0]);
    return tn_tree_sum_finish(&sums->across, err);
}

void tn_leaf_sums_walk(struct tn_leaf_sums *sums)
{
    tn_branches_begin(&sums->branches);
}

const struct tn_weights *tn_leaf_sums_leaf(const struct tn_leaf_sums *sums)
{
    return &sums->weights[sums->branches.waiting];
}

void tn_leaf_sums_clear(const struct tn_leaf_sums *sums, struct tn_span span)
{
    float *const leaf = tn_branches_leaf(&sums->branches);

    memset(leaf + (span.from - leaf), 0, (size_t)(span.to - span.from) * sizeof *leaf);
}

void tn_leaf_sums_add(const struct tn_leaf_sums *sums, struct tn_span span)
{
    const float *const leaf = tn_branches_leaf(&sums->branches);

    tn_branches_add(&sums->branches, (size_t)(span.from - leaf), (size_t)(span.to - span.from));
}

void tn_leaf_sums_end_leaf(struct tn_leaf_sums *sums)
{
    tn_branches_end_leaf(&sums->branches);
}

void tn_leaf_sums_complete(struct tn_leaf_sums *sums, const float *from)
{
    const size_t final = (size_t)(from - sums->branches.sums[0]);
    size_t at, count;

    while (tn_tree_sum_next(&sums->across, final, &at, &count))
        tn_tree_sum_start(&sums->across, at, count);
    tn_tree_sum_advance(&sums->across);
}
