/* SPDX-License-Identifier: MIT */
/* kernel_body.h - every vector loop, written once with GCC's and clang's vector types.
 *
 * Included by one file per instruction set, which defines
 *   TN_TABLE      the table to define          TN_NAME    its name
 *   LANES         floats in a vector register
 *   PRODUCT_ROWS  rows of c that product() keeps in registers, two vectors each
 *   PANEL_ROWS    the same for product_packed()
 *   RECUR_STEPS   positions that recur() advances per pass over S, two vectors each
 *   LARGER, SMALLER  optional: instructions that vector types cannot name; the second operand
 *                    where one is NaN
 *   STREAM, STREAMED  optional: a store past the cache, and what orders such stores
 * so that a new instruction set is a file of a few lines. */
#include <math.h>
#include <string.h>

#include "kernel/kernels.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef float vec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Small inner loops over constant counts must unroll, or their arrays are not registers. */
#define FORCE_INLINE static inline __attribute__((always_inline))

enum { PAIR = 2 }; /* vectors side by side in the register tiles */

FORCE_INLINE vec load(const float *p)
{
    return *(const vec_anywhere *)p;
}

FORCE_INLINE void store(float *p, vec v)
{
    *(vec_anywhere *)p = v;
}

FORCE_INLINE vec splat(float x)
{
    return (vec){0} + x;
}

/* Rows that are not read again soon need not push others out of the cache. */
#ifdef STREAM
FORCE_INLINE bool can_stream(const float *y, ptrdiff_t ldy)
{
    return ((uintptr_t)y | ((uintptr_t)ldy * sizeof(float))) % sizeof(vec) == 0;
}
#else
#define STREAM(p, v) store(p, v)
#define STREAMED() (void)0

FORCE_INLINE bool can_stream(const float *y, ptrdiff_t ldy)
{
    (void)y;
    (void)ldy;
    return false;
}
#endif

FORCE_INLINE void put(float *p, vec v, bool streams)
{
    if (streams)
        STREAM(p, v);
    else
        store(p, v);
}

/* The last n < LANES floats of a row; the other lanes are `fill`. */
FORCE_INLINE vec load_tail(const float *p, size_t n, float fill)
{
    vec v = splat(fill);

    memcpy(&v, p, n * sizeof(float));
    return v;
}

FORCE_INLINE void store_tail(float *p, vec v, size_t n)
{
    memcpy(p, &v, n * sizeof(float));
}

FORCE_INLINE vec choose(ivec mask, vec yes, vec no)
{
    return (vec)(((ivec)yes & mask) | ((ivec)no & ~mask));
}

#ifndef LARGER
#define LARGER(a, b) choose((a) > (b), a, b)
#define SMALLER(a, b) choose((a) < (b), a, b)
#endif

/* b where one of them is NaN. */
FORCE_INLINE vec larger(vec a, vec b)
{
    return LARGER(a, b);
}

FORCE_INLINE vec smaller(vec a, vec b)
{
    return SMALLER(a, b);
}

/* Fixed order: halves, quarters, ... */
FORCE_INLINE float sum_lanes(vec v)
{
    float x[LANES];

    memcpy(x, &v, sizeof x);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

FORCE_INLINE float max_lanes(vec v)
{
    float x[LANES];

    memcpy(x, &v, sizeof x);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            x[i] = x[i] > x[i + half] ? x[i] : x[i + half];
    return x[0];
}

enum { FOUR = 4 };

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) = 1 + r p(r) with the p of
 * degree 4 that makes the largest relative error smallest: 1e-7. ln 2 is subtracted in two
 * parts, the first exact in few bits. Adding 1.5 * 2^23 rounds to a whole number and leaves it
 * in the low bits of the float. For x within -87.33 .. 88.37, where 2^n is a normal float; NaN
 * stays NaN.
 *
 * Up to four vectors step by step: each step waits for the one before it, so chains side by side
 * keep the multipliers busy where one would leave them idle. */
FORCE_INLINE void exp_within(vec *x, int count)
{
    static const float coefficients[] = {0.0418981612f, 0.166676387f, 0.499991477f,
                                         0.999999702f, 1.0f};
    const vec shift = splat(12582912.0f);
    vec shifted[FOUR], p[FOUR];

    for (int j = 0; j < count; j++)
        shifted[j] = x[j] * splat(1.44269504f) + shift;
    for (int j = 0; j < count; j++)
        x[j] = x[j] - (shifted[j] - shift) * splat(0.693359375f);
    for (int j = 0; j < count; j++)
        x[j] = x[j] + (shifted[j] - shift) * splat(2.12194440e-4f);
    for (int j = 0; j < count; j++)
        p[j] = splat(0.00829027221f);
    for (int c = 0; c < 5; c++)
        for (int j = 0; j < count; j++)
            p[j] = p[j] * x[j] + splat(coefficients[c]);
    for (int j = 0; j < count; j++)
        x[j] = (vec)((uvec)p[j] + ((uvec)shifted[j] << 23));
}

static const float exp_top = 88.37f, exp_bottom = -87.33f;

/* Any x: stays at exp(88.37) above, is 0 below. */
FORCE_INLINE vec vexp(vec x)
{
    vec e = larger(splat(exp_bottom), smaller(splat(exp_top), x));

    exp_within(&e, 1);
    return choose(x < splat(exp_bottom), splat(0.0f), e);
}

/* x + 1 above zero, exp(x) below: not less than the smallest normal float. */
FORCE_INLINE void elu1_of(vec *x, int count)
{
    const vec zero = splat(0.0f);
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = larger(splat(exp_bottom), smaller(zero, x[j]));
    exp_within(e, count);
    for (int j = 0; j < count; j++)
        x[j] = choose(x[j] > zero, x[j] + 1.0f, e[j]);
}

/* ---- product ------------------------------------------------------------ */

/* `rows` x `vecs` vectors of c in registers while p runs over the sum. */
FORCE_INLINE void product_block(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row,
                                ptrdiff_t a_col, const float *b, ptrdiff_t ldb, size_t k,
                                bool add, int rows, int vecs)
{
    vec sum[PRODUCT_ROWS][PAIR];

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++)
            sum[i][j] = splat(0.0f);
    for (size_t p = 0; p < k; p++) {
        vec row[PAIR];

        for (int j = 0; j < vecs; j++)
            row[j] = load(b + j * LANES);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < vecs; j++)
                sum[i][j] += a[i * a_row] * row[j];
        a += a_col;
        b += ldb;
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++) {
            float *const at = c + i * ldc + j * LANES;

            store(at, add ? load(at) + sum[i][j] : sum[i][j]);
        }
}

FORCE_INLINE void product_columns(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row,
                                  ptrdiff_t a_col, const float *b, ptrdiff_t ldb, size_t m,
                                  size_t k, bool add, int vecs)
{
    for (; m >= PRODUCT_ROWS; m -= PRODUCT_ROWS) {
        product_block(c, ldc, a, a_row, a_col, b, ldb, k, add, PRODUCT_ROWS, vecs);
        c += PRODUCT_ROWS * ldc;
        a += PRODUCT_ROWS * a_row;
    }
    for (; m > 0; m--) {
        product_block(c, ldc, a, a_row, a_col, b, ldb, k, add, 1, vecs);
        c += ldc;
        a += a_row;
    }
}

static void product(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
                    const float *b, ptrdiff_t ldb, size_t m, size_t n, size_t k, bool add)
{
    for (; n >= PAIR * LANES; n -= PAIR * LANES) {
        product_columns(c, ldc, a, a_row, a_col, b, ldb, m, k, add, PAIR);
        b += PAIR * LANES;
        c += PAIR * LANES;
    }
    if (n > 0)
        product_columns(c, ldc, a, a_row, a_col, b, ldb, m, k, add, 1);
}

/* ---- recur -------------------------------------------------------------- */

/* `steps` positions and `vecs` vectors of width. Each vector of S is read once and written once
 * for `steps` updates and as many uses, so multiply-adds and not stores set the pace. */
FORCE_INLINE void recur_block(const struct tn_recurrence *r, ptrdiff_t i, ptrdiff_t column,
                              int steps, int vecs)
{
    const float *const q = r->q + i * r->ldq, *const k = r->k + i * r->ldk;
    const float *const v = r->v + i * r->ldv + column;
    float *const o = r->o + i * r->ldo + column, *S = r->S + column;
    const size_t rows = r->rows;
    const ptrdiff_t ldS = r->ldS, ldq = r->ldq, ldk = r->ldk;
    vec value[RECUR_STEPS][FOUR], out[RECUR_STEPS][FOUR];

    for (int t = 0; t < steps; t++)
        for (int j = 0; j < vecs; j++) {
            value[t][j] = load(v + t * r->ldv + j * LANES);
            out[t][j] = splat(0.0f);
        }
    for (size_t c = 0; c < rows; c++, S += ldS) {
        vec s[FOUR];

        for (int j = 0; j < vecs; j++)
            s[j] = load(S + j * LANES);
        for (int t = 0; t < steps; t++) {
            const float key = k[t * ldk + (ptrdiff_t)c], query = q[t * ldq + (ptrdiff_t)c];

            for (int j = 0; j < vecs; j++) {
                s[j] += key * value[t][j];
                out[t][j] += query * s[j];
            }
        }
        for (int j = 0; j < vecs; j++)
            store(S + j * LANES, s[j]);
    }
    for (int t = 0; t < steps; t++)
        for (int j = 0; j < vecs; j++)
            store(o + t * r->ldo + j * LANES, out[t][j]);
}

FORCE_INLINE void recur_columns(const struct tn_recurrence *r, size_t column, int vecs)
{
    size_t i = 0;

    for (; i + RECUR_STEPS <= r->n; i += RECUR_STEPS)
        recur_block(r, (ptrdiff_t)i, (ptrdiff_t)column, RECUR_STEPS, vecs);
    for (; i < r->n; i++)
        recur_block(r, (ptrdiff_t)i, (ptrdiff_t)column, 1, vecs);
}

static void recur(const struct tn_recurrence *r)
{
    size_t column = 0;

    /* One position waits for S to come from memory: the longer the pieces, the better. */
    if (r->n == 1)
        for (; column + FOUR * LANES <= r->width; column += FOUR * LANES)
            recur_block(r, 0, (ptrdiff_t)column, 1, FOUR);
    for (; column + PAIR * LANES <= r->width; column += PAIR * LANES)
        recur_columns(r, column, PAIR);
    if (column < r->width)
        recur_columns(r, column, 1);
}

static void recur_sum(float *den, float *z, const float *q, ptrdiff_t ldq, const float *k,
                      ptrdiff_t ldk, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, q += ldq, k += ldk) {
        vec sum = splat(0.0f);

        for (size_t c = 0; c < width; c += LANES) {
            const vec total = load(z + c) + load(k + c);

            store(z + c, total);
            sum += load(q + c) * total;
        }
        den[i] = sum_lanes(sum);
    }
}

/* ---- transpose ---------------------------------------------------------- */

#if defined(__clang__) || __GNUC__ >= 12

#if LANES == 4
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#elif LANES == 8
#define INTERLEAVE_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define INTERLEAVE_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif LANES == 16
#define INTERLEAVE_LOW(a, b)                                                                   \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define INTERLEAVE_HIGH(a, b)                                                                  \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#endif

/* A perfect shuffle of the rows, log2(LANES) times over, is the transpose. */
FORCE_INLINE void transpose_vectors(vec row[LANES])
{
    vec next[LANES];

    for (int pass = 1; pass < LANES; pass *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            next[2 * i] = INTERLEAVE_LOW(row[i], row[i + LANES / 2]);
            next[2 * i + 1] = INTERLEAVE_HIGH(row[i], row[i + LANES / 2]);
        }
        memcpy(row, next, sizeof next);
    }
}

#else /* gcc before 12 has no portable shuffle */

FORCE_INLINE void transpose_vectors(vec row[LANES])
{
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            const float swapped = row[i][j];

            row[i][j] = row[j][i];
            row[j][i] = swapped;
        }
}

#endif

FORCE_INLINE void transpose_square(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi)
{
    vec row[LANES];

    for (int i = 0; i < LANES; i++)
        row[i] = load(in + i * ldi);
    transpose_vectors(row);
    for (int i = 0; i < LANES; i++)
        store(out + i * ldo, row[i]);
}

static void transpose(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi, size_t rows,
                      size_t cols)
{
    const ptrdiff_t m = (ptrdiff_t)rows, n = (ptrdiff_t)cols;
    const ptrdiff_t m_whole = m - m % LANES, n_whole = n - n % LANES;

    for (ptrdiff_t i = 0; i < m_whole; i += LANES)
        for (ptrdiff_t j = 0; j < n_whole; j += LANES)
            transpose_square(out + j * ldo + i, ldo, in + i * ldi + j, ldi);
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = i < m_whole ? n_whole : 0; j < n; j++)
            out[j * ldo + i] = in[i * ldi + j];
}

/* ---- rows --------------------------------------------------------------- */

/* Four sums at once: one chain of additions would wait for each. */
static float dot(const float *x, const float *y, size_t n)
{
    vec sum[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    size_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (size_t j = 0; j < 4; j++)
            sum[j] += load(x + i + j * LANES) * load(y + i + j * LANES);
    for (; i + LANES <= n; i += LANES)
        sum[0] += load(x + i) * load(y + i);
    if (i < n)
        sum[0] += load_tail(x + i, n - i, 0.0f) * load_tail(y + i, n - i, 0.0f);
    return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

static float max(const float *x, size_t n)
{
    vec most = splat(-INFINITY);
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        most = larger(load(x + i), most);
    if (i < n)
        most = larger(load_tail(x + i, n - i, -INFINITY), most);
    return max_lanes(most);
}

static void scale(float *y, const float *x, float a, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        store(y + i, a * load(x + i));
    if (i < n)
        store_tail(y + i, a * load_tail(x + i, n - i, 0.0f), n - i);
}

static void axpy(float *y, float a, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        store(y + i, load(y + i) + a * load(x + i));
    if (i < n)
        store_tail(y + i, load_tail(y + i, n - i, 0.0f) + a * load_tail(x + i, n - i, 0.0f),
                   n - i);
}

static float exp_sum(float *y, const float *x, float c, size_t n)
{
    vec sum = splat(0.0f);
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const vec e = vexp(load(x + i) - c);

        store(y + i, e);
        sum += e;
    }
    if (i < n) {
        const vec e = vexp(load_tail(x + i, n - i, -INFINITY) - c);

        store_tail(y + i, e, n - i);
        sum += e;
    }
    return sum_lanes(sum);
}

static void softmax_slope(float *s, float *dp, float lse, float delta, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const vec p = vexp(load(s + i) - lse);

        store(s + i, p);
        store(dp + i, p * (load(dp + i) - delta));
    }
    if (i < n) {
        const vec p = vexp(load_tail(s + i, n - i, -INFINITY) - lse);

        store_tail(s + i, p, n - i);
        store_tail(dp + i, p * (load_tail(dp + i, n - i, 0.0f) - delta), n - i);
    }
}

/* ---- rows in numbers ---------------------------------------------------- */

FORCE_INLINE void scale_rows_by(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                                struct tn_column by, size_t n, size_t width, bool streams)
{
    for (size_t row = 0; row < n; row++, y += ldy, x += ldx) {
        const float a = by.at ? by.at[(ptrdiff_t)row * by.ld] : 1.0f;
        size_t i = 0;

        for (; i + LANES <= width; i += LANES)
            put(y + i, a * load(x + i), streams);
        if (i < width)
            store_tail(y + i, a * load_tail(x + i, width - i, 0.0f), width - i);
    }
}

static void scale_rows(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                       struct tn_column by, size_t n, size_t width, bool streams)
{
    if (streams && can_stream(y, ldy))
        scale_rows_by(y, ldy, x, ldx, by, n, width, true);
    else
        scale_rows_by(y, ldy, x, ldx, by, n, width, false);
}

static void scale_dot_rows(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                           struct tn_column by, struct tn_column dots, const float *z,
                           ptrdiff_t ldz, size_t n, size_t width)
{
    for (; n > 0; n--, y += ldy, x += ldx, z += ldz, by.at += by.ld, dots.at += dots.ld) {
        const float a = *by.at;
        vec sum = splat(0.0f);
        size_t i = 0;

        for (; i + LANES <= width; i += LANES) {
            const vec v = load(x + i);

            sum += v * load(z + i);
            store(y + i, a * v);
        }
        if (i < width) {
            const vec v = load_tail(x + i, width - i, 0.0f);

            sum += v * load_tail(z + i, width - i, 0.0f);
            store_tail(y + i, a * v, width - i);
        }
        *dots.at = sum_lanes(sum);
    }
}

FORCE_INLINE void elu1_four(float *y, const float *x)
{
    vec v[FOUR];

    for (int j = 0; j < FOUR; j++)
        v[j] = load(x + j * LANES);
    elu1_of(v, FOUR);
    for (int j = 0; j < FOUR; j++)
        store(y + j * LANES, v[j]);
}

/* The last n < 4 LANES floats of a row. */
FORCE_INLINE void elu1_rest(float *y, const float *x, size_t n)
{
    for (; n > 0; y += LANES, x += LANES) {
        const size_t some = n < LANES ? n : LANES;
        vec v = load_tail(x, some, 0.0f);

        elu1_of(&v, 1);
        store_tail(y, v, some);
        n -= some;
    }
}

/* One loop over all rows' fours, so that its constants are loaded once and not for every row;
 * what rows have beyond them follows. */
static void elu1(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n, size_t width)
{
    const size_t fours = width / (FOUR * LANES), whole = fours * FOUR * LANES;
    float *to = y;
    const float *from = x;

    for (size_t four = 0, column = 0; four < n * fours; four++) {
        elu1_four(to + column, from + column);
        column += FOUR * LANES;
        if (column == whole) {
            column = 0;
            to += ldy;
            from += ldx;
        }
    }
    for (size_t row = 0; row < n; row++, y += ldy, x += ldx)
        elu1_rest(y + whole, x + whole, width - whole);
}

FORCE_INLINE void elu1_slope_of(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                                const float *y, ptrdiff_t ldy, size_t n, size_t width,
                                bool streams)
{
    const vec one = splat(1.0f);

    for (; n > 0; n--, dx += lddx, dy += lddy, y += ldy) {
        size_t i = 0;

        for (; i + LANES <= width; i += LANES)
            put(dx + i, load(dy + i) * smaller(one, load(y + i)), streams);
        if (i < width) {
            const size_t rest = width - i;
            const vec slope = smaller(one, load_tail(y + i, rest, 0.0f));

            store_tail(dx + i, load_tail(dy + i, rest, 0.0f) * slope, rest);
        }
    }
}

static void elu1_slope(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                       const float *y, ptrdiff_t ldy, size_t n, size_t width, bool streams)
{
    if (streams && can_stream(dx, lddx))
        elu1_slope_of(dx, lddx, dy, lddy, y, ldy, n, width, true);
    else
        elu1_slope_of(dx, lddx, dy, lddy, y, ldy, n, width, false);
}

static void settle(void)
{
    STREAMED();
}

/* ---- the machine -------------------------------------------------------- */

enum { CHAINS = 12 }; /* independent, more than latency times throughput */

static double burn(size_t rounds)
{
    volatile float unknown = 0.999f; /* to the compiler */
    const vec a = splat(unknown), b = splat(1.0f - unknown);
    vec x[CHAINS], sum = splat(0.0f);

    for (int i = 0; i < CHAINS; i++)
        x[i] = splat(unknown * (float)i);
    for (size_t n = 0; n < rounds; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = x[i] * a + b;
    for (int i = 0; i < CHAINS; i++)
        sum += x[i];
    unknown = sum_lanes(sum); /* so that all of it was needed */
    return 2.0 * CHAINS * LANES * (double)rounds;
}

static float read(const float *x, size_t n)
{
    vec sum[8];

    for (int j = 0; j < 8; j++)
        sum[j] = splat(0.0f);
    for (size_t i = 0; i + 8 * LANES <= n; i += 8 * LANES)
        for (size_t j = 0; j < 8; j++)
            sum[j] += load(x + i + j * LANES);
    for (int j = 1; j < 8; j++)
        sum[0] += sum[j];
    return sum_lanes(sum[0]);
}

#include "kernel/kernel_body_layer.h"
#include "kernel/kernel_body_logistic.h"
#include "kernel/kernel_body_update.h"
#include "kernel/kernel_body_packed.h"
#include "kernel/kernel_body_few.h"

extern const struct tn_kernels TN_TABLE;
const struct tn_kernels TN_TABLE = {
    .name = TN_NAME,
    .lanes = LANES,
    .product = product,
    .panel_rows = PANEL_ROWS,
    .pack = pack,
    .product_packed = product_packed,
    .recur = recur,
    .recur_sum = recur_sum,
    .transpose = transpose,
    .dot = dot,
    .max = max,
    .scale = scale,
    .axpy = axpy,
    .exp_sum = exp_sum,
    .elu1 = elu1,
    .elu1_slope = elu1_slope,
    .softmax_slope = softmax_slope,
    .scale_rows = scale_rows,
    .scale_dot_rows = scale_dot_rows,
    .settle = settle,
    .narrow = narrow,
    .widen = widen,
    .add = add,
    .sum_rows = sum_rows,
    .scatter_rows = scatter_rows,
    .norm = norm,
    .norm_slope = norm_slope,
    .relu = relu,
    .relu_slope = relu_slope,
    .gelu = gelu,
    .gelu_slope = gelu_slope,
    .dropout = dropout,
    .logistics = logistics,
    .update = update,
    .few_pack = few_pack,
    .few_f32 = few_f32,
    .few_bf16 = few_bf16,
    .burn = burn,
    .read = read,
};
