/* SPDX-License-Identifier: MIT */
/* kernel_body_rows.h - a row at a time, or many of them: sums, scales, exponentials and the
 * feature map elu + 1. The part of kernel_body.h for attention's rows, and included by it. */

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
