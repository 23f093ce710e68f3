/* SPDX-License-Identifier: MIT */
/* softmax_step.c - one query against every key so far.
 *
 *   y = sum_j exp(s_j - m) v_j / sum_j exp(s_j - m)   s_j = scale q . k_j   m = max_j s_j */
#include "layer/softmax_step.h"

#include "layer/kv_cache.h"
#include "layer/softmax_tile.h"

enum {
    PRODUCTS_ALONE = 1 << 16
}; /* fewer multiply-adds than this are not worth waking threads */

struct step {
    const struct tn_attention_call *call;
    float *scores; /* Nk per thread */
};

static float *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    return tn_arena_floats(arena, threads * tn_round_up(plan->Nk, TN_ALIGN));
}

void tn_softmax_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    lay_out(plan, threads, arena);
}

/* y = sum_j p_j v_j over n rows: whole vectors of columns as a product, the rest one by one. */
static void gather_values(const tarn_attention *plan, float *y, const float *p, const float *v,
                          size_t n)
{
    const size_t M = plan->M, whole = M - M % plan->host.kernels->lanes;

    plan->host.kernels->product(y, 0, p, 0, 1, v, (ptrdiff_t)M, 1, whole, n, false);
    for (size_t m = whole; m < M; m++) {
        y[m] = 0.0f;
        for (size_t j = 0; j < n; j++)
            y[m] += p[j] * v[j * M + m];
    }
}

static void head_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const struct tn_attention_call *const call = step->call;
    const tarn_attention *const plan = call->plan;
    const struct tn_kernels *const kernels = plan->host.kernels;
    const size_t b = task / plan->H, h = task % plan->H;
    const size_t n = tn_kv_cache_length(call->states[b]) + 1;
    const float *const keys = tn_kv_cache_keys(call, b, h), scale = tn_softmax_scale(plan);
    const float *const q = tn_in(call->arrays->in[TN_QUERY], b, h, 0);
    float *const s = step->scores + thread * tn_round_up(plan->Nk, TN_ALIGN);
    float *const y = tn_out(call->arrays->y, b, h, 0);

    tn_kv_cache_append(call, b, h);
    for (size_t j = 0; j < n; j++)
        s[j] = scale * kernels->dot(q, keys + j * plan->D, plan->D);
    const float sum = kernels->exp_sum(s, s, kernels->max(s, n), n);

    gather_values(plan, y, s, tn_kv_cache_values(call, b, h), n);
    kernels->scale(y, y, 1.0f / sum, plan->M);
}

void tn_softmax_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    size_t rows = 0;

    for (size_t b = 0; b < call->n; b++)
        rows += plan->H * (tn_kv_cache_length(call->states[b]) + 1);
    const bool alone = rows < PRODUCTS_ALONE / (plan->D + plan->M);
    struct tn_arena arena = tn_arena_over(call->work);
    struct step step = {call, lay_out(plan, call->threads, &arena)};

    tn_parallel(alone ? 1 : call->threads, call->n * plan->H, head_step, &step);
    tn_kv_cache_advance(call);
}
