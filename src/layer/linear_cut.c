/* SPDX-License-Identifier: MIT */
#include "layer/linear_cut.h"

enum {
    HEADS_ENOUGH = 8,  /* sequences x heads to spread over threads without segments */
    SEGMENTS_MAX = 32, /* of all heads, where they are tasks */
    SEGMENT_MIN = 512  /* positions */
};

static struct tn_linear_cut cut_for_threads(const tarn_attention *plan, size_t segments)
{
    return (struct tn_linear_cut){
        .segments = segments,
        .q_each = tn_round_up(tn_blocks(plan->N, segments), TN_LINEAR_TILE),
        .k_each = tn_round_up(tn_blocks(plan->Nk, segments), TN_LINEAR_TILE),
        .shared = segments > 1,
    };
}

static struct tn_linear_cut cut_for_cache(const tarn_attention *plan, size_t sums)
{
    const size_t length = tn_min(tn_max(SEGMENT_MIN, sums), plan->N);
    const size_t each = tn_round_up(length, TN_LINEAR_TILE);

    return (struct tn_linear_cut){tn_blocks(plan->N, each), each, each, false, 0};
}

struct tn_linear_cut tn_linear_cut_of(const tarn_attention *plan)
{
    const struct tn_linear_sizes sizes = tn_linear_sizes_of(plan);
    const size_t heads = plan->B * plan->H, positions = tn_max(plan->N, plan->Nk);
    const bool few = heads < HEADS_ENOUGH;
    struct tn_linear_cut cut = cut_for_threads(
        plan, few ? tn_max(1, tn_min(SEGMENTS_MAX / heads, positions / SEGMENT_MIN)) : 1);

    if (!sizes.normalises) /* there may be nothing to save in: dot_product.c */
        return cut;
    if (!cut.shared && plan->causal)
        cut = cut_for_cache(plan, sizes.kept);
    if (plan->causal)
        cut.kept = cut.segments - 1;
    else
        cut.kept = few || plan->Nk >= sizes.kept;
    return cut;
}

struct tn_linear_span tn_linear_span_of(const tarn_attention *plan, struct tn_linear_cut cut,
                                        size_t segment)
{
    return (struct tn_linear_span){
        .q_from = tn_min(plan->N, segment * cut.q_each),
        .q_to = tn_min(plan->N, (segment + 1) * cut.q_each),
        .k_from = tn_min(plan->Nk, segment * cut.k_each),
        .k_to = tn_min(plan->Nk, (segment + 1) * cut.k_each),
    };
}
