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
    PRODUCTS_ALONE = 1 << 16, /* fewer multiply-adds are not worth waking threads */
    ROWS = 8,                 /* queries that meet a block of keys, or of values, in turn */
    BLOCK = TN_KV_BLOCK       /* whose rows of a head lie one behind the other */
};

/* A query, and what it sees of the cache. */
struct row {
    float *cache;
    size_t h, n; /* its head, and the keys that it sees */
    float *q;    /* times the scale */
    float *s;    /* scores, which become weights times their sum */
    float *y;
    float most, sum;
};

struct step {
    const struct tn_attention_call *call;
    float *memory; /* of each thread: see row_open() */
    size_t heads;  /* of a task, at most ROWS */
};

static size_t query_floats(const tarn_attention *plan)
{
    return tn_round_up(plan->D, TN_ALIGN);
}

static size_t row_floats(const tarn_attention *plan)
{
    return query_floats(plan) + tn_round_up(plan->capacity, TN_ALIGN);
}

static float *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    return tn_arena_floats(arena, threads * ROWS * row_floats(plan));
}

void tn_softmax_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    lay_out(plan, threads, arena);
}

static struct step step_open(const struct tn_attention_call *call, size_t threads)
{
    struct tn_arena arena = tn_arena_over(call->work);

    return (struct step){call, lay_out(call->plan, threads, &arena), 0};
}

/* Position i of head h of sequence b, as row `at` of all threads. Its memory: the query,
 * then capacity scores. */
static struct row row_open(const struct step *step, size_t at, float *cache, size_t b, size_t h,
                           size_t i, size_t n)
{
    const tarn_attention *const plan = step->call->plan;
    float *const q = step->memory + at * row_floats(plan);

    plan->host.kernels->scale(q, tn_in(step->call->arrays->in[TN_QUERY], b, h, i),
                              tn_softmax_scale(plan), plan->D);
    return (struct row){
        .cache = cache,
        .h = h,
        .n = n,
        .q = q,
        .s = q + query_floats(plan),
        .y = tn_out(step->call->arrays->y, b, h, i),
    };
}

/* s_j = q . k_j of the n keys from j on. */
static void score(const tarn_attention *plan, const struct row *row, size_t j, size_t n)
{
    plan->host.kernels->dot_rows(row->s + j, row->q,
                                 tn_kv_cache_key(plan, row->cache, row->h, j), n, plan->D);
}

/* y = sum_j p_j v_j over the n values from j on, added to those before. */
static void gather(const tarn_attention *plan, const struct row *row, size_t j, size_t n)
{
    plan->host.kernels->mix_rows(
        row->y, row->s + j, tn_kv_cache_value(plan, row->cache, row->h, j), n, plan->M, j > 0);
}

typedef void meet_block(const tarn_attention *plan, const struct row *row, size_t j, size_t n);

/* All rows with a block, then with the next. */
static void by_blocks(const tarn_attention *plan, const struct row *rows, size_t count,
                      meet_block *meet)
{
    size_t most = 0;

    for (size_t i = 0; i < count; i++)
        most = tn_max(most, rows[i].n);
    for (size_t j = 0; j < most; j += BLOCK)
        for (size_t i = 0; i < count; i++)
            if (j < rows[i].n)
                meet(plan, &rows[i], j, tn_min(BLOCK, rows[i].n - j));
}

/* Heads of one sequence, or queries of one head. The order of a row's sums is its own. */
static void attend(const tarn_attention *plan, struct row *rows, size_t count)
{
    const struct tn_kernels *const kernels = plan->host.kernels;

    by_blocks(plan, rows, count, score);
    for (size_t i = 0; i < count; i++) {
        rows[i].most = kernels->max(rows[i].s, rows[i].n);
        rows[i].sum = kernels->exp_sum(rows[i].s, rows[i].s, rows[i].most, rows[i].n);
    }
    by_blocks(plan, rows, count, gather);
    for (size_t i = 0; i < count; i++)
        if (rows[i].n > 0)
            kernels->scale(rows[i].y, rows[i].y, 1.0f / rows[i].sum, plan->M);
        else
            memset(rows[i].y, 0, plan->M * sizeof(float));
}

/* ---- One position of some sequences ------------------------------------- */

static void heads_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const struct tn_attention_call *const call = step->call;
    const size_t H = call->plan->H, tasks = tn_blocks(H, step->heads);
    const size_t b = task / tasks, first = task % tasks * step->heads;
    const size_t count = tn_min(step->heads, H - first);
    const size_t past = tn_state_count(call->states[b]);
    float *const cache = tn_state_floats(call->states[b]);
    struct row rows[ROWS];

    for (size_t i = 0; i < count; i++) {
        tn_kv_cache_append(call, cache, b, first + i, past, 1);
        rows[i] = row_open(step, thread * ROWS + i, cache, b, first + i, 0, past + 1);
    }
    attend(call->plan, rows, count);
}

/* Heads lie side by side: the more of them a task has, the longer are the pieces of memory that
 * it reads. Few streams are cut so that every thread has as much. */
static size_t heads_of_task(const struct tn_attention_call *call, size_t threads)
{
    const bool whole = call->n % threads == 0 || call->n >= 4 * threads;

    return tn_min(ROWS, whole ? call->plan->H : tn_blocks(call->plan->H, threads));
}

void tn_softmax_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    struct step step = step_open(call, call->threads);
    size_t rows = 0;

    for (size_t b = 0; b < call->n; b++)
        rows += plan->H * (tn_state_count(call->states[b]) + 1);
    const bool alone = rows < PRODUCTS_ALONE / (plan->D + plan->M);
    const size_t threads = alone ? 1 : call->threads;

    step.heads = heads_of_task(call, threads);
    tn_parallel(threads, call->n * tn_blocks(plan->H, step.heads), heads_step, &step);
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

/* ROWS queries of a head, from position `first` of the call on. */
static void run_rows(const struct step *step, size_t head, size_t first, size_t thread)
{
    const struct tn_attention_call *const call = step->call;
    const struct tn_softmax_head a = tn_softmax_head_open(call, head, NULL);
    const size_t count = tn_min(ROWS, a.plan->N - first);
    float *const cache = tn_call_state1(call, a.b);
    struct row rows[ROWS];

    for (size_t i = 0; i < count; i++)
        rows[i] = row_open(step, thread * ROWS + i, cache, a.b, a.h, first + i,
                           tn_min(a.length, a.past + first + i + 1));
    attend(a.plan, rows, count);
    for (size_t i = 0; i < count; i++)
        save_row(&a, first + i, rows[i].s, rows[i].n, rows[i].most, rows[i].sum);
}

/* Some from the front and some from the back: as much work for every task. */
static void run_pair(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const size_t tiles = tn_blocks(step->call->plan->N, ROWS), pairs = tn_blocks(tiles, 2);
    const size_t head = task / pairs, i = task % pairs;

    run_rows(step, head, i * ROWS, thread);
    if (tiles - 1 - i > i)
        run_rows(step, head, (tiles - 1 - i) * ROWS, thread);
}

void tn_softmax_rows(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const size_t pairs = tn_blocks(tn_blocks(plan->N, ROWS), 2);
    struct step step = step_open(call, plan->host.threads);

    tn_kv_cache_continue(call);
    tn_parallel(plan->host.threads, plan->B * plan->H * pairs, run_pair, &step);
}
