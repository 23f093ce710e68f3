/* SPDX-License-Identifier: MIT */
/* peak_bf16.c - vdpbf16ps: each of 16 lanes adds two products of bf16 numbers to a float. */
#ifndef __AVX512BF16__
#error "compile this file with -mavx512bf16"
#endif
#include <immintrin.h>

#include "kernel/peak.h"

enum {
    CHAINS = 12, /* independent, more than latency times throughput */
    FLOPS = 64   /* of one instruction: 32 products, 32 sums */
};

double tn_burn_bf16(size_t rounds)
{
    volatile float keep = 1.0f; /* not known to the compiler */
    const __m512bh ones = _mm512_cvtne2ps_pbh(_mm512_set1_ps(keep), _mm512_set1_ps(keep));
    __m512 x[CHAINS];

    for (int i = 0; i < CHAINS; i++)
        x[i] = _mm512_set1_ps(keep * (float)i);
    for (size_t n = 0; n < rounds; n++)
        for (int i = 0; i < CHAINS; i++)
            x[i] = _mm512_dpbf16_ps(x[i], ones, ones);
    for (int i = 0; i < CHAINS; i++)
        keep = keep + _mm512_cvtss_f32(x[i]);
    return (double)FLOPS * CHAINS * (double)rounds;
}
