/* SPDX-License-Identifier: MIT */
/* kernel_avx2_half.c - 128-bit vectors with fused multiply-add: rows that fill at most half a
 * vector of kernel_avx2.c. */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx2_half
#define TN_NAME "avx2 half"
#define ONLY_NARROW
#define COMPARES
#define LANES 4
#define PRODUCT_ROWS 4
#define PANEL_ROWS 6
#define RECUR_STEPS 3
#define LARGER(a, b) _mm_max_ps(a, b)
#define SMALLER(a, b) _mm_min_ps(a, b)
#define STREAM(p, v) _mm_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#include "kernel/kernel_body.h"
