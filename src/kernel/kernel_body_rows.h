/* SPDX-License-Identifier: MIT */
/* kernel_body_rows.h - a row at a time, or many of them: sums, scales, exponentials and the
 * feature map elu + 1. The part of kernel_body.h for attention's rows, and included by it. */

#ifndef ONLY_NARROW
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
    vec most[PAIR] = {splat(-INFINITY), splat(-INFINITY)};
    size_t i = 0;

    for (; i + PAIR * LANES <= n; i += PAIR * LANES)
        for (size_t j = 0; j < PAIR; j++)
            most[j] = larger(load(x + i + j * LANES), most[j]);
    if (i + LANES <= n) {
        most[0] = larger(load(x + i), most[0]);
        i += LANES;
    }
    if (i < n)
        most[0] = larger(load_tail(x + i, n - i, -INFINITY), most[0]);
    return max_lanes(larger(most[0], most[1]));
}

static void scale(float *y, const float *x, float a, size_t n)
{
    BY_VECTORS(n, keep(y + AT, a * fetch(x + AT, LEFT), LEFT));
}

static void axpy(float *y, float a, const float *x, size_t n)
{
    BY_VECTORS(n, keep(y + AT, fetch(y + AT, LEFT) + a * fetch(x + AT, LEFT), LEFT));
}

/* `count` vectors, or the n < LANES floats that are left of a row. Sums take up one vector
 * after the other however many are computed side by side, so that they round alike. */
FORCE_INLINE void exp_sum_some(vec *sum, float *y, const float *x, float c, size_t n, int count)
{
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = (n < LANES ? load_tail(x, n, -INFINITY) : load(x + j * LANES)) - c;
    exp_of(e, count);
    for (int j = 0; j < count; j++) {
        keep(y + j * LANES, e[j], n);
        *sum += e[j];
    }
}

static float exp_sum(float *y, const float *x, float c, size_t n)
{
    vec sum = splat(0.0f);

    BY_FOURS(n, exp_sum_some(&sum, y + AT, x + AT, c, LEFT, COUNT));
    return sum_lanes(sum);
}

FORCE_INLINE void softmax_backward_some(float *s, float *dp, float lse, float delta, size_t n,
                                        int count)
{
    vec p[FOUR];

    for (int j = 0; j < count; j++)
        p[j] = fetch(s + j * LANES, n) - lse;
    exp_of(p, count);
    for (int j = 0; j < count; j++) {
        keep(s + j * LANES, p[j], n);
        keep(dp + j * LANES, p[j] * (fetch(dp + j * LANES, n) - delta), n);
    }
}

static void softmax_backward(float *s, float *dp, float lse, float delta, size_t n)
{
    BY_FOURS(n, softmax_backward_some(s + AT, dp + AT, lse, delta, LEFT, COUNT));
}

static void settle(void)
{
    STREAMED();
}
#endif

/* ---- rows in numbers ---------------------------------------------------- */

FORCE_INLINE void scale_rows_by(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                                struct tn_column by, size_t n, size_t whole, size_t rest,
                                bool streams)
{
    for (size_t row = 0; row < n; row++, y += ldy, x += ldx) {
        const float a = by.at ? by.at[(ptrdiff_t)row * by.ld] : 1.0f;

        for (size_t i = 0; i < whole; i += LANES)
            put(y + i, a * load(x + i), streams);
        if (rest)
            store_tail(y + whole, a * load_tail(x + whole, rest, 0.0f), rest);
    }
}

static void scale_rows(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                       struct tn_column by, size_t n, size_t width, bool streams)
{
    if (streams && can_stream(y, ldy))
        BY_REST(width, scale_rows_by(y, ldy, x, ldx, by, n, width - REST, REST, true));
    else
        BY_REST(width, scale_rows_by(y, ldy, x, ldx, by, n, width - REST, REST, false));
}

FORCE_INLINE void scale_dot_at(vec *sum, float *y, const float *x, const float *z, float a,
                               size_t n)
{
    const vec v = fetch(x, n);

    *sum += v * fetch(z, n);
    keep(y, a * v, n);
}

FORCE_INLINE void scale_dot_rows_by(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                                    struct tn_column by, struct tn_column dots, const float *z,
                                    ptrdiff_t ldz, size_t n, size_t whole, size_t rest)
{
    for (; n > 0; n--, y += ldy, x += ldx, z += ldz, by.at += by.ld, dots.at += dots.ld) {
        const float a = *by.at;
        vec sum = splat(0.0f);

        for (size_t i = 0; i < whole; i += LANES)
            scale_dot_at(&sum, y + i, x + i, z + i, a, LANES);
        if (rest)
            scale_dot_at(&sum, y + whole, x + whole, z + whole, a, rest);
        *dots.at = sum_lanes(sum);
    }
}

static void scale_dot_rows(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                           struct tn_column by, struct tn_column dots, const float *z,
                           ptrdiff_t ldz, size_t n, size_t width)
{
    BY_REST(width, scale_dot_rows_by(y, ldy, x, ldx, by, dots, z, ldz, n, width - REST, REST));
}

/* ---- elu + 1 ------------------------------------------------------------ */

/* `vecs` vectors, or n < LANES floats, of each of `rows` rows: four chains at most. */
FORCE_INLINE void elu1_block(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                             int rows, int vecs)
{
    vec v[FOUR];

    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++)
            v[i * vecs + j] = fetch(x + i * ldx + j * LANES, n);
    elu1_of(v, rows * vecs);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < vecs; j++)
            keep(y + i * ldy + j * LANES, v[i * vecs + j], n);
}

/* A strip of columns less than four vectors wide, so many rows at a time that there are four
 * chains all the same: a head is as narrow as two vectors of 16 floats. */
FORCE_INLINE void elu1_strip(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                             size_t left, int vecs)
{
    const int rows = FOUR / vecs;

    for (; n >= (size_t)rows; n -= (size_t)rows, y += rows * ldy, x += rows * ldx)
        elu1_block(y, ldy, x, ldx, left, rows, vecs);
    for (; n > 0; n--, y += ldy, x += ldx)
        elu1_block(y, ldy, x, ldx, left, 1, vecs);
}

/* One loop over all rows' fours, so that its constants are loaded once and not for every
 * row. */
FORCE_INLINE void elu1_fours(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                             size_t width)
{
    for (size_t four = n * (width / (FOUR * LANES)), column = 0; four > 0; four--) {
        elu1_block(y + column, 0, x + column, 0, LANES, 1, FOUR);
        column += FOUR * LANES;
        if (column == width) {
            column = 0;
            y += ldy;
            x += ldx;
        }
    }
}

static void elu1(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n, size_t width)
{
    if (ldy == (ptrdiff_t)width && ldx == ldy) { /* one long row */
        width *= n;
        n = 1;
    }
    size_t column = width - width % (FOUR * LANES);

    elu1_fours(y, ldy, x, ldx, n, column);
    if (column + PAIR * LANES <= width) {
        elu1_strip(y + column, ldy, x + column, ldx, n, LANES, PAIR);
        column += PAIR * LANES;
    }
    if (column + LANES <= width) {
        elu1_strip(y + column, ldy, x + column, ldx, n, LANES, 1);
        column += LANES;
    }
    if (column < width)
        BY_REST(width, elu1_strip(y + column, ldy, x + column, ldx, n, REST, 1));
}

FORCE_INLINE void elu1_backward_of(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                                   const float *y, ptrdiff_t ldy, size_t n, size_t whole,
                                   size_t rest, bool streams)
{
    const vec one = splat(1.0f);

    for (; n > 0; n--, dx += lddx, dy += lddy, y += ldy) {
        for (size_t i = 0; i < whole; i += LANES)
            put(dx + i, load(dy + i) * smaller(one, load(y + i)), streams);
        if (rest) {
            const vec derivative = smaller(one, load_tail(y + whole, rest, 0.0f));

            store_tail(dx + whole, load_tail(dy + whole, rest, 0.0f) * derivative, rest);
        }
    }
}

static void elu1_backward(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                          const float *y, ptrdiff_t ldy, size_t n, size_t width, bool streams)
{
    if (streams && can_stream(dx, lddx))
        BY_REST(width,
                elu1_backward_of(dx, lddx, dy, lddy, y, ldy, n, width - REST, REST, true));
    else
        BY_REST(width,
                elu1_backward_of(dx, lddx, dy, lddy, y, ldy, n, width - REST, REST, false));
}
