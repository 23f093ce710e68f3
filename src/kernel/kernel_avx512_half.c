/* SPDX-License-Identifier: MIT */
/* kernel_avx512_half.c - AVX-512's masks on 256-bit vectors: rows that fill at most half a
 * vector of kernel_avx512.c. */
#ifndef __AVX512VL__
#error "compile this file with -mavx512vl"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx512_half
#define TN_NAME "avx512 half"
#define ONLY_NARROW
#define NARROWER tn_kernels_avx512_quarter
#define LANES 8
#define JOIN_QUADS(a, b) _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1)
#define PRODUCT_ROWS 8
#define PANEL_ROWS 14
#define RECUR_STEPS 4
#define LARGER(a, b) _mm256_max_ps(a, b)
#define SMALLER(a, b) _mm256_min_ps(a, b)
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#define FULL_MASKS
#define FIRST(n) ((__mmask8)((1u << (n)) - 1))
#define LOAD_TAIL(p, n, fill) _mm256_mask_loadu_ps(fill, FIRST(n), p)
#define STORE_TAIL(p, v, n) _mm256_mask_storeu_ps(p, FIRST(n), v)
#define LOAD_HALVES_TAIL(p, n) _mm_maskz_loadu_epi16(FIRST(n), p)
#define STORE_HALVES_TAIL(p, v, n) _mm_mask_storeu_epi16(p, FIRST(n), (__m128i)(v))
#include "kernel/kernel_body.h"
