/* SPDX-License-Identifier: MIT */
/* kernel_body_cache.h - a query meets keys and values that come from memory, one row behind the
 * other: the part of kernel_body.h for growing caches, and included by it.
 *
 *     dot_rows   s_j = x . y_j
 *     mix_rows   y (+)= sum_j p_j x_j
 *
 * Memory is asked for what comes AHEAD: the processor's own guesses end with every page. */
enum { AHEAD = 512, LINE = 16 }; /* floats */

FORCE_INLINE void ask_ahead(const float *x, size_t floats)
{
    for (size_t i = 0; i < floats; i += LINE)
        __builtin_prefetch((const void *)((uintptr_t)x + (AHEAD + i) * sizeof *x), 0, 2);
}

/* The lanes of each of four vectors, added up. */
#if defined(__clang__) || __GNUC__ >= 12
#if LANES == 4
#define LANES_LOW QUAD_LOW
#define LANES_HIGH QUAD_HIGH
#define LANES_FRONT QUAD_FRONT
#define LANES_BACK QUAD_BACK
#elif LANES == 8
#define LANES_LOW SIDE_LOW
#define LANES_HIGH SIDE_HIGH
#define LANES_FRONT SIDE_FRONT
#define LANES_BACK SIDE_BACK
#elif LANES == 16
#define IN_QUADS(a, b, i, j, k, l)                                                             \
    __builtin_shufflevector(a, b, i, j, k, l, (i) + 4, (j) + 4, (k) + 4, (l) + 4, (i) + 8,     \
                            (j) + 8, (k) + 8, (l) + 8, (i) + 12, (j) + 12, (k) + 12, (l) + 12)
#define LANES_LOW(a, b) IN_QUADS(a, b, 0, 16, 1, 17)
#define LANES_HIGH(a, b) IN_QUADS(a, b, 2, 18, 3, 19)
#define LANES_FRONT(a, b) IN_QUADS(a, b, 0, 1, 16, 17)
#define LANES_BACK(a, b) IN_QUADS(a, b, 2, 3, 18, 19)
#endif

FORCE_INLINE quad sum_quads(vec v)
{
#if LANES == 16
    const side w = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                   __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const vec w = v;
#endif
#if LANES == 4
    return w;
#else
    return __builtin_shufflevector(w, w, 0, 1, 2, 3) +
           __builtin_shufflevector(w, w, 4, 5, 6, 7);
#endif
}

FORCE_INLINE quad lane_sums(const vec v[FOUR])
{
    const vec front = LANES_LOW(v[0], v[1]) + LANES_HIGH(v[0], v[1]);
    const vec back = LANES_LOW(v[2], v[3]) + LANES_HIGH(v[2], v[3]);

    return sum_quads(LANES_FRONT(front, back) + LANES_BACK(front, back));
}
#else
FORCE_INLINE quad lane_sums(const vec v[FOUR])
{
    return (quad){sum_lanes(v[0]), sum_lanes(v[1]), sum_lanes(v[2]), sum_lanes(v[3])};
}
#endif

/* Keeps a product from being fused with an addition across the shuffles between them, which
 * clang does for some rows and not for others. */
FORCE_INLINE vec rounded(vec v)
{
#if defined(__AVX512F__) || (defined(__FMA__) && LANES <= 8)
    __asm__("" : "+v"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* Four rows, or the last of them again where there are fewer. */
FORCE_INLINE quad dot_four(const float *x, const float *y, size_t rows, size_t whole,
                           size_t rest)
{
    const float *row[FOUR];
    vec sum[FOUR];

    for (size_t k = 0; k < FOUR; k++) {
        row[k] = y + (k < rows ? k : rows - 1) * (whole + rest);
        sum[k] = splat(0.0f);
    }
    for (size_t i = 0; i < whole; i += LANES)
        for (size_t k = 0; k < FOUR; k++)
            sum[k] += load(x + i) * load(row[k] + i);
    for (size_t k = 0; k < FOUR; k++) {
        if (rest)
            sum[k] += load_tail(x + whole, rest, 0.0f) * load_tail(row[k] + whole, rest, 0.0f);
        sum[k] = rounded(sum[k]);
    }
    return lane_sums(sum);
}

FORCE_INLINE void dot_rows_by(float *s, const float *x, const float *y, size_t n, size_t whole,
                              size_t rest)
{
    const size_t width = whole + rest;
    size_t j = 0;

    for (; j + FOUR <= n; j += FOUR, y += FOUR * width) {
        ask_ahead(y, FOUR * width);
        *(quad_anywhere *)(s + j) = dot_four(x, y, FOUR, whole, rest);
    }
    if (j < n)
        store_quad(s + j, dot_four(x, y, n - j, whole, rest), n - j);
}

static void dot_rows(float *s, const float *x, const float *y, size_t n, size_t width)
{
    if (width == PAIR * LANES)
        dot_rows_by(s, x, y, n, PAIR * LANES, 0);
    else if (width == FOUR * LANES)
        dot_rows_by(s, x, y, n, FOUR * LANES, 0);
    else
        BY_REST(width, dot_rows_by(s, x, y, n, width - REST, REST));
}

/* `count` vectors of columns, or `left` < LANES columns. */
FORCE_INLINE void mix_row(vec sum[FOUR], float p, const float *x, size_t left, int count)
{
    ask_ahead(x, (size_t)count * LANES);
    for (int i = 0; i < count; i++)
        sum[i] += p * fetch(x + i * LANES, left);
}

/* Rows take turns with two sums, so that none waits for the one before. */
FORCE_INLINE void mix_some(float *y, const float *p, const float *x, size_t n, size_t width,
                           size_t left, int count, bool add)
{
    vec even[FOUR], odd[FOUR];
    size_t j = 0;

    for (int i = 0; i < count; i++)
        even[i] = odd[i] = splat(0.0f);
    for (; j + PAIR <= n; j += PAIR, x += PAIR * width) {
        mix_row(even, p[j], x, left, count);
        mix_row(odd, p[j + 1], x + width, left, count);
    }
    if (j < n)
        mix_row(even, p[j], x, left, count);
    for (int i = 0; i < count; i++) {
        const vec sum = even[i] + odd[i];

        keep(y + i * LANES, add ? fetch(y + i * LANES, left) + sum : sum, left);
    }
}

static void mix_rows(float *y, const float *p, const float *x, size_t n, size_t width, bool add)
{
    BY_FOURS(width, mix_some(y + AT, p, x + AT, n, width, LEFT, COUNT, add));
}
