/* SPDX-License-Identifier: MIT */
#include "model/gradient_sums.h"

#include <string.h>

void tn_gradient_sums_init(struct tn_gradient_sums *sums, size_t leaves, size_t floats,
                           bool bf16, const tarn_comm *comm, const struct tn_host *host)
{
    sums->branches =
        (struct tn_branches){.host = host, .bf16 = bf16, .leaves = leaves, .floats = floats};
    sums->across =
        (struct tn_tree_sum){.comm = comm, .host = host, .bf16 = bf16, .count = floats};
}

void tn_gradient_sums_lay_out(struct tn_gradient_sums *sums, const struct tn_arch *arch,
                              struct tn_arena *arena)
{
    tn_branches_lay_out(&sums->branches, arena);
    tn_tree_sum_lay_out(&sums->across, arena);
    for (size_t i = 0; i == 0 || (size_t)1 << (i - 1) < sums->branches.leaves; i++) {
        sums->weights[i].blocks =
            tn_arena_alloc(arena, arch->config.layers, sizeof *sums->weights[i].blocks);
        if (sums->branches.sums[i])
            tn_weights_carve(&sums->weights[i], arch, sums->branches.sums[i]);
    }
}

void tn_gradient_sums_begin(struct tn_gradient_sums *sums)
{
    tn_branches_begin(&sums->branches);
    tn_tree_sum_begin(&sums->across, sums->branches.sums[0]);
}

const struct tn_weights *tn_gradient_sums_leaf(const struct tn_gradient_sums *sums)
{
    return &sums->weights[sums->branches.waiting];
}

void tn_gradient_sums_complete(struct tn_gradient_sums *sums, const float *from)
{
    const size_t final = (size_t)(from - sums->branches.sums[0]);
    size_t at, count;

    while (tn_tree_sum_next(&sums->across, final, &at, &count))
        tn_tree_sum_start(&sums->across, at, count);
    tn_tree_sum_advance(&sums->across);
}

tarn_status tn_gradient_sums_finish(struct tn_gradient_sums *sums, tarn_error *err)
{
    tn_gradient_sums_complete(sums, sums->branches.sums[0]);
    return tn_tree_sum_finish(&sums->across, err);
}

/* ---- Leaf by leaf ------------------------------------------------------- */

void tn_gradient_sums_begin_leaf(struct tn_gradient_sums *sums)
{
    float *const leaf = tn_branches_leaf(&sums->branches);

    memset(leaf, 0, sums->branches.floats * sizeof *leaf);
}

bool tn_gradient_sums_is_last(const struct tn_gradient_sums *sums)
{
    return sums->branches.done + 1 == sums->branches.leaves;
}

void tn_gradient_sums_complete_last(struct tn_gradient_sums *sums, const float *from)
{
    const size_t final = (size_t)(from - tn_branches_leaf(&sums->branches));
    size_t at, count;

    while (tn_tree_sum_next(&sums->across, final, &at, &count)) {
        tn_branches_add(&sums->branches, at, count);
        tn_tree_sum_start(&sums->across, at, count);
    }
    tn_tree_sum_advance(&sums->across);
}

void tn_gradient_sums_end_leaf(struct tn_gradient_sums *sums)
{
    if (tn_gradient_sums_is_last(sums))
        tn_gradient_sums_complete_last(sums, tn_branches_leaf(&sums->branches));
    else
        tn_branches_add(&sums->branches, 0, sums->branches.floats);
    tn_branches_end_leaf(&sums->branches);
}

/* ---- Span by span ------------------------------------------------------- */

void tn_gradient_sums_clear(const struct tn_gradient_sums *sums, struct tn_span span)
{
    float *const leaf = tn_branches_leaf(&sums->branches);

    memset(leaf + (span.from - leaf), 0, (size_t)(span.to - span.from) * sizeof *leaf);
}

void tn_gradient_sums_add(const struct tn_gradient_sums *sums, struct tn_span span)
{
    const float *const leaf = tn_branches_leaf(&sums->branches);

    tn_branches_add(&sums->branches, (size_t)(span.from - leaf), (size_t)(span.to - span.from));
}
