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
        .columns = tn_round_up(chunk, kernels->lanes),
        .D = D,
        .M = M,
        .row = backward ? D + 2 * M : D + M,
        .sum = backward ? D + M : M,
    };
}

static struct tn_lsh_tiles tiles_take(const struct tn_lsh_head *a, struct tn_arena *arena)
{
    const size_t both = 2 * a->columns;

    return (struct tn_lsh_tiles){
        .position = tn_arena_alloc(arena, both, sizeof(int32_t)),
        .bucket = tn_arena_alloc(arena, both, sizeof(int32_t)),
        .by = tn_arena_floats(arena, both),
        .exists = tn_arena_alloc(arena, both, sizeof(int32_t)),
        .rows = tn_arena_alloc(arena, both, a->row * sizeof(float)),
        .q_turned = tn_arena_alloc(arena, a->D, both * sizeof(float)),
        .v_turned = tn_arena_alloc(arena, a->M, both * sizeof(float)),
        .gradients = tn_arena_alloc(arena, both, a->sum * sizeof(float)),
        .w = tn_arena_floats(arena, both),
    };
}

static struct tn_lsh_scratch scratch_take(const struct tn_lsh_head *a, struct tn_arena *arena)
{
    const size_t N = a->plan->N, buckets = tn_lsh_option(a->plan, TN_LSH_BUCKETS);

    return (struct tn_lsh_scratch){
        .rows = tn_arena_alloc(arena, N, a->row * sizeof(float)),
        .sums = tn_arena_alloc(arena, N, a->sum * sizeof(float)),
        .inverse = tn_arena_floats(arena, N),
        .maximum = tn_arena_floats(arena, N),
        .total = tn_arena_floats(arena, N),
        .delta = tn_arena_floats(arena, N),
        .w = tn_arena_floats(arena, N),
        .order = tn_arena_floats(arena, N),
        .scores = tn_arena_floats(arena, a->chunk * 2 * a->columns),
        .dscores = tn_arena_floats(arena, a->chunk * 2 * a->columns),
        .turned = tn_arena_floats(arena, a->chunk * tn_max(a->columns, a->M)),
        .tiles = tiles_take(a, arena),
        .hash = tn_lsh_hash_lay_out(arena, a->kernels, a->plan->D, buckets,
                                    tn_lsh_option(a->plan, TN_LSH_ROUNDS), N),
    };
}

struct tn_lsh_scratch *tn_lsh_lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    const struct tn_lsh_head sizes = sizes_of(plan, true); /* not smaller than forward's */
    const size_t threads = tn_min(plan->host.threads, plan->B * plan->H);
    struct tn_lsh_scratch *const all = tn_arena_alloc(arena, threads, sizeof *all);

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

/* Scores are at most |q| / sqrt D, since keys have no length above one. With this bound a score
 * less a log-sum-exp of up to 2^20 of them stays above -87, where exponentials end. */
static const float bound = 36.0f;

static struct tn_column column(float *at)
{
    return (struct tn_column){at, 1};
}

/* n rows of x become a part of the packed rows; returns their dots with z. */
static void pack_part(const struct tn_lsh_head *a, size_t at, float *dots, tarn_input x,
                      tarn_input z, size_t width)
{
    static float one = 1.0f;

    a->kernels->scale_dot_rows(a->scratch->rows + at, (ptrdiff_t)a->row,
                               tn_in(x, a->b, a->h, 0), x.position, (struct tn_column){&one, 0},
                               column(dots), tn_in(z, a->b, a->h, 0), z.position, a->n, width);
}

/* The length of a vector of zeros must not be zero; a mean square of 1e-6 is Reformer's. */
static float invert_lengths(const struct tn_lsh_head *a, float *square)
{
    const float D = (float)a->plan->D;
    float most = 0.0f;

    for (size_t n = 0; n < a->n; n++) {
        most = most > square[n] ? most : square[n];
        square[n] = 1.0f / (sqrtf(square[n] + D * 1e-6f) * sqrtf(D));
    }
    return most;
}

static bool pack(const struct tn_lsh_head *a, bool backward)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    const tarn_input q = arrays->in[TN_LSH_QUERY], v = arrays->in[TN_LSH_VALUE];
    const tarn_input y = {arrays->y.data, arrays->y.batch, arrays->y.position, arrays->y.head};
    const size_t D = a->plan->D, M = a->plan->M;

    if (a->D != D || a->M != M)
        memset(a->scratch->rows, 0, a->n * a->row * sizeof(float));
    pack_part(a, 0, a->scratch->inverse, q, q, D);
    a->kernels->scale_rows(a->scratch->rows + a->D, (ptrdiff_t)a->row, tn_in(v, a->b, a->h, 0),
                           v.position, (struct tn_column){NULL, 0}, a->n, M, false);
    if (backward)
        pack_part(a, a->D + a->M, a->scratch->delta, arrays->dy, y, M);
    return invert_lengths(a, a->scratch->inverse) <= bound * bound * (float)D;
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
    head.bounded = pack(&head, backward);
    return head;
}

/* ---- tiles -------------------------------------------------------------- */

/* Of a slot: what the order says of its positions, and no keys in the places after them. */
static void load_entries(struct tn_lsh_head *a, const float *order)
{
    struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const size_t count = tiles->count[a->slot], at = a->slot * a->columns;
    int32_t *const position = tiles->position + at, *const bucket = tiles->bucket + at;
    int32_t *const exists = tiles->exists + at;
    float *const by = tiles->by + at;

    for (size_t i = 0; i < count; i++) {
        const uint32_t entry = tn_lsh_entry(order, i), n = entry & ~TN_LSH_STARTS;

        a->bucket += (entry & TN_LSH_STARTS) != 0;
        position[i] = (int32_t)n;
        bucket[i] = a->bucket;
        by[i] = a->scratch->inverse[n];
        exists[i] = -1;
    }
    for (size_t i = count; i < a->columns; i++) {
        position[i] = INT32_MAX;
        bucket[i] = -1;
        by[i] = 0.0f;
        exists[i] = 0;
    }
}

void tn_lsh_load(struct tn_lsh_head *a, const float *order, size_t first)
{
    struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const size_t count = tn_min(a->chunk, a->n - first);
    const ptrdiff_t row = (ptrdiff_t)a->row, both = 2 * (ptrdiff_t)a->columns;

    a->bucket = first == 0 ? -1 : a->bucket;
    a->slot = first == 0 ? 0 : a->slot ^ 1;
    a->used = first == 0 ? a->columns : 2 * a->columns;
    a->next = order + first + count;
    a->next_count = tn_min(a->chunk, a->n - first - count);
    tiles->count[a->slot] = count;
    load_entries(a, order + first);

    const size_t at = a->slot * a->columns;
    float *const rows = tiles->rows + at * a->row;

    a->kernels->gather_rows(rows, row, a->scratch->rows, row, tiles->position + at, count,
                            a->row);
    memset(rows + count * a->row, 0, (a->columns - count) * a->row * sizeof(float));
    a->kernels->transpose(tiles->q_turned + at, both, rows, row, a->columns, a->plan->D);
    if (a->row > a->D + a->M) /* there is a dy */
        a->kernels->transpose(tiles->v_turned + at, both, rows + a->D, row, a->columns,
                              a->plan->M);
}

void tn_lsh_fetch_ahead(const struct tn_lsh_head *a, size_t quarter)
{
    const size_t end = a->next_count * (quarter + 1) / 4;

    for (size_t i = a->next_count * quarter / 4; i < end; i++) {
        const size_t position = tn_lsh_entry(a->next, i) & ~TN_LSH_STARTS;
        const float *const row = a->scratch->rows + position * a->row;
        const float *const sum = a->scratch->sums + position * a->sum;

        for (size_t at = 0; at < a->row; at += LINE)
            __builtin_prefetch(row + at, 0, 3);
        for (size_t at = 0; at < a->sum; at += LINE)
            __builtin_prefetch(sum + at, 1, 3);
    }
}

struct tn_lsh_scores tn_lsh_scores(const struct tn_lsh_head *a)
{
    const struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const size_t at = a->slot * a->columns, count = tiles->count[a->slot];
    const ptrdiff_t both = 2 * (ptrdiff_t)a->columns;

    a->kernels->product(a->scratch->scores, both, tiles->rows + at * a->row, (ptrdiff_t)a->row,
                        1, tiles->q_turned, both, count, a->used, a->plan->D, false);
    return (struct tn_lsh_scores){
        .s = a->scratch->scores,
        .ds = a->scratch->dscores,
        .ld = both,
        .rows = count,
        .columns = a->used,
        .row_position = tiles->position + at,
        .row_bucket = tiles->bucket + at,
        .position = tiles->position,
        .bucket = tiles->bucket,
        .exists = tiles->exists,
        .by = tiles->by,
        .total = a->scratch->total,
        .delta = a->scratch->delta,
        .w = tiles->w,
        .causal = a->plan->causal,
        .same_bucket = tn_lsh_option(a->plan, TN_LSH_SAME_BUCKET),
        .bounded = a->bounded,
    };
}
