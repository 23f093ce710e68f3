/* SPDX-License-Identifier: MIT */
/* kernel_avx2.c - 256-bit vectors with fused multiply-add: 16 registers. */
#if !defined(__AVX2__) || !defined(__FMA__)
#error "compile this file with -mavx2 -mfma"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx2
#define TN_NAME "avx2"
#define LANES 8
#define PRODUCT_ROWS 4
#define PANEL_ROWS 6
#define RECUR_STEPS 3
#define LARGER(a, b) _mm256_max_ps(a, b)
#define SMALLER(a, b) _mm256_min_ps(a, b)
#define STREAM(p, v) _mm256_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#include "kernel/kernel_body.h"
