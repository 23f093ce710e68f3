/* SPDX-License-Identifier: MIT */
/* kernel_portable.c - 128-bit vectors, or what the compiler makes of them: runs everywhere. */
#define TN_TABLE tn_kernels_portable
#define TN_NAME "portable"
#define LANES 4
#define PRODUCT_ROWS 4
#define PANEL_ROWS 4
#define RECUR_STEPS 2
#ifdef __SSE2__
#include <emmintrin.h>
#define MADD(a, b) (ivec) _mm_madd_epi16((__m128i)(a), (__m128i)(b))
#endif
#include "kernel/kernel_body.h"
