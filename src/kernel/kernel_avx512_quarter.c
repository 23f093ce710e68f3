/* SPDX-License-Identifier: MIT */
/* kernel_avx512_quarter.c - AVX-512's masks on 128-bit vectors: rows that fill at most a
 * quarter of a vector of kernel_avx512.c. */
#ifndef __AVX512VL__
#error "compile this file with -mavx512vl"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx512_quarter
#define TN_NAME "avx512 quarter"
#define ONLY_NARROW
#define LANES 4
#define PRODUCT_ROWS 8
#define PANEL_ROWS 14
#define RECUR_STEPS 4
#define LARGER(a, b) _mm_max_ps(a, b)
#define SMALLER(a, b) _mm_min_ps(a, b)
#define STREAM(p, v) _mm_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#define FULL_MASKS
#define FIRST(n) ((__mmask8)((1u << (n)) - 1))
#define LOAD_TAIL(p, n, fill) _mm_mask_loadu_ps(fill, FIRST(n), p)
#define STORE_TAIL(p, v, n) _mm_mask_storeu_ps(p, FIRST(n), v)
#define LOAD_HALVES_TAIL(p, n) _mm_cvtsi128_si64(_mm_maskz_loadu_epi16(FIRST(n), p))
#define STORE_HALVES_TAIL(p, v, n)                                                             \
    _mm_mask_storeu_epi16(p, FIRST(n), _mm_cvtsi64_si128((long long)(v)))
#include "kernel/kernel_body.h"
