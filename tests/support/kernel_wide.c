/* SPDX-License-Identifier: MIT */
/* kernel_wide.c - the loops of 16 lanes in pairs of 256-bit registers: what AVX-512 computes,
 * where there is none. */
#define TN_TABLE tn_kernels_wide
#define TN_NAME "wide"
#define LANES 16
#define PRODUCT_ROWS 8
#define PANEL_ROWS 6
#define RECUR_STEPS 4
#include "kernel/kernel_body.h"
