/* SPDX-License-Identifier: MIT */
/* kernel_body_layer.h - the loops of the layers besides attention: a part of
 * kernel_body.h, which includes it and explains how it is compiled. */

typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t halves_anywhere __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* ---- bf16 --------------------------------------------------------------- */

/* To nearest, ties to even. Rounding up could turn NaN into infinity, so that is made quiet. */
FORCE_INLINE uvec narrow_bits(vec x)
{
    const uvec bits = (uvec)x;
    const uvec rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    const uvec is_nan = (uvec)((bits & 0x7fffffff) > 0x7f800000);

    return (rounded & ~is_nan) | ((bits >> 16 | 0x40) & is_nan);
}

FORCE_INLINE halves narrow_of(vec x)
{
    return __builtin_convertvector(narrow_bits(x), halves);
}

FORCE_INLINE vec widen_of(halves x)
{
    return (vec)(__builtin_convertvector(x, uvec) << 16);
}

FORCE_INLINE halves load_halves(const uint16_t *p)
{
    return *(const halves_anywhere *)p;
}

FORCE_INLINE void store_halves(uint16_t *p, halves v)
{
    *(halves_anywhere *)p = v;
}

/* The last n < LANES of a row; the other lanes are 0. */
#ifndef LOAD_HALVES_TAIL
#define LOAD_HALVES_TAIL(p, n) load_halves_lanes(p, n)
#define STORE_HALVES_TAIL(p, v, n) store_halves_lanes(p, v, n)

FORCE_INLINE halves load_halves_lanes(const uint16_t *p, size_t n)
{
    halves v = {0};

    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            v[i] = p[i];
    return v;
}

FORCE_INLINE void store_halves_lanes(uint16_t *p, halves v, size_t n)
{
    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            p[i] = v[i];
}
#endif

FORCE_INLINE void narrow_rows(uint16_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                              size_t n, size_t whole, size_t rest)
{
    for (; n > 0; n--, y += ldy, x += ldx) {
        for (size_t i = 0; i < whole; i += LANES)
            store_halves(y + i, narrow_of(load(x + i)));
        if (rest)
            STORE_HALVES_TAIL(y + whole, narrow_of(load_tail(x + whole, rest, 0.0f)), rest);
    }
}

static void narrow(uint16_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                   size_t width)
{
    BY_REST(width, narrow_rows(y, ldy, x, ldx, n, width - REST, REST));
}

FORCE_INLINE void widen_rows(float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx,
                             size_t n, size_t whole, size_t rest)
{
    for (; n > 0; n--, y += ldy, x += ldx) {
        for (size_t i = 0; i < whole; i += LANES)
            store(y + i, widen_of(load_halves(x + i)));
        if (rest)
            store_tail(y + whole, widen_of((halves)LOAD_HALVES_TAIL(x + whole, rest)), rest);
    }
}

static void widen(float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx, size_t n,
                  size_t width)
{
    BY_REST(width, widen_rows(y, ldy, x, ldx, n, width - REST, REST));
}

/* ---- sums --------------------------------------------------------------- */

static void add(float *y, const float *x, const float *z, size_t n)
{
    BY_VECTORS(n, keep(y + AT, fetch(x + AT, LEFT) + fetch(z + AT, LEFT), LEFT));
}

/* The sum of four rows. */
FORCE_INLINE vec sum_four(const float *x, ptrdiff_t ldx, size_t n)
{
    const vec low = fetch(x, n) + fetch(x + ldx, n);
    const vec high = fetch(x + 2 * ldx, n) + fetch(x + 3 * ldx, n);

    return low + high;
}

/* `vecs` vectors, or n < LANES floats, whose sums stay in registers: what was stored in one
 * iteration would be waited for in the next, and longest if it was stored by a mask. */
FORCE_INLINE void sum_rows_narrow(float *sum, const float *x, ptrdiff_t ldx, size_t rows,
                                  size_t n, int vecs)
{
    vec total[FOUR];

    for (int j = 0; j < vecs; j++)
        total[j] = fetch(sum + j * LANES, n);
    for (; rows >= FOUR; rows -= FOUR, x += FOUR * ldx)
        for (int j = 0; j < vecs; j++)
            total[j] += sum_four(x + j * LANES, ldx, n);
    for (; rows > 0; rows--, x += ldx)
        for (int j = 0; j < vecs; j++)
            total[j] += fetch(x + j * LANES, n);
    for (int j = 0; j < vecs; j++)
        keep(sum + j * LANES, total[j], n);
}

/* Wide rows are read from end to end, four for each read of the sum. */
FORCE_INLINE void sum_rows_wide(float *sum, const float *x, ptrdiff_t ldx, size_t n,
                                size_t width)
{
    for (; n >= FOUR; n -= FOUR, x += FOUR * ldx)
        for (size_t i = 0; i < width; i += LANES)
            store(sum + i, load(sum + i) + sum_four(x + i, ldx, LANES));
    for (; n > 0; n--, x += ldx)
        add(sum, sum, x, width);
}

static void sum_rows(float *sum, const float *x, ptrdiff_t ldx, size_t n, size_t width)
{
    const size_t whole = width - width % LANES;
    size_t i = 0;

    if (whole > 2 * FOUR * LANES) {
        sum_rows_wide(sum, x, ldx, n, whole);
        i = whole;
    }
    for (; i + FOUR * LANES <= width; i += FOUR * LANES)
        sum_rows_narrow(sum + i, x + i, ldx, n, LANES, FOUR);
    for (; i + LANES <= width; i += LANES)
        sum_rows_narrow(sum + i, x + i, ldx, n, LANES, 1);
    if (i < width)
        BY_REST(width, sum_rows_narrow(sum + i, x + i, ldx, n, REST, 1));
}

static void scatter_rows(float *table, ptrdiff_t ld, const int32_t *rows, const float *x,
                         ptrdiff_t ldx, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++, x += ldx) {
        float *const to = table + rows[i] * ld;

        add(to, to, x, width);
    }
}

/* ---- layer normalisation ------------------------------------------------ */

/* The sum of (x - c)^power over a row, power 1 or 2; four chains of additions. */
FORCE_INLINE float sum_of_powers(const float *x, float c, size_t whole, size_t rest, int power)
{
    vec sum[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    size_t i = 0;

    for (; i + 4 * LANES <= whole; i += 4 * LANES)
        for (size_t j = 0; j < 4; j++) {
            const vec v = load(x + i + j * LANES) - c;

            sum[j] += power == 2 ? v * v : v;
        }
    for (; i < whole; i += LANES) {
        const vec v = load(x + i) - c;

        sum[0] += power == 2 ? v * v : v;
    }
    if (rest) {
        const vec v = load_tail(x + whole, rest, c) - c;

        sum[0] += power == 2 ? v * v : v;
    }
    return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

FORCE_INLINE void norm_at(float *y, const float *x, const float *gain, const float *bias,
                          struct tn_norm_stats stats, size_t n)
{
    const vec centred = (fetch(x, n) - stats.mean) * stats.scale;

    keep(y, centred * fetch(gain, n) + fetch(bias, n), n);
}

/* The variance of what is left without the mean: nothing cancels, however large the mean. */
FORCE_INLINE void norm_rows(float *y, struct tn_norm_stats *stats, const float *x,
                            const float *gain, const float *bias, float eps, size_t n,
                            size_t whole, size_t rest)
{
    const size_t width = whole + rest;
    const float part = 1.0f / (float)width;

    for (size_t row = 0; row < n; row++, y += width, x += width) {
        const float mean = sum_of_powers(x, 0.0f, whole, rest, 1) * part;
        const float variance = sum_of_powers(x, mean, whole, rest, 2) * part;
        const struct tn_norm_stats of_row = {mean, 1.0f / sqrtf(variance + eps)};

        for (size_t i = 0; i < whole; i += LANES)
            norm_at(y + i, x + i, gain + i, bias + i, of_row, LANES);
        if (rest)
            norm_at(y + whole, x + whole, gain + whole, bias + whole, of_row, rest);
        if (stats)
            stats[row] = of_row;
    }
}

static void norm(float *y, struct tn_norm_stats *stats, const float *x, const float *gain,
                 const float *bias, float eps, size_t n, size_t width)
{
    BY_REST(width, norm_rows(y, stats, x, gain, bias, eps, n, width - REST, REST));
}

/* The gradients of gain and bias of one row, and the two sums that its dx needs: of g and of
 * g u, where g = gain dy and u = (x - mean) scale. */
FORCE_INLINE void norm_sums_of(vec sums[2], vec *dgain, vec *dbias, const float *dy,
                               const float *x, struct tn_norm_stats stats, const float *gain,
                               size_t n)
{
    const vec d = fetch(dy, n), u = (fetch(x, n) - stats.mean) * stats.scale;
    const vec g = d * fetch(gain, n);

    *dgain += d * u;
    *dbias += d;
    sums[0] += g;
    sums[1] += g * u;
}

/* dx = scale (g - mean of g - u mean of g u). */
FORCE_INLINE void norm_backward_at(float *dx, bool add_dx, const float *dy, const float *x,
                                   struct tn_norm_stats stats, const float *gain,
                                   const float means[2], size_t n)
{
    const vec u = (fetch(x, n) - stats.mean) * stats.scale;
    const vec g = fetch(dy, n) * fetch(gain, n);
    const vec change = stats.scale * (g - means[0] - u * means[1]);

    keep(dx, add_dx ? fetch(dx, n) + change : change, n);
}

FORCE_INLINE void norm_backward_rows(float *dx, bool add_dx, float *dgain, float *dbias,
                                     const float *dy, const float *x,
                                     const struct tn_norm_stats *stats, const float *gain,
                                     size_t n, size_t whole, size_t rest)
{
    const size_t width = whole + rest;
    const float part = 1.0f / (float)width;
    vec rest_gain = splat(0.0f), rest_bias = rest_gain; /* see sum_rows_narrow() */

    if (rest) {
        rest_gain = fetch(dgain + whole, rest);
        rest_bias = fetch(dbias + whole, rest);
    }
    for (; n > 0; n--, dx += width, dy += width, x += width, stats++) {
        const struct tn_norm_stats of_row = *stats;
        vec sums[2] = {splat(0.0f), splat(0.0f)};

        for (size_t i = 0; i < whole; i += LANES) {
            vec of_gain = load(dgain + i), of_bias = load(dbias + i);

            norm_sums_of(sums, &of_gain, &of_bias, dy + i, x + i, of_row, gain + i, LANES);
            store(dgain + i, of_gain);
            store(dbias + i, of_bias);
        }
        if (rest)
            norm_sums_of(sums, &rest_gain, &rest_bias, dy + whole, x + whole, of_row,
                         gain + whole, rest);
        const float means[2] = {sum_lanes(sums[0]) * part, sum_lanes(sums[1]) * part};

        for (size_t i = 0; i < whole; i += LANES)
            norm_backward_at(dx + i, add_dx, dy + i, x + i, of_row, gain + i, means, LANES);
        if (rest)
            norm_backward_at(dx + whole, add_dx, dy + whole, x + whole, of_row, gain + whole,
                             means, rest);
    }
    if (rest) {
        keep(dgain + whole, rest_gain, rest);
        keep(dbias + whole, rest_bias, rest);
    }
}

static void norm_backward(float *dx, bool add_dx, float *dgain, float *dbias, const float *dy,
                          const float *x, const struct tn_norm_stats *stats, const float *gain,
                          size_t n, size_t width)
{
    BY_REST(width, norm_backward_rows(dx, add_dx, dgain, dbias, dy, x, stats, gain, n,
                                      width - REST, REST));
}

#ifndef ONLY_NARROW
/* ---- activations -------------------------------------------------------- */

/* NaN stays NaN. */
static void relu(float *y, const float *x, size_t n)
{
    BY_VECTORS(n, keep(y + AT, larger(splat(0.0f), fetch(x + AT, LEFT)), LEFT));
}

FORCE_INLINE void relu_backward_at(float *dx, const float *dy, const float *y, size_t n)
{
    const vec d = fetch(dy, n);

    keep(dx, choose(fetch(y, n) > splat(0.0f), d, splat(0.0f)), n);
}

static void relu_backward(float *dx, const float *dy, const float *y, size_t n)
{
    BY_VECTORS(n, relu_backward_at(dx + AT, dy + AT, y + AT, LEFT));
}

/* Phi(x), and e = exp(-x^2 / 2) on the way. For z = |x|
 *
 *     Phi(-z) = e m(z),   m(z) = exp(z^2 / 2) erfc(z / sqrt 2) / 2,
 *
 * where m, Mills' ratio over sqrt(2 pi), falls slowly from 1/2 as 1 / (z sqrt(2 pi)). It is t
 * times the polynomial of degree 7 in t = 1 / (1 + 0.304 z) that makes the largest relative
 * error over 0 <= z <= 13.25 smallest: 9e-8. Beyond, e is 0. In floats Phi is right to 2e-7,
 * and its lower tail relatively to 1e-6 down to x = -6; further down x^2 rounds. */
FORCE_INLINE void phi_of(vec *phi, vec *e, const vec *x, int count)
{
    static const float coefficients[] = {-0.155318022f, 0.19222112f,  -0.0431591533f,
                                         0.12356887f,   0.102417916f, 0.122171491f,
                                         0.121234633f};
    vec t[FOUR], m[FOUR];

    for (int j = 0; j < count; j++) {
        const vec square = x[j] * x[j] * splat(-0.5f);

        e[j] = larger(splat(exp_bottom), square);
        t[j] = splat(1.0f) / (splat(1.0f) + splat(0.304f) * larger(x[j], -x[j]));
    }
    exp_within(e, count);
    for (int j = 0; j < count; j++) {
        e[j] = choose(x[j] * x[j] > splat(-2.0f * exp_bottom), splat(0.0f), e[j]);
        m[j] = splat(0.0368631929f);
    }
    for (int c = 0; c < 7; c++)
        for (int j = 0; j < count; j++)
            m[j] = m[j] * t[j] + splat(coefficients[c]);
    for (int j = 0; j < count; j++) {
        const vec lower = m[j] * t[j] * e[j];

        phi[j] = choose(x[j] > splat(0.0f), 1.0f - lower, lower);
    }
}

/* `count` vectors at y, of whose floats n are left. */
FORCE_INLINE void gelu_some(float *y, const float *x, size_t n, int count)
{
    vec v[FOUR], phi[FOUR], e[FOUR];

    for (int j = 0; j < count; j++)
        v[j] = fetch(x + j * LANES, n);
    phi_of(phi, e, v, count);
    for (int j = 0; j < count; j++)
        keep(y + j * LANES, v[j] * phi[j], n);
}

static void gelu(float *y, const float *x, size_t n)
{
    BY_PAIRS(n, gelu_some(y + AT, x + AT, LEFT, COUNT));
}

/* dx = dy (Phi(x) + x e / sqrt(2 pi)) */
FORCE_INLINE void gelu_backward_some(float *dx, const float *dy, const float *x, size_t n,
                                     int count)
{
    vec v[FOUR], phi[FOUR], e[FOUR];

    for (int j = 0; j < count; j++)
        v[j] = fetch(x + j * LANES, n);
    phi_of(phi, e, v, count);
    for (int j = 0; j < count; j++)
        keep(dx + j * LANES,
             fetch(dy + j * LANES, n) * (phi[j] + v[j] * e[j] * splat(0.398942280f)), n);
}

static void gelu_backward(float *dx, const float *dy, const float *x, size_t n)
{
    BY_PAIRS(n, gelu_backward_some(dx + AT, dy + AT, x + AT, LEFT, COUNT));
}

#endif

/* ---- dropout ------------------------------------------------------------ */

/* A hash of 32 bits in three rounds (triple32 of Wellons' hash prospector), a key before
 * each. */
FORCE_INLINE uvec hash(uvec x, const uint32_t key[3])
{
    x += key[0];
    x ^= x >> 17;
    x *= 0xed5ad4bb;
    x ^= x >> 11;
    x += key[1];
    x *= 0xac4c1b51;
    x ^= x >> 15;
    x += key[2];
    x *= 0x31848bab;
    return x ^ x >> 14;
}

/* Zeroes by a mask after the multiplication: what is between it and an addition keeps the two
 * from being fused, which would round otherwise on processors that can. */
FORCE_INLINE void dropout_at(float *y, const float *x, const float *residual,
                             const struct tn_dropout_keys *keys, uvec index, size_t n)
{
    const ivec kept = hash(index, keys->key) >= keys->threshold;
    const vec v = choose(kept, keys->scale * fetch(x, n), splat(0.0f));

    keep(y, residual ? fetch(residual, n) + v : v, n);
}

FORCE_INLINE void dropout_row(float *y, const float *x, const float *residual,
                              struct tn_dropout_keys keys, uint32_t first, size_t n)
{
    uvec index = (uvec){0} + first;
    size_t i = 0;

    for (uint32_t lane = 0; lane < LANES; lane++)
        index[lane] += lane;
    for (; i + LANES <= n; i += LANES, index += LANES)
        dropout_at(y + i, x + i, residual ? residual + i : NULL, &keys, index, LANES);
    if (i < n)
        dropout_at(y + i, x + i, residual ? residual + i : NULL, &keys, index, n - i);
}

static void dropout(float *y, const float *x, const float *residual,
                    const struct tn_dropout_keys *keys, uint32_t first, size_t n)
{
    if (residual)
        dropout_row(y, x, residual, *keys, first, n);
    else
        dropout_row(y, x, NULL, *keys, first, n);
}
