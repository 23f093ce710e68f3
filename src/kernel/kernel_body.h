/* SPDX-License-Identifier: MIT */
/* kernel_body.h - every vector loop, written once with GCC's and clang's vector types: the
 * words that they are written in, the loops that measure the machine, and the table. The others
 * are in the parts kernel_body_*.h, which it includes.
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
 *   LOAD_TAIL, STORE_TAIL  optional: the first n < LANES floats at p by a mask
 *   LOAD_TAIL_ZERO  optional: the same with zeros in the other lanes
 *   FULL_MASKS    optional: these are single instructions
 *   JOIN_QUADS    optional: eight floats of two times four
 *   NARROWER      optional: a table of half as many lanes and as many PANEL_ROWS, for rows
 *                 that it has fewer empty lanes for (kernel_body_narrow.h)
 *   COMPARER      optional: another table for loops that compare numbers most of the time, and
 *                 CTC_NARROW, LSH_NARROW: the most labels and hashes that go there
 *   ONLY_NARROW   optional: this is such a table; it has nothing but what they need, and loops
 *                 of CTC if COMPARES is defined
 *   MADD          optional: sums of pairs of products of 16-bit numbers
 *   QUAD_DOT, and QUAD_PUT, QUAD_TARGET, QUAD_OFFSET, HAS_QUAD_DOT  optional: adds the
 *                 products of four bytes; stores the low bytes of a vector; the attribute of
 *                 functions that use these; what was added to bytes of weights that is to be
 *                 taken off again; whether the processor has them
 *   PAIR_DOT, and PAIR_TARGET, HAS_PAIR_DOT  optional: adds the products of pairs of bf16
 *
 * so that a new instruction set is a file of a few lines. */
#include <math.h>
#include <string.h>

#include "kernel/int8.h"
#include "kernel/kernels.h"

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
typedef float vec_anywhere __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Small inner loops over constant counts must unroll, or their arrays are not registers. */
#define FORCE_INLINE static inline __attribute__((always_inline))

enum { PAIR = 2, FOUR = 4 }; /* vectors side by side: in the register tiles, in other loops */

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

typedef float quad __attribute__((vector_size(16)));
typedef float quad_anywhere __attribute__((vector_size(16), aligned(4), may_alias));
typedef float half_quad __attribute__((vector_size(8)));

/* The first n < 4 floats at p, 0 < n; the others are those of fill. */
FORCE_INLINE quad load_quad(const float *p, size_t n, quad fill)
{
    half_quad low;

    if (n < 2)
        return (quad){p[0], fill[1], fill[2], fill[3]};
    memcpy(&low, p, sizeof low);
    return (quad){low[0], low[1], n > 2 ? p[2] : fill[2], fill[3]};
}

FORCE_INLINE void store_quad(float *p, quad v, size_t n)
{
    const half_quad low = {v[0], v[1]};

    if (n < 2)
        p[0] = v[0];
    else
        memcpy(p, &low, sizeof low);
    if (n > 2)
        p[2] = v[2];
}

/* The last n < LANES floats of a row, 0 < n; the other lanes are `fill`. A memcpy() of n floats
 * would be a call, and take longer than what most loops do with a vector; in halves or one lane
 * after the other, the vector stays in its register. */
#ifndef LOAD_TAIL
#define LOAD_TAIL(p, n, fill) load_lanes(p, n, fill)
#define STORE_TAIL(p, v, n) store_lanes(p, v, n)

#if LANES == 4
FORCE_INLINE vec load_lanes(const float *p, size_t n, vec fill)
{
    return load_quad(p, n, fill);
}

FORCE_INLINE void store_lanes(float *p, vec v, size_t n)
{
    store_quad(p, v, n);
}
#else
FORCE_INLINE vec load_lanes(const float *p, size_t n, vec fill)
{
    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            fill[i] = p[i];
    return fill;
}

FORCE_INLINE void store_lanes(float *p, vec v, size_t n)
{
    for (size_t i = 0; i < LANES - 1; i++)
        if (i < n)
            p[i] = v[i];
}
#endif
#endif

#ifndef LOAD_TAIL_ZERO
#define LOAD_TAIL_ZERO(p, n) LOAD_TAIL(p, n, splat(0.0f))
#endif

/* `fill` is a constant where it is inlined. */
FORCE_INLINE vec load_tail(const float *p, size_t n, float fill)
{
    return fill == 0.0f ? LOAD_TAIL_ZERO(p, n) : LOAD_TAIL(p, n, splat(fill));
}

FORCE_INLINE void store_tail(float *p, vec v, size_t n)
{
    STORE_TAIL(p, v, n);
}

/* Rows of `width` floats end with width % LANES that do not fill a vector: REST in `call`,
 * which is the same for all rows, so that a mask is made once. Where tails take branches, there
 * is a loop for each number, in which the compiler knows it. */
#define CASE_REST(rest, call)                                                                  \
    case rest: {                                                                               \
        enum { REST = rest };                                                                  \
        call;                                                                                  \
    } break;
#if LANES <= 8 && !defined(FULL_MASKS)
#if LANES == 4
#define MORE_RESTS(call)
#else
#define MORE_RESTS(call)                                                                       \
    CASE_REST(4, call) CASE_REST(5, call) CASE_REST(6, call) CASE_REST(7, call)
#endif
#define BY_REST(width, call)                                                                   \
    do                                                                                         \
        switch ((width) % LANES) {                                                             \
            CASE_REST(0, call)                                                                 \
            CASE_REST(1, call)                                                                 \
            CASE_REST(2, call)                                                                 \
            CASE_REST(3, call)                                                                 \
            MORE_RESTS(call)                                                                   \
        }                                                                                      \
    while (0)
#else
#define BY_REST(width, call)                                                                   \
    do                                                                                         \
        switch ((width) % LANES) {                                                             \
            CASE_REST(0, call)                                                                 \
        default: {                                                                             \
            const size_t REST = (width) % LANES;                                               \
            call;                                                                              \
        }                                                                                      \
        }                                                                                      \
    while (0)
#endif

/* The next floats of a row of which n are left, 0 < n; lanes past its end are 0. */
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

/* `call` for each vector of a row of n floats, or for four, two and one of them side by side:
 * COUNT vectors from AT on, of which LEFT floats belong to the row. COUNT is a constant, and so
 * is LEFT but for the last vector, if that is not full. */
#define AT_ONCE(n, count, call)                                                                \
    if (AT + (count)*LANES <= (n)) {                                                           \
        enum { COUNT = count, LEFT = LANES };                                                  \
        call;                                                                                  \
        AT += (count)*LANES;                                                                   \
    }
#define AT_ALL(n, count, call)                                                                 \
    for (; AT + (count)*LANES <= (n); AT += (count)*LANES) {                                   \
        enum { COUNT = count, LEFT = LANES };                                                  \
        call;                                                                                  \
    }
#define AT_REST(n, call)                                                                       \
    if (AT < (n)) {                                                                            \
        enum { COUNT = 1 };                                                                    \
        const size_t LEFT = (n)-AT;                                                            \
        call;                                                                                  \
    }
#define BY_VECTORS(n, call)                                                                    \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, 1, call)                                                                     \
        AT_REST(n, call)                                                                       \
    } while (0)
#define BY_PAIRS(n, call)                                                                      \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, PAIR, call)                                                                  \
        AT_ONCE(n, 1, call)                                                                    \
        AT_REST(n, call)                                                                       \
    } while (0)
#define BY_WHOLE_FOURS(n, call) BY_FOURS_AND(n, call, )
#define BY_FOURS(n, call) BY_FOURS_AND(n, call, AT_REST(n, call))
#define BY_FOURS_AND(n, call, rest)                                                            \
    do {                                                                                       \
        size_t AT = 0;                                                                         \
        AT_ALL(n, FOUR, call)                                                                  \
        AT_ONCE(n, PAIR, call)                                                                 \
        AT_ONCE(n, 1, call)                                                                    \
        rest                                                                                   \
    } while (0)

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

/* A vector with its halves, or those of all its parts of 8, 4 or 2 lanes, exchanged. */
#if defined(__clang__) || __GNUC__ >= 12
#define SHUFFLE(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#if LANES == 4
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2)
#elif LANES == 8
#define SWAP_FOURS(v) SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3)
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6)
#elif LANES == 16
#define SWAP_EIGHTS(v) SHUFFLE(v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7)
#define SWAP_FOURS(v) SHUFFLE(v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11)
#define SWAP_TWOS(v) SHUFFLE(v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13)
#define SWAP_ONES(v) SHUFFLE(v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14)
#endif
#else /* gcc before 12 has no portable shuffle */
FORCE_INLINE vec swap_parts(vec v, int part)
{
    vec swapped;

    for (int i = 0; i < LANES; i++)
        swapped[i] = v[i ^ part];
    return swapped;
}
#define SWAP_EIGHTS(v) swap_parts(v, 8)
#define SWAP_FOURS(v) swap_parts(v, 4)
#define SWAP_TWOS(v) swap_parts(v, 2)
#define SWAP_ONES(v) swap_parts(v, 1)
#endif

/* Fixed order: halves, quarters, ... Narrower registers are added faster. */
FORCE_INLINE float sum_lanes(vec v)
{
#if LANES > 4 && (defined(__clang__) || __GNUC__ >= 12)
#if LANES == 16
    typedef float half __attribute__((vector_size(32)));
    const half sum = __builtin_shufflevector(v, v, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15);
#else
    const vec sum = v;
#endif
    typedef float quarter __attribute__((vector_size(16)));
    quarter w = __builtin_shufflevector(sum, sum, 0, 1, 2, 3) +
                __builtin_shufflevector(sum, sum, 4, 5, 6, 7);

    w += __builtin_shufflevector(w, w, 2, 3, 0, 1);
    w += __builtin_shufflevector(w, w, 1, 0, 3, 2);
    return w[0];
#else
#if LANES > 8
    v += SWAP_EIGHTS(v);
#endif
#if LANES > 4
    v += SWAP_FOURS(v);
#endif
    v += SWAP_TWOS(v);
    v += SWAP_ONES(v);
    return v[0];
#endif
}

FORCE_INLINE float max_lanes(vec v)
{
#if LANES > 8
    v = larger(v, SWAP_EIGHTS(v));
#endif
#if LANES > 4
    v = larger(v, SWAP_FOURS(v));
#endif
    v = larger(v, SWAP_TWOS(v));
    v = larger(v, SWAP_ONES(v));
    return v[0];
}

static const float exp_shift = 12582912.0f; /* 1.5 * 2^23 */

/* exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln 2 / 2, exp(r) = 1 + r p(r) with the p of
 * degree 4 that makes the largest relative error smallest: 1e-7. ln 2 is subtracted in two
 * parts, the first exact in few bits. Adding 1.5 * 2^23 rounds to a whole number and leaves it
 * in the low bits of the float. For x within -87.33 .. 88.37, where 2^n is a normal float; NaN
 * stays NaN. exp_split leaves exp(r) in x and n in shifted, for any x above -1e6.
 *
 * Up to four vectors step by step: each step waits for the one before it, so chains side by
 * side keep the multipliers busy where one would leave them idle. */
FORCE_INLINE void exp_split(vec *x, vec *shifted, int count)
{
    static const float coefficients[] = {0.0418981612f, 0.166676387f, 0.499991477f,
                                         0.999999702f, 1.0f};
    const vec shift = splat(exp_shift);
    vec p[FOUR];

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
        x[j] = p[j];
}

FORCE_INLINE void exp_within(vec *x, int count)
{
    vec shifted[FOUR];

    exp_split(x, shifted, count);
    for (int j = 0; j < count; j++)
        x[j] = (vec)((uvec)x[j] + ((uvec)shifted[j] << 23));
}

static const float exp_top = 88.37f, exp_bottom = -87.33f;

/* Any x: stays at exp(88.37) above, is 0 below. */
FORCE_INLINE void exp_of(vec *x, int count)
{
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = larger(splat(exp_bottom), smaller(splat(exp_top), x[j]));
    exp_within(e, count);
    for (int j = 0; j < count; j++)
        x[j] = choose(x[j] < splat(exp_bottom), splat(0.0f), e[j]);
}

/* x + 1 above zero, exp(x) below, as max(x, 0) + exp(min(x, 0)), which has the same bits:
 * exp(0) is 1. Not less than the smallest normal float. */
FORCE_INLINE void elu1_of(vec *x, int count)
{
    const vec zero = splat(0.0f);
    vec e[FOUR];

    for (int j = 0; j < count; j++)
        e[j] = larger(splat(exp_bottom), smaller(zero, x[j]));
    exp_within(e, count);
    for (int j = 0; j < count; j++)
        x[j] = larger(zero, x[j]) + e[j];
}

#ifndef ONLY_NARROW
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
#endif

#include "kernel/kernel_body_product.h"
#include "kernel/kernel_body_rows.h"
#include "kernel/kernel_body_layer.h"
#include "kernel/kernel_body_logistic.h"
#include "kernel/kernel_body_lstm.h"
#include "kernel/kernel_body_update.h"
#include "kernel/kernel_body_packed.h"
#if !defined(ONLY_NARROW) || defined(COMPARES)
#include "kernel/kernel_body_ctc.h"
#endif
#ifndef ONLY_NARROW
#include "kernel/kernel_body_lsh.h"

/* ---- int8 --------------------------------------------------------------- */

FORCE_INLINE ivec larger_int(ivec a, ivec b)
{
    const ivec mask = a > b;

    return (a & mask) | (b & ~mask);
}

/* The largest |x| of n floats, by its bits: those of NaN are larger than infinity's. */
FORCE_INLINE uint32_t int8_most_bits(const float *x, size_t n)
{
    ivec most = {0};

    for (size_t i = 0; i < n; i += LANES)
        most = larger_int((ivec)fetch(x + i, n - i) & INT32_MAX, most);
#if LANES > 8
    most = larger_int(most, (ivec)SWAP_EIGHTS((vec)most));
#endif
#if LANES > 4
    most = larger_int(most, (ivec)SWAP_FOURS((vec)most));
#endif
    most = larger_int(most, (ivec)SWAP_TWOS((vec)most));
    most = larger_int(most, (ivec)SWAP_ONES((vec)most));
    return (uint32_t)most[0];
}

FORCE_INLINE uint32_t int8_sum_lanes(uvec v)
{
#if LANES > 8
    v += (uvec)SWAP_EIGHTS((vec)v);
#endif
#if LANES > 4
    v += (uvec)SWAP_FOURS((vec)v);
#endif
    v += (uvec)SWAP_TWOS((vec)v);
    v += (uvec)SWAP_ONES((vec)v);
    return v[0];
}

struct int8_scale {
    float scale, inverse; /* 2^e and 2^-e; inverse 0: all count as zero */
};

/* The least power of two that leaves the largest at 127 or below. Numbers below 2^-100 count
 * as zero, and make no difference to others. */
FORCE_INLINE struct int8_scale int8_scale_of(uint32_t most)
{
    const uint32_t exponent = most >> 23, fraction = most & 0x7fffff;
    const uint32_t e = exponent - 6 + (fraction > 0x7e0000),
                   bits[2] = {e << 23, (254 - e) << 23};
    struct int8_scale scale;

    if (exponent == 255)
        return (struct int8_scale){NAN, 0.0f};
    if (exponent < 27)
        return (struct int8_scale){0.0f, 0.0f};
    memcpy(&scale, bits, sizeof scale);
    return scale;
}

/* Sums of pairs of products of 16-bit numbers; those of a are from 0 to 255. */
#ifndef MADD
#define MADD(a, b) madd(a, b)
FORCE_INLINE ivec madd(uvec a, uvec b)
{
    return (ivec)(a & 0xffff) * ((ivec)(b << 16) >> 16) + (ivec)(a >> 16) * ((ivec)b >> 16);
}
#endif

#define NARROW(name) int8_##name##_by_words
#include "kernel/kernel_body_int8.h"
#undef NARROW
#ifdef QUAD_DOT
#define NARROW(name) int8_##name##_by_quads
#define INT8_QUADS
#include "kernel/kernel_body_int8.h"
#undef NARROW
#else
#define HAS_QUAD_DOT() false
#define int8_quantise_by_quads int8_quantise_by_words
#define int8_product_by_quads int8_product_by_words
#endif

static void quantise(void *rows, const float *x, ptrdiff_t ldx, size_t m, size_t k)
{
    if (HAS_QUAD_DOT())
        int8_quantise_by_quads(rows, x, ldx, m, k);
    else
        int8_quantise_by_words(rows, x, ldx, m, k);
}

static void product_int8(const struct tn_panels *p)
{
    if (HAS_QUAD_DOT())
        int8_product_by_quads(p);
    else
        int8_product_by_words(p);
}

/* ---- bf16, inputs too --------------------------------------------------- */

#define NARROW(name) bf16_##name##_by_halves
#include "kernel/kernel_body_bf16.h"
#undef NARROW
#ifdef PAIR_DOT
#define NARROW(name) bf16_##name##_by_pairs
#define BF16_PAIRS
#include "kernel/kernel_body_bf16.h"
#undef NARROW
#else
#define HAS_PAIR_DOT() false
#define bf16_product_by_pairs bf16_product_by_halves
#define bf16_burn_by_pairs burn
#endif

static void product_bf16(const struct tn_panels *p)
{
    if (HAS_PAIR_DOT())
        bf16_product_by_pairs(p);
    else
        bf16_product_by_halves(p);
}

static double burn_bf16(size_t rounds)
{
    return HAS_PAIR_DOT() ? bf16_burn_by_pairs(rounds) : 0.0;
}

#endif

#ifdef NARROWER
#include "kernel/kernel_body_narrow.h"
#define ANY(name) name##_any
#else
#define ANY(name) name
#endif

extern const struct tn_kernels TN_TABLE;
const struct tn_kernels TN_TABLE = {
    .name = TN_NAME,
    .lanes = LANES,
#ifdef NARROWER
    .least = LANES / 2,
#else
    .least = LANES,
#endif
    .panel_rows = PANEL_ROWS,
    .pack = ANY(pack),
    .narrow_panels = ANY(narrow_panels),
    .product_packed = ANY(product_packed),
    .product = ANY(product),
    .recur = ANY(recur),
    .recur_sum = ANY(recur_sum),
    .elu1 = ANY(elu1),
    .elu1_backward = ANY(elu1_backward),
    .scale_rows = ANY(scale_rows),
    .scale_dot_rows = ANY(scale_dot_rows),
    .narrow = ANY(narrow),
    .widen = ANY(widen),
    .sum_rows = ANY(sum_rows),
    .scatter_rows = ANY(scatter_rows),
    .norm = ANY(norm),
    .norm_backward = ANY(norm_backward),
    .dropout = ANY(dropout),
    .logistics = ANY(logistics),
    .lstm = ANY(lstm),
    .lstm_backward = ANY(lstm_backward),
    .update = ANY(update),
#if !defined(ONLY_NARROW) || defined(COMPARES)
    .ctc_emit = ANY(ctc_emit),
    .ctc_forward = ANY(ctc_forward),
    .ctc_backward = ANY(ctc_backward),
    .ctc_posteriors = ANY(ctc_posteriors),
#endif
#ifndef ONLY_NARROW
    .quantise = quantise,
    .product_int8 = product_int8,
    .product_bf16 = product_bf16,
    .burn = burn,
    .burn_bf16 = burn_bf16,
    .read = read,
    .transpose = transpose,
    .dot = dot,
    .max = max,
    .scale = scale,
    .axpy = axpy,
    .exp_sum = exp_sum,
    .softmax_backward = softmax_backward,
    .settle = settle,
    .add = add,
    .gather_rows = gather_rows,
    .add_rows = add_rows,
    .lsh_buckets = ANY(lsh_buckets),
    .lsh_score = lsh_score,
    .lsh_weigh = lsh_weigh,
    .lsh_backward = lsh_backward,
    .relu = relu,
    .relu_backward = relu_backward,
    .gelu = gelu,
    .gelu_backward = gelu_backward,
#endif
};
