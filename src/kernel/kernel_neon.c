/* SPDX-License-Identifier: MIT */
/* kernel_neon.c - 128-bit vectors with fused multiply-add: 32 registers, on every aarch64. */
#ifndef __ARM_NEON
#error "compile this file for a processor with NEON"
#endif
#define TN_TABLE tn_kernels_neon
#define TN_NAME "neon"
#define LANES 4
#define PRODUCT_ROWS 8
#define PANEL_ROWS 8
#define RECUR_STEPS 4
#ifdef __ARM_FEATURE_DOTPROD
#include <arm_neon.h>
#define QUAD_DOT(sum, w, a) vdotq_s32(sum, (int8x16_t)((w) ^ 0x80808080), (int8x16_t)(a))
#define QUAD_PUT(to, q)                                                                        \
    for (int lane = 0; lane < LANES; lane++)                                                   \
    (to)[lane] = (char)(q)[lane]
#define QUAD_TARGET
#define QUAD_OFFSET 0 /* its bytes have signs */
#define HAS_QUAD_DOT() true
#endif
#include "kernel/kernel_body.h"
