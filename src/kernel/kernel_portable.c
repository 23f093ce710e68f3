/* SPDX-License-Identifier: MIT */
/* kernel_portable.c - 128-bit vectors, or what the compiler makes of them: runs everywhere. */
#define TN_TABLE tn_kernels_portable
#define TN_NAME "portable"
#define LANES 4
#define PRODUCT_ROWS 4
#define PANEL_ROWS 4
#define RECUR_STEPS 2
#include "kernel/kernel_body.h"
