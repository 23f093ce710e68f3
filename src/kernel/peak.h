/* SPDX-License-Identifier: MIT */
/* peak.h - multiply-adds that no kernel of tarn's own uses, for the machine's limits. */
#ifndef TN_PEAK_H
#define TN_PEAK_H

#include <stddef.h>

/* Products of bf16 pairs summed in f32, in registers; returns how many flops that was. Only
 * where TN_HAVE_BF16 is defined, and for processors with AVX512-BF16. */
double tn_burn_bf16(size_t rounds);

#endif
