/* SPDX-License-Identifier: MIT */
#include "layer/softmax_tile.h"

#include <math.h>
#include <string.h>

#include "layer/kv_cache.h"

enum { BLOCK = TN_SOFTMAX_BLOCK };

/* ---- Memory ------------------------------------------------------------- */

float tn_softmax_scale(const tarn_attention *plan)
{
    const double scale = plan->options.value[TN_SOFTMAX_SCALE];

    return scale > 0.0 ? (float)scale : 1.0f / sqrtf((float)plan->D);
}

/* Whole blocks: a tile can be written in place. */
size_t tn_softmax_stored_ld(const tarn_attention *plan)
{
    return tn_round_up(plan->capacity, BLOCK);
}

static struct tn_softmax_queries queries_take(size_t Dp, size_t Mp, struct tn_arena *arena)
{
    return (struct tn_softmax_queries){
        .q = tn_arena_floats(arena, BLOCK * Dp),
        .dq = tn_arena_floats(arena, BLOCK * Dp),
        .y = tn_arena_floats(arena, BLOCK * Mp),
        .g = tn_arena_floats(arena, BLOCK * Mp),
        .max = tn_arena_floats(arena, BLOCK),
        .sum = tn_arena_floats(arena, BLOCK),
        .lse = tn_arena_floats(arena, BLOCK),
        .delta = tn_arena_floats(arena, BLOCK),
    };
}

static struct tn_softmax_keys keys_take(size_t Dp, size_t Mp, struct tn_arena *arena)
{
    return (struct tn_softmax_keys){
        .k = tn_arena_floats(arena, BLOCK * Dp),
        .dk = tn_arena_floats(arena, BLOCK * Dp),
        .v = tn_arena_floats(arena, BLOCK * Mp),
        .dv = tn_arena_floats(arena, BLOCK * Mp),
        .kt = tn_arena_floats(arena, BLOCK * Dp),
        .vt = tn_arena_floats(arena, BLOCK * Mp),
    };
}

struct tn_softmax_tiles tn_softmax_tiles_lay_out(const tarn_attention *plan,
                                                 struct tn_arena *arena)
{
    const size_t Dp = tn_padded(plan->host.kernels, plan->D),
                 Mp = tn_padded(plan->host.kernels, plan->M);
    struct tn_softmax_tiles tiles = {
        .s = tn_arena_floats(arena, BLOCK * BLOCK),
        .dp = tn_arena_floats(arena, BLOCK * BLOCK),
    };

    for (size_t i = 0; i < TN_SOFTMAX_SPAN; i++) {
        tiles.queries[i] = queries_take(Dp, Mp, arena);
        tiles.keys[i] = keys_take(Dp, Mp, arena);
    }
    return tiles;
}

struct tn_softmax_head tn_softmax_head_open(const struct tn_attention_call *call, size_t index,
                                            struct tn_softmax_tiles *tiles)
{
    const tarn_attention *const plan = call->plan;
    const bool stores = plan->options.value[TN_SOFTMAX_STORE] != 0.0;
    const size_t row = index * plan->N, ld = tn_softmax_stored_ld(plan);
    const size_t b = index / plan->H, past = tn_call_count(call, b);

    return (struct tn_softmax_head){
        .plan = plan,
        .kernels = plan->host.kernels,
        .call = call,
        .tiles = tiles,
        .b = b,
        .h = index % plan->H,
        .past = past,
        .length = past + tn_key_length(call, b),
        .cached = (float *)(uintptr_t)tn_call_state0(call, b),
        .Dp = tn_padded(plan->host.kernels, plan->D),
        .Mp = tn_padded(plan->host.kernels, plan->M),
        .scale = tn_softmax_scale(plan),
        .lse = call->saved && !stores ? call->saved + row : NULL,
        .stored = call->saved && stores ? call->saved + row * ld : NULL,
        .stored_ld = ld,
    };
}

/* ---- Loading ------------------------------------------------------------ */

/* Packs n rows of `width` floats, each times `by`; what pads them is zero. */
static void pack(const struct tn_softmax_head *a, float *tile, size_t ld, tarn_input x,
                 size_t from, size_t n, size_t width, float by)
{
    for (size_t i = 0; i < n; i++) {
        float *const row = tile + i * ld;

        a->kernels->scale(row, tn_in(x, a->b, a->h, from + i), by, width);
        memset(row + width, 0, (ld - width) * sizeof(float));
    }
}

/* The same of keys or values, of which those before `past` are in the state. */
static void pack_keys(const struct tn_softmax_head *a, float *tile, size_t ld, size_t input,
                      size_t from, size_t n, size_t width)
{
    const size_t before = from < a->past ? tn_min(n, a->past - from) : 0;

    for (size_t i = 0; i < before; i++) {
        const float *const row = (input == TN_KEY ? tn_kv_cache_key : tn_kv_cache_value)(
            a->plan, a->cached, a->h, from + i);

        pack(a, tile + i * ld, ld, (tarn_input){row, 0, 0, 0}, 0, 1, width, 1.0f);
    }
    pack(a, tile + before * ld, ld, a->call->arrays->in[input], from + before - a->past,
         n - before, width, 1.0f);
}

/* columns (width x BLOCK) = the transpose of n rows, zero up to whole vectors. */
static void transpose(const struct tn_softmax_head *a, float *columns, const float *rows,
                      size_t ld, size_t n, size_t width)
{
    const size_t whole = tn_padded(a->kernels, n);

    a->kernels->transpose(columns, BLOCK, rows, (ptrdiff_t)ld, n, width);
    for (size_t c = 0; c < width && n < whole; c++)
        memset(columns + c * BLOCK + n, 0, (whole - n) * sizeof(float));
}

static size_t block_size(size_t from, size_t end)
{
    return from < end ? tn_min(BLOCK, end - from) : 0;
}

void tn_softmax_load_queries(const struct tn_softmax_head *a,
                             struct tn_softmax_queries *queries, size_t from)
{
    queries->from = from;
    queries->n = block_size(from, a->plan->N);
    pack(a, queries->q, a->Dp, a->call->arrays->in[TN_QUERY], from, queries->n, a->plan->D,
         a->scale);
    memset(queries->y, 0, queries->n * a->Mp * sizeof(float));
    for (size_t i = 0; i < queries->n; i++) {
        queries->max[i] = -INFINITY;
        queries->sum[i] = 0.0f;
    }
}

void tn_softmax_load_gradients(const struct tn_softmax_head *a,
                               struct tn_softmax_queries *queries)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;

    pack(a, queries->g, a->Mp, arrays->dy, queries->from, queries->n, a->plan->M, 1.0f);
    memset(queries->dq, 0, queries->n * a->Dp * sizeof(float));
    for (size_t i = 0; i < queries->n; i++) {
        const float *const y = tn_out(arrays->y, a->b, a->h, queries->from + i);

        queries->delta[i] = a->kernels->dot(queries->g + i * a->Mp, y, a->plan->M);
        queries->lse[i] = a->lse ? a->lse[queries->from + i] : 0.0f;
    }
}

void tn_softmax_load_keys(const struct tn_softmax_head *a, struct tn_softmax_keys *keys,
                          size_t from, size_t end)
{
    keys->from = from;
    keys->n = block_size(from, end);
    pack_keys(a, keys->k, a->Dp, TN_KEY, from, keys->n, a->plan->D);
    pack_keys(a, keys->v, a->Mp, TN_VALUE, from, keys->n, a->plan->M);
    transpose(a, keys->kt, keys->k, a->Dp, keys->n, a->plan->D);
}

void tn_softmax_load_keys_backward(const struct tn_softmax_head *a,
                                   struct tn_softmax_keys *keys, size_t from, size_t end)
{
    tn_softmax_load_keys(a, keys, from, end);
    transpose(a, keys->vt, keys->v, a->Mp, keys->n, a->plan->M);
    memset(keys->dk, 0, BLOCK * a->Dp * sizeof(float));
    memset(keys->dv, 0, BLOCK * a->Mp * sizeof(float));
}

/* ---- Forward ------------------------------------------------------------ */

bool tn_softmax_sees(const struct tn_softmax_head *a, const struct tn_softmax_queries *queries,
                     const struct tn_softmax_keys *keys)
{
    return queries->n > 0 && keys->n > 0 &&
           (!a->plan->causal || keys->from < a->past + queries->from + queries->n);
}

/* -inf where a query must not look: later keys, and the padding up to whole vectors. */
static void scores(const struct tn_softmax_head *a, float *s, size_t ld,
                   const struct tn_softmax_queries *queries, const struct tn_softmax_keys *keys)
{
    const size_t width = tn_padded(a->kernels, keys->n);

    a->kernels->product(s, (ptrdiff_t)ld, queries->q, (ptrdiff_t)a->Dp, 1, keys->kt, BLOCK,
                        queries->n, width, a->plan->D, false);
    for (size_t i = 0; i < queries->n; i++) {
        const size_t before = a->past + queries->from + i + 1; /* keys that causality allows */
        const size_t seen = !a->plan->causal       ? keys->n
                            : before <= keys->from ? 0
                                                   : tn_min(keys->n, before - keys->from);

        for (size_t j = seen; j < width; j++)
            s[i * ld + j] = -INFINITY;
    }
}

/* y += p v. */
static void gather(const struct tn_softmax_head *a, struct tn_softmax_queries *queries,
                   const struct tn_softmax_keys *keys, const float *p, size_t ld)
{
    a->kernels->product(queries->y, (ptrdiff_t)a->Mp, p, (ptrdiff_t)ld, 1, keys->v,
                        (ptrdiff_t)a->Mp, queries->n, a->Mp, keys->n, true);
}

/* A query that has seen no key has a maximum of -inf, and so has one whose scores are all NaN:
 * the sum of its weights then is 0 or NaN. */
static float unit_of(float max)
{
    return max > -INFINITY ? max : 0.0f;
}

/* 0 for a query without keys; NaN stays NaN. */
static float inverse_of(float sum)
{
    return sum == 0.0f ? 0.0f : 1.0f / sum;
}

/* A row of scores becomes weights in units of exp(max); what was gathered is brought to them.
 * */
static void weigh(const struct tn_softmax_head *a, struct tn_softmax_queries *queries, size_t i,
                  float *s, size_t width)
{
    const float most = a->kernels->max(s, width);

    if (most > queries->max[i]) {
        float *const y = queries->y + i * a->Mp;
        const float by = expf(queries->max[i] - most);

        a->kernels->scale(y, y, by, a->Mp);
        queries->sum[i] *= by;
        queries->max[i] = most;
    }
    queries->sum[i] += a->kernels->exp_sum(s, s, unit_of(queries->max[i]), width);
}

void tn_softmax_meet(const struct tn_softmax_head *a, struct tn_softmax_queries *queries,
                     const struct tn_softmax_keys *keys)
{
    float *const s = a->tiles->s;
    const size_t width = tn_padded(a->kernels, keys->n);

    scores(a, s, BLOCK, queries, keys);
    for (size_t i = 0; i < queries->n; i++)
        weigh(a, queries, i, s + i * BLOCK, width);
    gather(a, queries, keys, s, BLOCK);
}

void tn_softmax_finish(const struct tn_softmax_head *a,
                       const struct tn_softmax_queries *queries)
{
    for (size_t i = 0; i < queries->n; i++) {
        const float sum = queries->sum[i];

        a->kernels->scale(tn_out(a->call->arrays->y, a->b, a->h, queries->from + i),
                          queries->y + i * a->Mp, inverse_of(sum), a->plan->M);
        if (a->lse) /* nothing was seen: every weight of backward is exp(-inf) */
            a->lse[queries->from + i] =
                sum == 0.0f ? INFINITY : unit_of(queries->max[i]) + logf(sum);
    }
}

/* ---- Forward with the whole matrix -------------------------------------- */

static float *stored_tile(const struct tn_softmax_head *a,
                          const struct tn_softmax_queries *queries,
                          const struct tn_softmax_keys *keys)
{
    return a->stored + queries->from * a->stored_ld + keys->from;
}

void tn_softmax_store_scores(const struct tn_softmax_head *a,
                             const struct tn_softmax_queries *queries,
                             const struct tn_softmax_keys *keys)
{
    scores(a, stored_tile(a, queries, keys), a->stored_ld, queries, keys);
}

void tn_softmax_store_weights(const struct tn_softmax_head *a,
                              struct tn_softmax_queries *queries, size_t end)
{
    for (size_t i = 0; i < queries->n; i++) {
        float *const row = a->stored + (queries->from + i) * a->stored_ld;
        const float most = a->kernels->max(row, end);
        const float sum = a->kernels->exp_sum(row, row, unit_of(most), end);

        a->kernels->scale(row, row, inverse_of(sum), end);
        memset(row + end, 0, (a->stored_ld - end) * sizeof(float));
        queries->sum[i] = 1.0f;
    }
}

void tn_softmax_store_gather(const struct tn_softmax_head *a,
                             struct tn_softmax_queries *queries,
                             const struct tn_softmax_keys *keys)
{
    gather(a, queries, keys, stored_tile(a, queries, keys), a->stored_ld);
}

/* ---- Backward ----------------------------------------------------------- */

/* dp becomes ds, with the weights that forward stored. */
static void gradients_of_stored(const struct tn_softmax_head *a,
                                const struct tn_softmax_queries *queries,
                                const struct tn_softmax_keys *keys, size_t width)
{
    for (size_t i = 0; i < queries->n; i++) {
        float *const s = a->tiles->s + i * BLOCK, *const dp = a->tiles->dp + i * BLOCK;
        const float delta = queries->delta[i];

        memcpy(s, stored_tile(a, queries, keys) + i * a->stored_ld, width * sizeof(float));
        for (size_t j = 0; j < width; j++)
            dp[j] = s[j] * (dp[j] - delta);
    }
}

void tn_softmax_meet_backward(const struct tn_softmax_head *a,
                              const struct tn_softmax_queries *queries,
                              const struct tn_softmax_keys *keys)
{
    const size_t width = tn_padded(a->kernels, keys->n);
    float *const s = a->tiles->s, *const dp = a->tiles->dp;

    a->kernels->product(dp, BLOCK, queries->g, (ptrdiff_t)a->Mp, 1, keys->vt, BLOCK, queries->n,
                        width, a->plan->M, false);
    if (a->stored) {
        gradients_of_stored(a, queries, keys, width);
        return;
    }
    scores(a, s, BLOCK, queries, keys);
    for (size_t i = 0; i < queries->n; i++)
        a->kernels->softmax_backward(s + i * BLOCK, dp + i * BLOCK, queries->lse[i],
                                     queries->delta[i], width);
}

void tn_softmax_add_dq(const struct tn_softmax_head *a, float *dq,
                       const struct tn_softmax_queries *queries,
                       const struct tn_softmax_keys *keys)
{
    a->kernels->product(dq, (ptrdiff_t)a->Dp, a->tiles->dp, BLOCK, 1, keys->k, (ptrdiff_t)a->Dp,
                        queries->n, a->Dp, keys->n, true);
}

void tn_softmax_add_dkv(const struct tn_softmax_head *a,
                        const struct tn_softmax_queries *queries, struct tn_softmax_keys *keys)
{
    a->kernels->product(keys->dk, (ptrdiff_t)a->Dp, a->tiles->dp, 1, BLOCK, queries->q,
                        (ptrdiff_t)a->Dp, keys->n, a->Dp, queries->n, true);
    a->kernels->product(keys->dv, (ptrdiff_t)a->Mp, a->tiles->s, 1, BLOCK, queries->g,
                        (ptrdiff_t)a->Mp, keys->n, a->Mp, queries->n, true);
}

/* ---- Gradients out ------------------------------------------------------ */

void tn_softmax_store_dq(const struct tn_softmax_head *a, size_t from, size_t n,
                         const float *rows)
{
    for (size_t i = 0; i < n; i++)
        a->kernels->scale(tn_out(a->call->arrays->din[TN_QUERY], a->b, a->h, from + i),
                          rows + i * a->Dp, a->scale, a->plan->D);
}

/* Row j of dk or dv, one of the state or of the call; and of the gradients of states, both
 * NULL if they are not wanted. */
static void store_key_row(const struct tn_softmax_head *a, size_t input, size_t j,
                          const float *row, size_t width, const float *given, float *before)
{
    const bool cached = j < a->past;
    float *const to =
        cached ? before : tn_out(a->call->arrays->din[input], a->b, a->h, j - a->past);

    if (!to)
        return;
    memcpy(to, row, width * sizeof(float));
    if (given && j < a->length)
        a->kernels->axpy(to, 1.0f, given, width);
}

void tn_softmax_store_dkv(const struct tn_softmax_head *a, const struct tn_softmax_keys *keys,
                          size_t from, size_t end)
{
    const tarn_attention *const plan = a->plan;
    const size_t D = plan->D, M = plan->M;
    float *const given = (float *)(uintptr_t)tn_call_dstate1(a->call, a->b);
    float *const before = tn_call_dstate0(a->call, a->b);

    for (size_t j = from; j < tn_min(end, from + BLOCK); j++) {
        store_key_row(a, TN_KEY, j, keys->dk + (j - from) * a->Dp, D,
                      given ? tn_kv_cache_key(plan, given, a->h, j) : NULL,
                      before ? tn_kv_cache_key(plan, before, a->h, j) : NULL);
        store_key_row(a, TN_VALUE, j, keys->dv + (j - from) * a->Mp, M,
                      given ? tn_kv_cache_value(plan, given, a->h, j) : NULL,
                      before ? tn_kv_cache_value(plan, before, a->h, j) : NULL);
    }
}
