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

/* The dot product of bytes came with ARMv8.2: compiled for all, used where the processor has
 * it. As assembler, because some compilers offer it only in files that need such a processor.
 */
#ifdef __linux__
#include <arm_neon.h>
#include <sys/auxv.h>

#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif

#ifdef __clang__
#define QUAD_TARGET __attribute__((target("dotprod")))
#else
#define QUAD_TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif

static inline __attribute__((always_inline)) QUAD_TARGET int32x4_t sdot(int32x4_t sum,
                                                                        int8x16_t w,
                                                                        int8x16_t a)
{
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(w), "w"(a));
    return sum;
}

#define QUAD_DOT(sum, w, a) sdot(sum, (int8x16_t)((w) ^ 0x80808080), (int8x16_t)(a))
#define QUAD_PUT(to, q)                                                                        \
    for (int lane = 0; lane < LANES; lane++)                                                   \
    (to)[lane] = (char)(q)[lane]
#define QUAD_OFFSET 0 /* its bytes have signs */
#define HAS_QUAD_DOT() ((getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0)
#endif
#include "kernel/kernel_body.h"
