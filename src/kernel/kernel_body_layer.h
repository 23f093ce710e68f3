/* SPDX-License-Identifier: MIT */
/* kernel_body_layer.h - the loops of the layers besides attention: a part of
 * kernel_body.h, which includes it and explains how it is compiled. */

typedef uint16_t halves __attribute__((vector_size(2 * LANES)));
typedef uint16_t halves_anywhere __attribute__((vector_size(2 * LANES), aligned(2), may_alias));

/* The next floats of a row of which n are left; lanes past its end are 0. */
FORCE_INLINE vec fetch(const float *p, size_t n)
{
    return n >= LANES ? load(p) : load_tail(p, n, 0.0f);
}

FORCE_INLINE void keep(float *p, vec v, size_t n)
{
    if (n >= LANES)
        store(p, v);
    else
        store_tail(p, v, n);
}

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

static void narrow(uint16_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                   size_t width)
{
    for (; n > 0; n--, y += ldy, x += ldx) {
        size_t i = 0;

        for (; i + LANES <= width; i += LANES)
            *(halves_anywhere *)(y + i) = narrow_of(load(x + i));
        if (i < width) {
            const halves rest = narrow_of(load_tail(x + i, width - i, 0.0f));

            memcpy(y + i, &rest, (width - i) * sizeof *y);
        }
    }
}

static void widen(float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx, size_t n,
                  size_t width)
{
    for (; n > 0; n--, y += ldy, x += ldx) {
        size_t i = 0;

        for (; i + LANES <= width; i += LANES)
            store(y + i, widen_of(*(const halves_anywhere *)(x + i)));
        if (i < width) {
            halves rest = {0};

            memcpy(&rest, x + i, (width - i) * sizeof *x);
            store_tail(y + i, widen_of(rest), width - i);
        }
    }
}

/* ---- sums --------------------------------------------------------------- */

static void add(float *y, const float *x, const float *z, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        keep(y + i, fetch(x + i, n - i) + fetch(z + i, n - i), n - i);
}

/* Four rows for each read of the sum. */
static void sum_rows(float *sum, const float *x, ptrdiff_t ldx, size_t n, size_t width)
{
    for (; n >= 4; n -= 4, x += 4 * ldx)
        for (size_t i = 0; i < width; i += LANES) {
            const float *const at = x + i;
            const size_t rest = width - i;
            const vec low = fetch(at, rest) + fetch(at + ldx, rest);
            const vec high = fetch(at + 2 * ldx, rest) + fetch(at + 3 * ldx, rest);

            keep(sum + i, fetch(sum + i, rest) + (low + high), rest);
        }
    for (; n > 0; n--, x += ldx)
        add(sum, sum, x, width);
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
FORCE_INLINE float sum_of_powers(const float *x, float c, size_t n, int power)
{
    vec sum[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
    size_t i = 0;

    for (; i + 4 * LANES <= n; i += 4 * LANES)
        for (size_t j = 0; j < 4; j++) {
            const vec v = load(x + i + j * LANES) - c;

            sum[j] += power == 2 ? v * v : v;
        }
    for (; i + LANES <= n; i += LANES) {
        const vec v = load(x + i) - c;

        sum[0] += power == 2 ? v * v : v;
    }
    if (i < n) {
        const vec v = load_tail(x + i, n - i, c) - c;

        sum[0] += power == 2 ? v * v : v;
    }
    return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* The variance of what is left without the mean: nothing cancels, however large the mean. */
static void norm(float *y, struct tn_norm_stats *stats, const float *x, const float *gain,
                 const float *bias, float eps, size_t n, size_t width)
{
    const float part = 1.0f / (float)width;

    for (size_t row = 0; row < n; row++, y += width, x += width) {
        const float mean = sum_of_powers(x, 0.0f, width, 1) * part;
        const float variance = sum_of_powers(x, mean, width, 2) * part;
        const float by = 1.0f / sqrtf(variance + eps);

        for (size_t i = 0; i < width; i += LANES) {
            const size_t rest = width - i;
            const vec centred = (fetch(x + i, rest) - mean) * by;

            keep(y + i, centred * fetch(gain + i, rest) + fetch(bias + i, rest), rest);
        }
        if (stats)
            stats[row] = (struct tn_norm_stats){mean, by};
    }
}

/* The gradients of gain and bias of one row, and the two sums that its dx needs: of g and of
 * g u, where g = gain dy and u = (x - mean) scale. */
FORCE_INLINE void norm_sums(float sums[2], float *dgain, float *dbias, const float *dy,
                            const float *x, struct tn_norm_stats stats, const float *gain,
                            size_t width)
{
    vec g_sum = splat(0.0f), gu_sum = splat(0.0f);

    for (size_t i = 0; i < width; i += LANES) {
        const size_t rest = width - i;
        const vec d = fetch(dy + i, rest), u = (fetch(x + i, rest) - stats.mean) * stats.scale;
        const vec g = d * fetch(gain + i, rest);

        keep(dgain + i, fetch(dgain + i, rest) + d * u, rest);
        keep(dbias + i, fetch(dbias + i, rest) + d, rest);
        g_sum += g;
        gu_sum += g * u;
    }
    sums[0] = sum_lanes(g_sum);
    sums[1] = sum_lanes(gu_sum);
}

/* dx = scale (g - mean of g - u mean of g u). */
static void norm_slope(float *dx, bool add_dx, float *dgain, float *dbias, const float *dy,
                       const float *x, const struct tn_norm_stats *stats, const float *gain,
                       size_t n, size_t width)
{
    const float part = 1.0f / (float)width;

    for (; n > 0; n--, dx += width, dy += width, x += width, stats++) {
        const float mean = stats->mean, by = stats->scale;
        float sums[2];

        norm_sums(sums, dgain, dbias, dy, x, *stats, gain, width);
        const float g_mean = sums[0] * part, gu_mean = sums[1] * part;

        for (size_t i = 0; i < width; i += LANES) {
            const size_t rest = width - i;
            const vec u = (fetch(x + i, rest) - mean) * by;
            const vec g = fetch(dy + i, rest) * fetch(gain + i, rest);
            const vec slope = by * (g - g_mean - u * gu_mean);

            keep(dx + i, add_dx ? fetch(dx + i, rest) + slope : slope, rest);
        }
    }
}

/* ---- activations -------------------------------------------------------- */

/* NaN stays NaN. */
static void relu(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        keep(y + i, larger(splat(0.0f), fetch(x + i, n - i)), n - i);
}

static void relu_slope(float *dx, const float *dy, const float *y, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        const vec d = fetch(dy + i, n - i);

        keep(dx + i, choose(fetch(y + i, n - i) > splat(0.0f), d, splat(0.0f)), n - i);
    }
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
    size_t i = 0;

    for (; i + PAIR * LANES <= n; i += PAIR * LANES)
        gelu_some(y + i, x + i, LANES, PAIR);
    for (; i < n; i += LANES)
        gelu_some(y + i, x + i, n - i, 1);
}

/* dx = dy (Phi(x) + x e / sqrt(2 pi)) */
FORCE_INLINE void gelu_slope_some(float *dx, const float *dy, const float *x, size_t n,
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

static void gelu_slope(float *dx, const float *dy, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + PAIR * LANES <= n; i += PAIR * LANES)
        gelu_slope_some(dx + i, dy + i, x + i, LANES, PAIR);
    for (; i < n; i += LANES)
        gelu_slope_some(dx + i, dy + i, x + i, n - i, 1);
}

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
static void dropout(float *y, const float *x, const float *residual,
                    const struct tn_dropout_keys *keys, uint32_t first, size_t n)
{
    uvec index = (uvec){0} + first;

    for (uint32_t lane = 0; lane < LANES; lane++)
        index[lane] += lane;
    for (size_t i = 0; i < n; i += LANES, index += LANES) {
        const ivec kept = hash(index, keys->key) >= keys->threshold;
        const vec v = choose(kept, keys->scale * fetch(x + i, n - i), splat(0.0f));

        keep(y + i, residual ? fetch(residual + i, n - i) + v : v, n - i);
    }
}
