/* SPDX-License-Identifier: MIT */
/* attention_softmax.c - softmax attention: y = softmax(q k^T / sqrt(D)) v.    Paper (2)
 *
 * In tiles (softmax_tile.c), so that no N x N matrix is ever stored. With the option `store`
 * forward saves it whole, as the paper's baseline does. */
#include <math.h>
#include <string.h>

#include "layer/kv_cache.h"
#include "layer/softmax_tile.h"

enum {
    BLOCK = TN_SOFTMAX_BLOCK,
    SPAN = TN_SOFTMAX_SPAN,
    HEADS_ENOUGH = 8 /* sequences x heads with which backward takes a head as one task */
};

static const tarn_option_info options[] = {
    [TN_SOFTMAX_SCALE] = {"scale", "factor of q.k; 0: 1 / sqrt(query width)", 0.0, 1e6, 0.0,
                          false, NULL},
    [TN_SOFTMAX_STORE] = {"store", "1: keep the N x N matrix for the backward pass", 0, 1, 0,
                          true, NULL},
    {0},
};

/* ---- Memory ------------------------------------------------------------- */

static size_t head_count(const tarn_attention *plan)
{
    return plan->B * plan->H;
}

static size_t saved(const tarn_attention *plan)
{
    const bool stores = plan->options.value[TN_SOFTMAX_STORE] != 0.0;
    const size_t factors[] = {plan->B, plan->H, plan->N,
                              stores ? tn_softmax_stored_ld(plan) : 1};
    size_t floats;

    return tn_size_product(&floats, factors, 4) ? floats : SIZE_MAX;
}

struct work {
    const struct tn_attention_call *call;
    struct tn_softmax_tiles *tiles; /* one per thread */
    float *dq;                      /* per thread N x padded(D), where a head is one task */
    size_t keys;                    /* of a sequence at most, those in its state among them */
};

static size_t head_dq_floats(const tarn_attention *plan)
{
    return head_count(plan) >= HEADS_ENOUGH ? plan->N * tn_padded(plan->host.kernels, plan->D)
                                            : 0;
}

static struct work lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    struct work work = {.tiles = tn_arena_alloc(arena, plan->host.threads, sizeof *work.tiles)};

    work.dq = tn_arena_alloc(arena, plan->host.threads, head_dq_floats(plan) * sizeof(float));
    for (size_t t = 0; t < plan->host.threads; t++) {
        const struct tn_softmax_tiles tiles = tn_softmax_tiles_lay_out(plan, arena);

        if (work.tiles)
            work.tiles[t] = tiles;
    }
    return work;
}

static void work_size(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, arena);
}

static struct work work_open(const struct tn_attention_call *call)
{
    struct tn_arena arena = tn_arena_over(call->work);
    struct work work = lay_out(call->plan, &arena);

    work.call = call;
    for (size_t b = 0; b < call->plan->B; b++)
        work.keys = tn_max(work.keys, tn_call_count(call, b) + call->plan->Nk);
    return work;
}

/* ---- Forward ------------------------------------------------------------ */

/* Keys that any of the loaded queries sees. */
static size_t keys_end(const struct tn_softmax_head *a, size_t last_query)
{
    return a->plan->causal ? tn_min(a->length, a->past + last_query) : a->length;
}

static void forward_tiled(const struct tn_softmax_head *a, size_t end)
{
    struct tn_softmax_tiles *const t = a->tiles;

    for (size_t j = 0; j < end; j += BLOCK) {
        tn_softmax_load_keys(a, &t->keys[0], j, end);
        for (size_t i = 0; i < SPAN; i++)
            if (tn_softmax_sees(a, &t->queries[i], &t->keys[0]))
                tn_softmax_meet(a, &t->queries[i], &t->keys[0]);
    }
}

static void forward_stored(const struct tn_softmax_head *a, size_t end)
{
    struct tn_softmax_tiles *const t = a->tiles;

    for (size_t j = 0; j < end; j += BLOCK) {
        tn_softmax_load_keys(a, &t->keys[0], j, end);
        for (size_t i = 0; i < SPAN; i++)
            tn_softmax_store_scores(a, &t->queries[i], &t->keys[0]);
    }
    for (size_t i = 0; i < SPAN; i++)
        tn_softmax_store_weights(a, &t->queries[i], end);
    for (size_t j = 0; j < end; j += BLOCK) {
        tn_softmax_load_keys(a, &t->keys[0], j, end);
        for (size_t i = 0; i < SPAN; i++)
            tn_softmax_store_gather(a, &t->queries[i], &t->keys[0]);
    }
}

/* A span of queries meets all keys that it sees. */
static void forward_task(void *arg, size_t task, size_t thread)
{
    const struct work *const work = arg;
    const size_t N = work->call->plan->N, spans = tn_blocks(N, SPAN * BLOCK);
    const struct tn_softmax_head head =
        tn_softmax_head_open(work->call, task / spans, &work->tiles[thread]);
    const size_t first = task % spans * SPAN * BLOCK;
    const size_t end = keys_end(&head, tn_min(N, first + SPAN * BLOCK));

    for (size_t i = 0; i < SPAN; i++)
        tn_softmax_load_queries(&head, &head.tiles->queries[i], first + i * BLOCK);
    if (head.stored)
        forward_stored(&head, end);
    else
        forward_tiled(&head, end);
    for (size_t i = 0; i < SPAN; i++)
        tn_softmax_finish(&head, &head.tiles->queries[i]);
}

static void forward(const struct tn_attention_call *call)
{
    if (tn_call_has_states(call)) {
        tn_softmax_rows(call);
        return;
    }
    struct work work = work_open(call);
    const size_t spans = tn_blocks(call->plan->N, SPAN * BLOCK);

    tn_parallel(call->plan->host.threads, head_count(call->plan) * spans, forward_task, &work);
}

/* ---- Backward ----------------------------------------------------------- */

/* A span of keys meets all queries that see it. With `dq` (N x padded(D)) the gradients of
 * these are summed on the way. */
static void backward_keys(const struct tn_softmax_head *a, size_t first, float *dq)
{
    const tarn_attention *const plan = a->plan;
    struct tn_softmax_tiles *const t = a->tiles;
    struct tn_softmax_queries *const queries = &t->queries[0];
    const size_t from = plan->causal && first > a->past ? first - a->past : 0;

    for (size_t j = 0; j < SPAN; j++)
        tn_softmax_load_keys_backward(a, &t->keys[j], first + j * BLOCK, a->length);
    for (size_t i = from; i < plan->N && first < a->length; i += BLOCK) {
        tn_softmax_load_queries(a, queries, i);
        tn_softmax_load_gradients(a, queries);
        for (size_t j = 0; j < SPAN; j++) {
            if (!tn_softmax_sees(a, queries, &t->keys[j]))
                continue;
            tn_softmax_meet_backward(a, queries, &t->keys[j]);
            tn_softmax_add_dkv(a, queries, &t->keys[j]);
            if (dq)
                tn_softmax_add_dq(a, dq + i * a->Dp, queries, &t->keys[j]);
        }
    }
    for (size_t j = 0; j < SPAN; j++)
        tn_softmax_store_dkv(a, &t->keys[j], first + j * BLOCK, a->past + plan->Nk);
}

/* A span of queries meets all keys that it sees. */
static void backward_queries(const struct tn_softmax_head *a, size_t first)
{
    struct tn_softmax_tiles *const t = a->tiles;
    const size_t end = keys_end(a, tn_min(a->plan->N, first + SPAN * BLOCK));

    for (size_t i = 0; i < SPAN; i++) {
        tn_softmax_load_queries(a, &t->queries[i], first + i * BLOCK);
        tn_softmax_load_gradients(a, &t->queries[i]);
    }
    for (size_t j = 0; j < end; j += BLOCK) {
        tn_softmax_load_keys_backward(a, &t->keys[0], j, end);
        for (size_t i = 0; i < SPAN; i++) {
            if (!tn_softmax_sees(a, &t->queries[i], &t->keys[0]))
                continue;
            tn_softmax_meet_backward(a, &t->queries[i], &t->keys[0]);
            tn_softmax_add_dq(a, t->queries[i].dq, &t->queries[i], &t->keys[0]);
        }
    }
    for (size_t i = 0; i < SPAN; i++)
        tn_softmax_store_dq(a, t->queries[i].from, t->queries[i].n, t->queries[i].dq);
}

/* A head as one task forms every tile once. */
static void head_task(void *arg, size_t task, size_t thread)
{
    const struct work *const work = arg;
    const tarn_attention *const plan = work->call->plan;
    const struct tn_softmax_head head =
        tn_softmax_head_open(work->call, task, &work->tiles[thread]);
    float *const dq = work->dq + thread * head_dq_floats(plan);

    memset(dq, 0, head_dq_floats(plan) * sizeof(float));
    for (size_t j = 0; j < head.past + plan->Nk; j += SPAN * BLOCK)
        backward_keys(&head, j, dq);
    tn_softmax_store_dq(&head, 0, plan->N, dq);
}

/* Few heads are split into spans of keys and of queries, which forms every tile twice but lets
 * many threads work on one sequence, each output with one writer. */
static void span_task(void *arg, size_t task, size_t thread)
{
    const struct work *const work = arg;
    const tarn_attention *const plan = work->call->plan;
    const size_t key_spans = tn_blocks(work->keys, SPAN * BLOCK);
    const size_t spans = key_spans + tn_blocks(plan->N, SPAN * BLOCK);
    const size_t span = task % spans;
    const struct tn_softmax_head head =
        tn_softmax_head_open(work->call, task / spans, &work->tiles[thread]);

    if (span < key_spans)
        backward_keys(&head, span * SPAN * BLOCK, NULL);
    else
        backward_queries(&head, (span - key_spans) * SPAN * BLOCK);
}

static void backward(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const size_t heads = head_count(plan);
    struct work work = work_open(call);
    const size_t spans = tn_blocks(work.keys, SPAN * BLOCK) + tn_blocks(plan->N, SPAN * BLOCK);

    tn_kv_cache_clear_gradient(call);
    if (heads >= HEADS_ENOUGH)
        tn_parallel(plan->host.threads, heads, head_task, &work);
    else
        tn_parallel(plan->host.threads, heads * spans, span_task, &work);
}

/* ---- The row ------------------------------------------------------------ */

/* Pairs of a query and a key it sees. */
static double pairs(const tarn_attention *plan)
{
    const double N = (double)plan->N, all = N * (double)plan->Nk;

    return (double)head_count(plan) * (plan->causal ? 0.5 * N * (N + 1.0) : all);
}

/* s and y. */
static double forward_flops(const tarn_attention *plan)
{
    return pairs(plan) * 2.0 * (double)(plan->D + plan->M);
}

/* dp and dv, dq and dk: without forming s a second time. */
static double backward_flops(const tarn_attention *plan)
{
    return 2.0 * forward_flops(plan);
}

extern const struct tn_attention_kind tn_attention_softmax;
const struct tn_attention_kind tn_attention_softmax = {
    .about = {"softmax", "softmax(q k^T / sqrt(D)) v, computed in tiles, eq. (2)", options},
    .inputs = tn_query_key_value,
    .saved = saved,
    .work = work_size,
    .forward = forward,
    .backward = backward,
    .state = tn_kv_cache_floats,
    .step_work = tn_softmax_step_work,
    .step = tn_softmax_step,
    .caches = true,
    .parts = &tn_softmax_parts,
    .forward_flops = forward_flops,
    .backward_flops = backward_flops,
};
