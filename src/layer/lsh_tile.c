/* SPDX-License-Identifier: MIT */
#include "layer/lsh_tile.h"

#include <math.h>

/* ---- memory ------------------------------------------------------------- */

/* The sizes of a head; what only a call knows is zero. */
static struct tn_lsh_head sizes_of(const tarn_attention *plan, bool backward)
{
    const struct tn_kernels *const kernels = plan->host.kernels;
    const size_t D = tn_padded(kernels, plan->D), M = tn_padded(kernels, plan->M);
    const size_t chunk = tn_min(tn_lsh_option(plan, TN_LSH_CHUNK), plan->N);

    return (struct tn_lsh_head){
        .plan = plan,
        .kernels = kernels,
        .chunk = chunk,
        .columns = tn_padded(kernels, chunk),
        .D = D,
        .M = M,
        .row = backward ? D + 2 * M : D + M,
        .sum = backward ? 2 * D + M : M,
    };
}

static struct tn_lsh_tile tile_take(const struct tn_lsh_head *a, struct tn_arena *arena)
{
    return (struct tn_lsh_tile){
        .position = tn_arena_take(arena, a->columns, sizeof(int32_t)),
        .bucket = tn_arena_take(arena, a->columns, sizeof(int32_t)),
        .rows = tn_arena_take(arena, a->chunk, a->row * sizeof(float)),
        .k = tn_arena_take(arena, a->chunk, a->D * sizeof(float)),
        .k_turned = tn_arena_take(arena, a->D, a->columns * sizeof(float)),
        .v_turned = tn_arena_take(arena, a->M, a->columns * sizeof(float)),
        .gradients = tn_arena_take(arena, a->chunk, a->sum * sizeof(float)),
    };
}

static struct tn_lsh_scratch scratch_take(const struct tn_lsh_head *a, struct tn_arena *arena)
{
    const size_t N = a->plan->N, buckets = tn_lsh_option(a->plan, TN_LSH_BUCKETS);

    return (struct tn_lsh_scratch){
        .rows = tn_arena_take(arena, N, a->row * sizeof(float)),
        .sums = tn_arena_take(arena, N, a->sum * sizeof(float)),
        .inverse = tn_arena_floats(arena, N),
        .maximum = tn_arena_floats(arena, N),
        .total = tn_arena_floats(arena, N),
        .delta = tn_arena_floats(arena, N),
        .order = tn_arena_floats(arena, N),
        .scores = tn_arena_floats(arena, a->chunk * 2 * a->columns),
        .slopes = tn_arena_floats(arena, a->chunk * 2 * a->columns),
        .out = tn_arena_take(arena, a->chunk, a->M * sizeof(float)),
        .factor = tn_arena_floats(arena, a->chunk),
        .tiles = {tile_take(a, arena), tile_take(a, arena)},
        .hash = tn_lsh_hash_lay_out(arena, a->kernels, a->plan->D, buckets, N),
    };
}

struct tn_lsh_scratch *tn_lsh_lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    const struct tn_lsh_head sizes = sizes_of(plan, true); /* not smaller than forward's */
    const size_t threads = tn_min(plan->host.threads, plan->B * plan->H);
    struct tn_lsh_scratch *const all = tn_arena_take(arena, threads, sizeof *all);

    for (size_t t = 0; t < threads; t++) {
        const struct tn_lsh_scratch one = scratch_take(&sizes, arena);

        if (all)
            all[t] = one;
    }
    return all;
}

size_t tn_lsh_saved_floats(const tarn_attention *plan)
{
    const size_t factors[] = {plan->B, plan->H, plan->N,
                              1 + tn_lsh_option(plan, TN_LSH_ROUNDS)};
    size_t floats;

    return tn_size_product(&floats, factors, 4) ? floats : SIZE_MAX;
}

float *tn_lsh_saved_sums(const tarn_attention *plan, float *saved, size_t b, size_t h)
{
    return saved + (b * plan->H + h) * plan->N * (1 + tn_lsh_option(plan, TN_LSH_ROUNDS));
}

float *tn_lsh_saved_order(const tarn_attention *plan, float *saved, size_t b, size_t h,
                          size_t round)
{
    return tn_lsh_saved_sums(plan, saved, b, h) + (1 + round) * plan->N;
}

/* ---- packing ------------------------------------------------------------ */

enum { LINE = TN_ALIGN / sizeof(float) }; /* of a cache, in floats */

/* Asks for a row some rows ahead: the strides of several arrays at once are more than the
 * processor foresees. */
static float *row_load(const struct tn_lsh_head *a, float *row, tarn_input x, size_t n,
                       size_t width)
{
    const size_t padded = tn_padded(a->kernels, width);
    const float *const ahead = tn_in(x, a->b, a->h, tn_min(n + 8, a->n - 1));

    for (size_t at = 0; at < width; at += LINE)
        __builtin_prefetch(ahead + at);
    memcpy(row, tn_in(x, a->b, a->h, n), width * sizeof(float));
    memset(row + width, 0, (padded - width) * sizeof(float));
    return row + padded;
}

/* The length of a vector of zeros must not be zero; a mean square of 1e-6 is Reformer's. */
static float inverse_length(const struct tn_lsh_head *a, const float *q)
{
    const float D = (float)a->plan->D;

    return 1.0f / (sqrtf(a->kernels->dot(q, q, a->D) + D * 1e-6f) * sqrtf(D));
}

static void pack(const struct tn_lsh_head *a, bool backward)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;

    for (size_t n = 0; n < a->n; n++) {
        float *const row = a->scratch->rows + n * a->row;
        float *const v = row_load(a, row, arrays->in[TN_LSH_QUERY], n, a->plan->D);
        float *const dy = row_load(a, v, arrays->in[TN_LSH_VALUE], n, a->plan->M);

        if (backward)
            row_load(a, dy, arrays->dy, n, a->plan->M);
        a->scratch->inverse[n] = inverse_length(a, row);
    }
}

/* Columns past a count are multiplied before they are masked: let them be numbers. */
static void tile_clear(const struct tn_lsh_head *a, struct tn_lsh_tile *tile)
{
    memset(tile->k_turned, 0, a->D * a->columns * sizeof(float));
    memset(tile->v_turned, 0, a->M * a->columns * sizeof(float));
}

struct tn_lsh_head tn_lsh_head_open(const struct tn_attention_call *call,
                                    struct tn_lsh_scratch *scratch, size_t index, bool backward)
{
    struct tn_lsh_head head = sizes_of(call->plan, backward);

    head.call = call;
    head.scratch = scratch;
    head.b = index / call->plan->H;
    head.h = index % call->plan->H;
    head.n = tn_key_length(call, head.b);
    tile_clear(&head, &scratch->tiles[0]);
    tile_clear(&head, &scratch->tiles[1]);
    pack(&head, backward);
    return head;
}

/* ---- tiles -------------------------------------------------------------- */

void tn_lsh_tile_load(struct tn_lsh_head *a, struct tn_lsh_tile *tile, const float *order,
                      size_t first)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const ptrdiff_t row_ld = (ptrdiff_t)a->row, columns = (ptrdiff_t)a->columns;

    a->bucket = first == 0 ? -1 : a->bucket;
    tile->count = tn_min(a->chunk, a->n - first);
    a->next = order + first + tile->count;
    a->next_count = tn_min(a->chunk, a->n - first - tile->count);
    for (size_t i = 0; i < tile->count; i++) {
        const uint32_t entry = tn_lsh_entry(order, first + i);
        const size_t position = entry & ~TN_LSH_STARTS;

        a->bucket += (entry & TN_LSH_STARTS) != 0;
        tile->position[i] = (int32_t)position;
        tile->bucket[i] = a->bucket;
        memcpy(tile->rows + i * a->row, scratch->rows + position * a->row,
               a->row * sizeof(float));
        a->kernels->scale(tile->k + i * a->D, tile->rows + i * a->row,
                          scratch->inverse[position], a->D);
    }
    for (size_t i = tile->count; i < a->columns; i++) {
        tile->position[i] = INT32_MAX;
        tile->bucket[i] = -1;
    }
    a->kernels->transpose(tile->k_turned, columns, tile->k, (ptrdiff_t)a->D, tile->count,
                          a->plan->D);
    if (a->row > a->D + a->M) /* there is a dy */
        a->kernels->transpose(tile->v_turned, columns, tile->rows + a->D, row_ld, tile->count,
                              a->plan->M);
}

/* Hides from query i of `chunk` the keys it must not see, in the part of its scores that
 * belongs to `keys`. Plain loops without branches: they become vector instructions. */
static void mask_part(const struct tn_lsh_head *a, float *s, const struct tn_lsh_tile *keys,
                      const struct tn_lsh_tile *chunk, size_t i)
{
    const int32_t position = chunk->position[i], bucket = chunk->bucket[i];

    if (a->plan->causal) /* a position past count is late, too */
        for (size_t j = 0; j < a->columns; j++)
            s[j] = keys->position[j] < position ? s[j] : -INFINITY;
    else
        for (size_t j = keys->count; j < a->columns; j++)
            s[j] = -INFINITY;
    if (tn_lsh_option(a->plan, TN_LSH_SAME_BUCKET))
        for (size_t j = 0; j < a->columns; j++)
            s[j] = keys->bucket[j] == bucket ? s[j] : -INFINITY;
}

/* The rows of a sorted order lie anywhere: asked for one chunk ahead, a row per row of work,
 * they have arrived when they are gathered. */
static void fetch_ahead(const struct tn_lsh_head *a, size_t i)
{
    if (i >= a->next_count)
        return;
    const size_t position = tn_lsh_entry(a->next, i) & ~TN_LSH_STARTS;
    const float *const row = a->scratch->rows + position * a->row;
    const float *const sum = a->scratch->sums + position * a->sum;

    for (size_t at = 0; at < a->row; at += LINE)
        __builtin_prefetch(row + at, 0, 3);
    for (size_t at = 0; at < a->sum; at += LINE)
        __builtin_prefetch(sum + at, 1, 3);
}

size_t tn_lsh_scores(const struct tn_lsh_head *a, const struct tn_lsh_tile *chunk,
                     const struct tn_lsh_tile *before)
{
    const struct tn_lsh_tile *const parts[] = {chunk, before};
    const size_t part_count = before->count > 0 ? 2 : 1;
    const ptrdiff_t columns = (ptrdiff_t)a->columns, ld = 2 * columns;

    for (size_t part = 0; part < part_count; part++)
        a->kernels->product(a->scratch->scores + part * a->columns, ld, chunk->rows,
                            (ptrdiff_t)a->row, 1, parts[part]->k_turned, columns, chunk->count,
                            a->columns, a->plan->D, false);
    for (size_t i = 0; i < chunk->count; i++) {
        float *const s = a->scratch->scores + i * 2 * a->columns;

        for (size_t part = 0; part < part_count; part++)
            mask_part(a, s + part * a->columns, parts[part], chunk, i);
        s[i] = -INFINITY; /* itself */
        fetch_ahead(a, i);
    }
    return part_count * a->columns;
}
