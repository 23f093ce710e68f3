/* SPDX-License-Identifier: MIT */
#include "layer/linear.h"

#include <math.h>
#include <string.h>

#include "layer/recurrence.h"

enum { T = TN_LINEAR_TILE };

/* ---- Sizes -------------------------------------------------------------- */

/* Rows of a wide state are an odd number of cache lines apart: a column of it then spreads over
 * all sets of the cache, where a power of two would meet in a few. */
static size_t state_ld(size_t width)
{
    const size_t line = 16, lines = tn_blocks(width, line);

    return width < 64 ? width : (lines | 1) * line;
}

/* Of an output: what the caches that its reader shares will not hold. */
static const size_t streamed_floats = 4 * 1024 * 1024 / sizeof(float);

struct tn_linear_sizes tn_linear_sizes_of(const tarn_attention *plan)
{
    const bool normalises = plan->options.value[TN_LINEAR_NORMALISE] != 0.0;
    const double chunk = plan->options.value[TN_LINEAR_CHUNK];
    const size_t C = plan->map.C, M = plan->M;
    const size_t C_ld = tn_padded(plan->host.kernels, C),
                 width = tn_padded(plan->host.kernels, M);

    return (struct tn_linear_sizes){
        .normalises = normalises,
        .C = C,
        .M = M,
        .rows = normalises ? M + 1 : M,
        .C_ld = C_ld,
        .width = width,
        .S_ld = state_ld(width),
        .St_ld = state_ld(C_ld),
        .chunk = chunk < 0.0 ? tn_recurrence_chunk(tn_max(C, M)) : (size_t)chunk,
        .streams = plan->B * plan->H * plan->N * tn_min(plan->D, M) >= streamed_floats,
    };
}

static struct tn_linear_rows packed_take(size_t rows, size_t ld, struct tn_arena *arena)
{
    return (struct tn_linear_rows){tn_arena_floats(arena, rows * ld), (ptrdiff_t)ld};
}

size_t tn_linear_packed_floats(const tarn_attention *plan)
{
    const struct tn_kernels *const kernels = plan->host.kernels;

    return 2 * (tn_padded(kernels, plan->map.C) + tn_padded(kernels, plan->M + 1));
}

struct tn_linear_tiles tn_linear_tiles_lay_out(const tarn_attention *plan, size_t rows,
                                               struct tn_arena *arena)
{
    const struct tn_linear_sizes s = tn_linear_sizes_of(plan);
    const size_t M_ld = tn_padded(plan->host.kernels, s.M + 1);
    const size_t chunk_floats =
        tn_recurrence_scratch(plan->host.kernels, s.chunk, tn_max(s.C, s.rows));

    return (struct tn_linear_tiles){
        .q = packed_take(rows, s.C_ld, arena),
        .k = packed_take(rows, s.C_ld, arena),
        .v = packed_take(rows, M_ld, arena),
        .g = packed_take(rows, M_ld, arena),
        .o = packed_take(T, tn_max(s.C_ld, s.width), arena),
        .den = tn_arena_floats(arena, T),
        .S = tn_arena_floats(arena, s.C * s.S_ld),
        .R = tn_arena_floats(arena, s.C * s.S_ld),
        .z = tn_arena_floats(arena, s.C_ld),
        .far_z = tn_arena_floats(arena, s.C_ld),
        .St = tn_arena_floats(arena, s.rows * s.St_ld),
        .Rt = tn_arena_floats(arena, s.rows * s.St_ld),
        .chunk = tn_arena_floats(arena, chunk_floats),
        .rows = rows,
    };
}

static void clear(struct tn_linear_rows tile, size_t n)
{
    memset(tile.at, 0, n * (size_t)tile.ld * sizeof(float));
}

void tn_linear_head_clear(const struct tn_linear_head *a, size_t n)
{
    const struct tn_linear_tiles *const t = a->tiles;

    if (a->sizes.C_ld > a->sizes.C) {
        clear(t->q, n);
        clear(t->k, n);
    }
    if (a->sizes.width > a->sizes.M) {
        clear(t->v, n);
        clear(t->g, n);
    }
    for (size_t i = 0; i < n; i++)
        t->v.at[i * (size_t)t->v.ld + a->sizes.M] = 1.0f;
}

void tn_linear_head_open(struct tn_linear_head *a)
{
    a->sizes = tn_linear_sizes_of(a->plan);
    a->length = tn_key_length(a->call, a->b);
    a->then = a->plan->N;
    tn_linear_head_clear(a, T);
}

/* ---- Rows of a tile ----------------------------------------------------- */

struct tn_linear_rows tn_linear_rows(const struct tn_linear_head *a, struct tn_linear_rows tile,
                                     size_t from)
{
    const size_t position = a->keeps ? from - a->first : 0;

    return (struct tn_linear_rows){tile.at + position * (size_t)tile.ld, tile.ld};
}

/* Those of n positions whose keys exist. */
static size_t existing(size_t from, size_t n, size_t length)
{
    return from < length ? tn_min(n, length - from) : 0;
}

/* Inverse denominators are kept for each position, B x H x N. */
static float *inverses_at(const struct tn_linear_head *a, size_t position)
{
    return a->call->saved + (a->b * a->plan->H + a->h) * a->plan->N + position;
}

/* ---- In ----------------------------------------------------------------- */

/* tile = phi(x). */
static void load_features(const struct tn_linear_head *a, struct tn_linear_rows tile,
                          tarn_input x, size_t from, size_t n)
{
    const struct tn_linear_rows phi = tn_linear_rows(a, tile, from);

    tn_feature_map_forward(&a->plan->map, phi.at, phi.ld, tn_in(x, a->b, a->h, from),
                           x.position, n);
}

static void load_queries(const struct tn_linear_head *a, size_t from, size_t n)
{
    load_features(a, a->tiles->q, a->call->arrays->in[TN_QUERY], from, n);
}

/* v' = (v, 1), of which the last column is there from the start. */
static void load_values(const struct tn_linear_head *a, size_t from, size_t n)
{
    const tarn_input v = a->call->arrays->in[TN_VALUE];
    const struct tn_linear_rows to = tn_linear_rows(a, a->tiles->v, from);

    a->plan->host.kernels->scale_rows(to.at, to.ld, tn_in(v, a->b, a->h, from), v.position,
                                      (struct tn_column){0}, n, a->sizes.M, false);
}

/* Keys past the length are zero after phi, and so are their values, whatever stands there. */
static void load_keys(const struct tn_linear_head *a, size_t from, size_t n)
{
    const size_t there = existing(from, n, a->length);
    const struct tn_linear_rows k = tn_linear_rows(a, a->tiles->k, from);
    const struct tn_linear_rows v = tn_linear_rows(a, a->tiles->v, from);

    load_features(a, a->tiles->k, a->call->arrays->in[TN_KEY], from, there);
    load_values(a, from, there);
    for (size_t i = there; i < n; i++) {
        memset(k.at + (ptrdiff_t)i * k.ld, 0, a->sizes.C * sizeof(float));
        memset(v.at + (ptrdiff_t)i * v.ld, 0, a->sizes.M * sizeof(float));
    }
}

/* g = dy times the inverse denominators, and dots = dy . y if it normalises. */
static void load_scaled(const struct tn_linear_head *a, struct tn_linear_rows g, size_t from,
                        size_t n)
{
    const tarn_input dy = a->call->arrays->dy;
    const tarn_output y = a->call->arrays->y;
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const float *const at = tn_in(dy, a->b, a->h, from);

    if (a->sizes.normalises) {
        const struct tn_column by = {inverses_at(a, from), 1}, dots = {a->tiles->den, 1};

        kernels->scale_dot_rows(g.at, g.ld, at, dy.position, by, dots,
                                tn_out(y, a->b, a->h, from), y.position, n, a->sizes.M);
    } else {
        kernels->scale_rows(g.at, g.ld, at, dy.position, (struct tn_column){0}, n, a->sizes.M,
                            false);
    }
}

/* Through y = n / d:  dn = dy / d,  dd = -(dy . y) / d; a denominator held at eps has no
 * gradient. */
static void load_gradients(const struct tn_linear_head *a, size_t from, size_t n)
{
    const float most = 1.0f / (float)a->plan->options.value[TN_LINEAR_EPS];
    const struct tn_linear_rows g = tn_linear_rows(a, a->tiles->g, from);

    load_scaled(a, g, from, n);
    for (size_t i = 0; i < n && a->sizes.normalises; i++) {
        const float by = *inverses_at(a, from + i);

        g.at[(ptrdiff_t)i * g.ld + (ptrdiff_t)a->sizes.M] =
            a->tiles->den[i] * (fabsf(by) < most ? -by : 0.0f);
    }
}

void tn_linear_load(const struct tn_linear_head *a, unsigned arrays, size_t from, size_t n)
{
    if (arrays & TN_LINEAR_QUERIES)
        load_queries(a, from, n);
    if (arrays & TN_LINEAR_KEYS)
        load_keys(a, from, n);
    if (arrays & TN_LINEAR_GRADIENTS)
        load_gradients(a, from, n);
}

/* Inline, because gcc removes calls of functions of its file that do nothing but prefetch. */
static inline __attribute__((always_inline)) void prefetch_rows(const struct tn_linear_head *a,
                                                                tarn_input x, size_t width,
                                                                size_t from, size_t to)
{
    const size_t line = 16;

    for (size_t i = from; i < to; i++) {
        const float *const row = tn_in(x, a->b, a->h, i);

        for (size_t column = 0; column < width; column += line)
            __builtin_prefetch(row + column, 0, 2);
    }
}

void tn_linear_prefetch(const struct tn_linear_head *a, unsigned arrays, size_t from, size_t to)
{
    const tarn_attention_arrays *const x = a->call->arrays;
    const size_t D = a->plan->D, M = a->plan->M;

    if (arrays & TN_LINEAR_QUERIES)
        prefetch_rows(a, x->in[TN_QUERY], D, from, to);
    if (arrays & TN_LINEAR_KEYS) {
        prefetch_rows(a, x->in[TN_KEY], D, from, to);
        prefetch_rows(a, x->in[TN_VALUE], M, from, to);
    }
    if (arrays & TN_LINEAR_GRADIENTS)
        prefetch_rows(a, x->dy, M, from, to);
    if (arrays & TN_LINEAR_GRADIENTS && a->sizes.normalises)
        prefetch_rows(a, (tarn_input){x->y.data, x->y.batch, x->y.position, x->y.head}, M, from,
                      to);
}

/* ---- Out ---------------------------------------------------------------- */

static float inverse_of(float den, float eps)
{
    const float sum = den + eps;
    const float inverse = 1.0f / (fabsf(sum) < eps ? copysignf(eps, sum) : sum);

    return isinf(inverse) ? 0.0f : inverse; /* of zero, or as good as zero */
}

float tn_linear_inverse(const tarn_attention *plan, float den)
{
    return inverse_of(den, (float)plan->options.value[TN_LINEAR_EPS]);
}

/* Denominators of the tile become their inverses, and are saved if backward will ask. */
static void invert(const struct tn_linear_head *a, size_t from, size_t n)
{
    const float eps = (float)a->plan->options.value[TN_LINEAR_EPS];
    float *const den = a->tiles->den;

    for (size_t i = 0; i < n; i++)
        den[i] = inverse_of(den[i], eps);
    if (a->call->saved)
        memcpy(inverses_at(a, from), den, n * sizeof(float));
}

/* The tile o, each row times `by` (or 1: NULL), to an array. */
static void store_rows(const struct tn_linear_head *a, tarn_output out, float *by, size_t from,
                       size_t n)
{
    const struct tn_linear_rows o = a->tiles->o;

    a->plan->host.kernels->scale_rows(tn_out(out, a->b, a->h, from), out.position, o.at, o.ld,
                                      (struct tn_column){by, 1}, n, a->sizes.M,
                                      a->sizes.streams);
}

/* (12) */
void tn_linear_store_output(const struct tn_linear_head *a, size_t from, size_t n)
{
    const bool divides = a->sizes.normalises && !a->pending;

    if (divides)
        invert(a, from, n);
    store_rows(a, a->call->arrays->y, divides ? a->tiles->den : NULL, from, n);
    if (a->pending)
        memcpy(a->pending + from, a->tiles->den, n * sizeof(float));
}

/* What was stored with `pending`. */
void tn_linear_load_output(const struct tn_linear_head *a, size_t from, size_t n)
{
    const struct tn_linear_rows o = a->tiles->o;

    for (size_t i = 0; i < n; i++)
        memcpy(o.at + (ptrdiff_t)i * o.ld, tn_out(a->call->arrays->y, a->b, a->h, from + i),
               a->sizes.M * sizeof(float));
    memcpy(a->tiles->den, a->pending + from, n * sizeof(float));
}

static void clear_gradients(const struct tn_linear_head *a, tarn_output dx, size_t from,
                            size_t n)
{
    for (size_t i = 0; i < n; i++)
        memset(tn_out(dx, a->b, a->h, from + i), 0, a->plan->D * sizeof(float));
}

void tn_linear_store_gradients(const struct tn_linear_head *a, tarn_output dx, tarn_input x,
                               struct tn_linear_rows phi, size_t from, size_t n, size_t length)
{
    const size_t there = existing(from, n, length);
    const struct tn_linear_rows mapped = tn_linear_rows(a, phi, from), dphi = a->tiles->o;

    tn_feature_map_backward(&a->plan->map, tn_out(dx, a->b, a->h, from), dx.position, dphi.at,
                            dphi.ld, tn_in(x, a->b, a->h, from), x.position, mapped.at,
                            mapped.ld, there, a->sizes.streams);
    clear_gradients(a, dx, from + there, n - there);
}

void tn_linear_store_dv(const struct tn_linear_head *a, size_t from, size_t n)
{
    store_rows(a, a->call->arrays->din[TN_VALUE], NULL, from, n);
}
