/* SPDX-License-Identifier: MIT */
/* kernel_avx512.c - 512-bit vectors: 32 registers. */
#ifndef __AVX512F__
#error "compile this file with -mavx512f"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx512
#define TN_NAME "avx512"
#define LANES 16
#define PRODUCT_ROWS 8
#define PANEL_ROWS 14
#define RECUR_STEPS 4
#define LARGER(a, b) _mm512_max_ps(a, b)
#define SMALLER(a, b) _mm512_min_ps(a, b)
#define STREAM(p, v) _mm512_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#include "kernel/kernel_body.h"
