/* SPDX-License-Identifier: MIT */
/* softmax_step.c - queries against every key so far, one by one.
 *
 *   y = sum_j exp(s_j - m) v_j / sum_j exp(s_j - m)   s_j = scale q . k_j   m = max_j s_j
 *
 * Whole sequences with a state are computed so, too, and not in tiles, so that they have the
 * bits of single steps. Their rows do not depend on each other. */
#include <math.h>
#include <string.h>

#include "layer/kv_cache.h"
#include "layer/softmax_tile.h"

enum {
    PRODUCTS_ALONE = 1 << 16
}; /* fewer multiply-adds than this are not worth waking threads */

struct step {
    const struct tn_attention_call *call;
    float *scores; /* per thread: zeros and a scaled query, D each; capacity scores */
};

static size_t query_floats(const tarn_attention *plan)
{
    return tn_round_up(plan->D, TN_ALIGN);
}

static size_t thread_floats(const tarn_attention *plan)
{
    return 2 * query_floats(plan) + tn_round_up(plan->capacity, TN_ALIGN);
}

static float *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    return tn_arena_floats(arena, threads * thread_floats(plan));
}

static struct step step_open(const struct tn_attention_call *call, size_t threads)
{
    struct tn_arena arena = tn_arena_over(call->work);

    return (struct step){call, lay_out(call->plan, threads, &arena)};
}

static float *scores_of(const struct step *step, size_t thread)
{
    const tarn_attention *const plan = step->call->plan;

    return step->scores + thread * thread_floats(plan) + 2 * query_floats(plan);
}

/* s_j = scale q . k_j. Where rows are whole vectors, by the loop that adds rows to z and
 * multiplies z with others: the rows added are zeros, z is the query and stays in registers. */
static void score(const tarn_attention *plan, float *s, const float *q, const float *keys,
                  size_t n)
{
    const struct tn_kernels *const kernels = plan->host.kernels;
    const size_t D = plan->D;
    float *const query = s - query_floats(plan), *const zeros = query - query_floats(plan);
    const float scale = tn_softmax_scale(plan);

    if (tn_padded(kernels, D) == D) {
        memset(zeros, 0, D * sizeof *zeros);
        kernels->scale(query, q, scale, D);
        kernels->recur_sum(s, query, keys, (ptrdiff_t)D, zeros, 0, n, D);
    } else {
        for (size_t j = 0; j < n; j++)
            s[j] = scale * kernels->dot(q, keys + j * D, D);
    }
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

/* The first n keys and values of a head. Leaves the weights, times their sum, in s. */
static float attend(const tarn_attention *plan, float *y, float *s, const float *q,
                    float *cache, size_t h, size_t n, float *sum)
{
    const struct tn_kernels *const kernels = plan->host.kernels;

    score(plan, s, q, tn_kv_cache_keys(plan, cache, h), n);
    const float most = kernels->max(s, n);

    *sum = kernels->exp_sum(s, s, most, n);
    gather_values(plan, y, s, tn_kv_cache_values(plan, cache, h), n);
    kernels->scale(y, y, 1.0f / *sum, plan->M);
    return most;
}

/* ---- One position of some sequences ------------------------------------- */

static void head_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const struct tn_attention_call *const call = step->call;
    const tarn_attention *const plan = call->plan;
    const size_t b = task / plan->H, h = task % plan->H;
    const size_t count = tn_state_count(call->states[b]);
    float *const cache = tn_state_floats(call->states[b]);
    float sum;

    tn_kv_cache_append(call, cache, b, h, count, 1);
    attend(plan, tn_out(call->arrays->y, b, h, 0), scores_of(step, thread),
           tn_in(call->arrays->in[TN_QUERY], b, h, 0), cache, h, count + 1, &sum);
}

void tn_softmax_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    struct step step = step_open(call, call->threads);
    size_t rows = 0;

    for (size_t b = 0; b < call->n; b++)
        rows += plan->H * (tn_state_count(call->states[b]) + 1);
    const bool alone = rows < PRODUCTS_ALONE / (plan->D + plan->M);

    tn_parallel(alone ? 1 : call->threads, call->n * plan->H, head_step, &step);
}

/* ---- All positions of a call -------------------------------------------- */

/* For backward: the logarithm of the sum, infinity where there is no key; or the weights. */
static void save_row(const struct tn_softmax_head *a, size_t i, const float *s, size_t n,
                     float most, float sum)
{
    if (a->lse)
        a->lse[i] = n > 0 ? most + logf(sum) : INFINITY;
    if (a->stored) {
        float *const row = a->stored + i * a->stored_ld;

        a->kernels->scale(row, s, n > 0 ? 1.0f / sum : 0.0f, n);
        memset(row + n, 0, (a->stored_ld - n) * sizeof(float));
    }
}

static void run_row(const struct step *step, size_t head, size_t i, float *s)
{
    const struct tn_attention_call *const call = step->call;
    const struct tn_softmax_head a = tn_softmax_head_open(call, head, NULL);
    const size_t n = tn_min(a.length, a.past + i + 1);
    float *const y = tn_out(call->arrays->y, a.b, a.h, i);
    float most = 0.0f, sum = 0.0f;

    if (n > 0)
        most = attend(a.plan, y, s, tn_in(call->arrays->in[TN_QUERY], a.b, a.h, i),
                      tn_call_state1(call, a.b), a.h, n, &sum);
    else
        memset(y, 0, a.plan->M * sizeof(float));
    save_row(&a, i, s, n, most, sum);
}

/* A row from the front and one from the back: as much work for every task. */
static void run_pair(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const size_t N = step->call->plan->N, pairs = tn_blocks(N, 2);
    const size_t head = task / pairs, i = task % pairs;

    run_row(step, head, i, scores_of(step, thread));
    if (N - 1 - i > i)
        run_row(step, head, N - 1 - i, scores_of(step, thread));
}

void tn_softmax_rows(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    struct step step = step_open(call, plan->host.threads);

    tn_kv_cache_continue(call);
    tn_parallel(plan->host.threads, plan->B * plan->H * tn_blocks(plan->N, 2), run_pair, &step);
}
