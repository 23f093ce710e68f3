/* SPDX-License-Identifier: MIT */
/* kernel_body_quantised.h - products of int8 and of bf16: the scales of int8, and each product
 * twice, by instructions that every processor has and by those for it, of which a call takes
 * the better. */

FORCE_INLINE ivec larger_int(ivec a, ivec b)
{
    return choose_int(a > b, a, b);
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
#define NARROW(name) bf16_##name##_of_panels
#define BF16_PACKED
#include "kernel/kernel_body_bf16.h"
#undef NARROW
#else
#define HAS_PAIR_DOT() false
#define bf16_product_by_pairs bf16_product_by_halves
#define bf16_product_of_panels bf16_product_by_halves
#define bf16_burn_by_pairs burn
#endif

static void pair_rows(uint32_t *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                      size_t width)
{
    for (size_t i = 0; i < n; i += 2, y += ldy, x += 2 * ldx)
        for (size_t j = 0; j < width; j += LANES) {
            uvec words = narrow_bits(fetch(x + j, width - j));

            if (i + 1 < n)
                words |= narrow_bits(fetch(x + ldx + (ptrdiff_t)j, width - j)) << 16;
            keep((float *)(y + j), (vec)words, width - j);
        }
}

static void product_bf16(const struct tn_panels *p)
{
    if (HAS_PAIR_DOT() && p->lda == 0)
        bf16_product_of_panels(p);
    else if (HAS_PAIR_DOT())
        bf16_product_by_pairs(p);
    else
        bf16_product_by_halves(p);
}

static double burn_bf16(size_t rounds)
{
    return HAS_PAIR_DOT() ? bf16_burn_by_pairs(rounds) : 0.0;
}
