/* SPDX-License-Identifier: MIT */
/* kernel_avx2.c - 256-bit vectors with fused multiply-add: 16 registers. */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define TN_TABLE tn_kernels_avx2
#define TN_NAME "avx2"
#define LANES 8
#define NARROWER tn_kernels_avx2_half
#define PRODUCT_ROWS 4
#define PANEL_ROWS 6
#define RECUR_STEPS 3
#define LARGER(a, b) _mm256_max_ps(a, b)
#define SMALLER(a, b) _mm256_min_ps(a, b)
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define STREAMED() _mm_sfence()

/* Loads have a mask, of which a window at 8 - n is the one for the first n lanes. Stores have
 * one too, but some processors take a dozen cycles and more for them. */
static const int first_lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
#define MASK_FIRST(n) ((const void *)(first_lanes + 8 - (n)))

/* The last four of the first n lanes, 4 <= n: a window at n - 4. */
static const int lanes_from[12] = {0, 1, 2, 3, 4, 5, 6, 7};

static inline __attribute__((always_inline)) __m256 load_first(const float *p, size_t n,
                                                               __m256 fill)
{
    const __m256i mask = _mm256_loadu_si256(MASK_FIRST(n));

    return _mm256_blendv_ps(fill, _mm256_maskload_ps(p, mask), _mm256_castsi256_ps(mask));
}

/* From four lanes on by two stores that overlap. */
static inline __attribute__((always_inline)) void store_first(float *p, __m256 v, size_t n)
{
    const __m128 low = _mm256_castps256_ps128(v);

    if (n >= 4) {
        const __m256i last = _mm256_loadu_si256((const void *)(lanes_from + n - 4));

        _mm_storeu_ps(p, low);
        _mm_storeu_ps(p + n - 4, _mm256_castps256_ps128(_mm256_permutevar8x32_ps(v, last)));
    } else {
        if (n >= 2)
            _mm_storel_pi((void *)p, low);
        else
            _mm_store_ss(p, low);
        if (n == 3)
            _mm_store_ss(p + 2, _mm_movehl_ps(low, low));
    }
}

/* The same of bf16 numbers, n < 8: two loads that overlap. */
static inline __attribute__((always_inline)) __m128i load_first_halves(const void *p, size_t n)
{
    const char *const end = (const char *)p + 2 * n;
    uint64_t low = 0, high = 0;
    uint32_t two = 0;
    uint16_t one = 0;

    if (n >= 4) {
        memcpy(&low, p, 8);
        if (n > 4) {
            memcpy(&high, end - 8, 8);
            high >>= 16 * (8 - n);
        }
    } else {
        if (n >= 2) {
            memcpy(&two, p, 4);
            low = two;
        }
        if (n & 1) {
            memcpy(&one, end - 2, 2);
            low |= (uint64_t)one << 16 * (n - 1);
        }
    }
    return _mm_set_epi64x((int64_t)high, (int64_t)low);
}

static inline __attribute__((always_inline)) void store_first_halves(void *p, __m128i v,
                                                                     size_t n)
{
    uint64_t left = (uint64_t)_mm_cvtsi128_si64(v);
    char *at = p;

    if (n & 4) {
        memcpy(at, &left, 8);
        left = (uint64_t)_mm_extract_epi64(v, 1);
        at += 8;
    }
    if (n & 2) {
        memcpy(at, &left, 4);
        left >>= 32;
        at += 4;
    }
    if (n & 1)
        memcpy(at, &left, 2);
}

#define LOAD_HALVES_TAIL(p, n) load_first_halves(p, n)
#define STORE_HALVES_TAIL(p, v, n) store_first_halves(p, (__m128i)(v), n)
#define LOAD_TAIL(p, n, fill) load_first(p, n, fill)
#define LOAD_TAIL_ZERO(p, n) _mm256_maskload_ps(p, _mm256_loadu_si256(MASK_FIRST(n)))
#define STORE_TAIL(p, v, n) store_first(p, v, n)
#define MADD(a, b) (ivec) _mm256_madd_epi16((__m256i)(a), (__m256i)(b))
#include "kernel/kernel_body.h"
