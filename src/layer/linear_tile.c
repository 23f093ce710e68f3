/* SPDX-License-Identifier: MIT */
#include "layer/linear_tile.h"

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
    const size_t rows = normalises ? M + 1 : M;

    return (struct tn_linear_sizes){
        .normalises = normalises,
        .C = C,
        .M = M,
        .rows = rows,
        .C_ld = C_ld,
        .M_ld = tn_padded(plan->host.kernels, M + 1),
        .o_ld = tn_max(C_ld, width),
        .width = width,
        .S_ld = state_ld(width),
        .St_ld = state_ld(C_ld),
        .kept = rows * C_ld,
        .chunk = chunk < 0.0 ? tn_recurrence_chunk(tn_max(C, M)) : (size_t)chunk,
        .streams = plan->B * plan->H * plan->N * tn_min(plan->D, M) >= streamed_floats,
    };
}

struct tn_linear_tiles tn_linear_tiles_take(const tarn_attention *plan, size_t heads,
                                            size_t slopes, struct tn_arena *arena)
{
    const struct tn_linear_sizes s = tn_linear_sizes_of(plan);
    const size_t rows = heads * T;
    const size_t chunk_floats =
        tn_recurrence_scratch(plan->host.kernels, s.chunk, tn_max(s.C, s.rows));

    return (struct tn_linear_tiles){
        .q = tn_arena_floats(arena, rows * s.C_ld),
        .k = tn_arena_floats(arena, rows * s.C_ld),
        .v = tn_arena_floats(arena, rows * s.M_ld),
        .g = tn_arena_floats(arena, rows * s.M_ld),
        .o = tn_arena_floats(arena, rows * s.o_ld),
        .den = tn_arena_floats(arena, rows),
        .S = tn_arena_floats(arena, heads * s.C * s.S_ld),
        .R = tn_arena_floats(arena, heads * s.C * s.S_ld),
        .z = tn_arena_floats(arena, heads * s.C_ld),
        .far_z = tn_arena_floats(arena, heads * s.C_ld),
        .St = tn_arena_floats(arena, heads * s.rows * s.St_ld),
        .Rt = tn_arena_floats(arena, heads * s.rows * s.St_ld),
        .slopes = tn_arena_floats(arena, heads * slopes),
        .chunk = tn_arena_floats(arena, chunk_floats),
    };
}

void tn_linear_group_open(struct tn_linear_group *a)
{
    const struct tn_linear_sizes s = a->sizes = tn_linear_sizes_of(a->plan);
    const size_t rows = a->heads * T;

    a->length = tn_key_length(a->call, a->b);
    memset(a->tiles->q, 0, rows * s.C_ld * sizeof(float));
    memset(a->tiles->k, 0, rows * s.C_ld * sizeof(float));
    memset(a->tiles->v, 0, rows * s.M_ld * sizeof(float));
    memset(a->tiles->g, 0, rows * s.M_ld * sizeof(float));
}

/* ---- Order -------------------------------------------------------------- */

/* Rows i .. i+n of the tile that starts at position `from`. */
struct rows {
    size_t from, i, n;
};

static struct rows rows_all(size_t from, size_t n)
{
    return (struct rows){from, 0, n};
}

/* Those whose positions are below `length`, and those that are not. */
static struct rows rows_before(struct rows rows, size_t length)
{
    rows.n = rows.from < length ? tn_min(rows.n, length - rows.from) : 0;
    return rows;
}

static struct rows rows_after(struct rows rows, size_t length)
{
    const size_t before = rows_before(rows, length).n;

    return (struct rows){rows.from, before, rows.n - before};
}

/* The order in which rows lie in an array: `inner` runs over heads if a position's heads are
 * closer together than a head's positions. */
struct order {
    bool heads_inner;
    size_t outer, inner;
};

static struct order order_of(const struct tn_linear_group *a, ptrdiff_t head,
                             ptrdiff_t position, struct rows rows)
{
    if (a->heads > 1 && tn_magnitude(head) < tn_magnitude(position))
        return (struct order){true, rows.n, a->heads};
    return (struct order){false, a->heads, rows.n};
}

/* Distances of rows along the two directions of an order. */
struct strides {
    ptrdiff_t outer, inner;
};

static struct strides strides_of(struct order order, ptrdiff_t head, ptrdiff_t position)
{
    return order.heads_inner ? (struct strides){position, head}
                             : (struct strides){head, position};
}

static struct strides tile_strides(struct order order, size_t ld)
{
    return strides_of(order, (ptrdiff_t)(T * ld), (ptrdiff_t)ld);
}

/* Inverse denominators are kept for each position, B x H x N: where the rows' start. */
static size_t kept_from(const struct tn_linear_group *a, size_t from)
{
    return (a->b * a->plan->H + a->h) * a->plan->N + from;
}

/* ---- In ----------------------------------------------------------------- */

/* tile = phi(x). */
static void load_features(const struct tn_linear_group *a, float *tile, tarn_input x,
                          struct rows rows)
{
    const struct order order = order_of(a, x.head, x.position, rows);
    const struct strides to = tile_strides(order, a->sizes.C_ld);
    const struct strides at = strides_of(order, x.head, x.position);
    const float *const first = tn_in(x, a->b, a->h, rows.from);

    for (size_t i = 0; i < order.outer; i++)
        tn_feature_map_forward(&a->plan->map, tile + (ptrdiff_t)i * to.outer, to.inner,
                               first + (ptrdiff_t)i * at.outer, at.inner, order.inner);
}

/* v' = (v, 1). */
static void load_values(const struct tn_linear_group *a, struct rows rows)
{
    const tarn_input v = a->call->arrays->in[TN_VALUE];
    const struct order order = order_of(a, v.head, v.position, rows);
    const struct strides to = tile_strides(order, a->sizes.M_ld);
    const struct strides at = strides_of(order, v.head, v.position);
    const float *const first = tn_in(v, a->b, a->h, rows.from);

    for (size_t i = 0; i < order.outer; i++)
        a->plan->host.kernels->scale_rows(
            a->tiles->v + (ptrdiff_t)i * to.outer, to.inner, first + (ptrdiff_t)i * at.outer,
            at.inner, (struct tn_column){0}, order.inner, a->sizes.M, false);
    for (size_t head = 0; head < a->heads; head++)
        for (size_t i = 0; i < rows.n; i++)
            a->tiles->v[(head * T + i) * a->sizes.M_ld + a->sizes.M] = 1.0f;
}

static void clear_rows(const struct tn_linear_group *a, float *tile, size_t ld,
                       struct rows rows)
{
    for (size_t head = 0; head < a->heads; head++)
        memset(tile + (head * T + rows.i) * ld, 0, rows.n * ld * sizeof(float));
}

void tn_linear_load_queries(const struct tn_linear_group *a, size_t from, size_t n)
{
    load_features(a, a->tiles->q, a->call->arrays->in[TN_QUERY], rows_all(from, n));
}

/* Keys past the length are zero behind phi, and so are their values, whatever stands there. */
void tn_linear_load_keys(const struct tn_linear_group *a, size_t from, size_t n)
{
    const struct rows rows = rows_all(from, n);
    const struct rows there = rows_before(rows, a->length), past = rows_after(rows, a->length);

    load_features(a, a->tiles->k, a->call->arrays->in[TN_KEY], there);
    load_values(a, there);
    clear_rows(a, a->tiles->k, a->sizes.C_ld, past);
    clear_rows(a, a->tiles->v, a->sizes.M_ld, past);
}

/* g = dy times the inverse denominators. With `y`, dots become dy . y. */
static void load_scaled(const struct tn_linear_group *a, struct rows rows, const float *y)
{
    const tarn_input dy = a->call->arrays->dy;
    const tarn_output out = a->call->arrays->y;
    const struct order order = order_of(a, dy.head, dy.position, rows);
    const struct strides to = tile_strides(order, a->sizes.M_ld), dots = tile_strides(order, 1);
    const struct strides at = strides_of(order, dy.head, dy.position);
    const struct strides y_at = strides_of(order, out.head, out.position);
    const struct strides kept = strides_of(order, (ptrdiff_t)a->plan->N, 1);
    const float *const first = tn_in(dy, a->b, a->h, rows.from);
    float *const inverses =
        a->sizes.normalises ? a->call->saved + kept_from(a, rows.from) : NULL;

    for (size_t i = 0; i < order.outer; i++) {
        const ptrdiff_t row = (ptrdiff_t)i;
        const struct tn_column by = {inverses ? inverses + row * kept.outer : NULL,
                                     inverses ? kept.inner : 0};

        if (y)
            a->plan->host.kernels->scale_dot_rows(
                a->tiles->g + row * to.outer, to.inner, first + row * at.outer, at.inner, by,
                (struct tn_column){a->tiles->den + row * dots.outer, dots.inner},
                y + row * y_at.outer, y_at.inner, order.inner, a->sizes.M);
        else
            a->plan->host.kernels->scale_rows(a->tiles->g + row * to.outer, to.inner,
                                              first + row * at.outer, at.inner, by, order.inner,
                                              a->sizes.M, false);
    }
}

/* Through y = n / d:  dn = dy / d,  dd = -(dy . y) / d; a denominator held at eps has no slope.
 * */
static void find_slopes(const struct tn_linear_group *a, size_t head, size_t from, size_t n,
                        float *slopes)
{
    const float most = 1.0f / (float)a->plan->options.value[TN_LINEAR_EPS];
    const float *const inverses = a->call->saved + kept_from(a, from) + head * a->plan->N;

    for (size_t i = 0; i < n; i++) {
        const float by = inverses[i];

        slopes[i] = a->tiles->den[head * T + i] * (fabsf(by) < most ? -by : 0.0f);
    }
}

void tn_linear_load_gradients(const struct tn_linear_group *a, size_t from, size_t n,
                              bool again)
{
    const bool first = a->sizes.normalises && !again;

    load_scaled(a, rows_all(from, n),
                first ? tn_out(a->call->arrays->y, a->b, a->h, from) : NULL);
    for (size_t head = 0; head < a->heads && a->sizes.normalises; head++) {
        float *const dots = a->tiles->den + head * T; /* slopes that no later pass asks for */
        float *const slopes = a->plan->causal
                                  ? a->slopes.at + head * a->slopes.ld + (from - a->slopes.from)
                                  : dots;

        if (first)
            find_slopes(a, head, from, n, slopes);
        for (size_t i = 0; i < n; i++)
            a->tiles->g[(head * T + i) * a->sizes.M_ld + a->sizes.M] = slopes[i];
    }
}

/* ---- Out ---------------------------------------------------------------- */

float tn_linear_inverse(const tarn_attention *plan, float den)
{
    const float eps = (float)plan->options.value[TN_LINEAR_EPS], sum = den + eps;
    const float inverse = 1.0f / (fabsf(sum) < eps ? copysignf(eps, sum) : sum);

    return isinf(inverse) ? 0.0f : inverse; /* of zero, or as good as zero */
}

/* Denominators of the tile become their inverses, and are saved if backward will ask. */
static void invert(const struct tn_linear_group *a, size_t from, size_t n)
{
    for (size_t head = 0; head < a->heads; head++) {
        float *const den = a->tiles->den + head * T;

        for (size_t i = 0; i < n; i++)
            den[i] = tn_linear_inverse(a->plan, den[i]);
        if (a->call->saved)
            memcpy(a->call->saved + kept_from(a, from) + head * a->plan->N, den,
                   n * sizeof(float));
    }
}

/* The tile o, each row times `by` (T numbers per head, or NULL), to an array. */
static void store_rows(const struct tn_linear_group *a, tarn_output out, float *by, size_t from,
                       size_t n)
{
    const struct order order = order_of(a, out.head, out.position, rows_all(from, n));
    const struct strides to = strides_of(order, out.head, out.position);
    const struct strides at = tile_strides(order, a->sizes.o_ld),
                         by_at = tile_strides(order, 1);
    float *const first = tn_out(out, a->b, a->h, from);

    for (size_t i = 0; i < order.outer; i++) {
        const ptrdiff_t row = (ptrdiff_t)i;

        a->plan->host.kernels->scale_rows(
            first + row * to.outer, to.inner, a->tiles->o + row * at.outer, at.inner,
            (struct tn_column){by ? by + row * by_at.outer : NULL, by ? by_at.inner : 0},
            order.inner, a->sizes.M, a->sizes.streams);
    }
}

/* (12) */
void tn_linear_store_output(const struct tn_linear_group *a, size_t from, size_t n)
{
    const bool divides = a->sizes.normalises && !a->sums.at;

    if (divides)
        invert(a, from, n);
    store_rows(a, a->call->arrays->y, divides ? a->tiles->den : NULL, from, n);
    for (size_t head = 0; head < a->heads && a->sums.at; head++)
        memcpy(a->sums.at + head * a->sums.ld + from - a->sums.from, a->tiles->den + head * T,
               n * sizeof(float));
}

/* What was stored with `sums`. */
void tn_linear_load_output(const struct tn_linear_group *a, size_t from, size_t n)
{
    for (size_t head = 0; head < a->heads; head++) {
        for (size_t i = 0; i < n; i++)
            memcpy(a->tiles->o + (head * T + i) * a->sizes.o_ld,
                   tn_out(a->call->arrays->y, a->b, a->h + head, from + i),
                   a->sizes.M * sizeof(float));
        memcpy(a->tiles->den + head * T, a->sums.at + head * a->sums.ld + from - a->sums.from,
               n * sizeof(float));
    }
}

static void clear_gradients(const struct tn_linear_group *a, tarn_output dx, struct rows rows)
{
    for (size_t i = 0; i < rows.n; i++)
        for (size_t head = 0; head < a->heads; head++)
            memset(tn_out(dx, a->b, a->h + head, rows.from + rows.i + i), 0,
                   a->plan->D * sizeof(float));
}

void tn_linear_store_gradients(const struct tn_linear_group *a, tarn_output dx, tarn_input x,
                               const float *phi, size_t from, size_t n, size_t length)
{
    const struct rows rows = rows_all(from, n), there = rows_before(rows, length);
    const struct order order = order_of(a, dx.head, dx.position, there);
    const struct strides to = strides_of(order, dx.head, dx.position);
    const struct strides at = strides_of(order, x.head, x.position);
    const struct strides in = tile_strides(order, a->sizes.o_ld);
    const struct strides mapped = tile_strides(order, a->sizes.C_ld);
    float *const dx_first = tn_out(dx, a->b, a->h, from);
    const float *const x_first = tn_in(x, a->b, a->h, from);

    for (size_t i = 0; i < order.outer; i++)
        tn_feature_map_backward(&a->plan->map, dx_first + (ptrdiff_t)i * to.outer, to.inner,
                                a->tiles->o + (ptrdiff_t)i * in.outer, in.inner,
                                x_first + (ptrdiff_t)i * at.outer, at.inner,
                                phi + (ptrdiff_t)i * mapped.outer, mapped.inner, order.inner,
                                a->sizes.streams);
    clear_gradients(a, dx, rows_after(rows, length));
}

void tn_linear_store_dv(const struct tn_linear_group *a, size_t from, size_t n)
{
    store_rows(a, a->call->arrays->din[TN_VALUE], NULL, from, n);
}
