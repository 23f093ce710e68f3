/* SPDX-License-Identifier: MIT */
/* kernel_avx512.c - 512-bit vectors: 32 registers. */
#ifndef __AVX512F__
#error "compile this file with -mavx512f"
#endif
#include <immintrin.h>

#define TN_TABLE tn_kernels_avx512
#define TN_NAME "avx512"
#define LANES 16
#define NARROWER tn_kernels_avx512_half
#define COMPARER tn_kernels_avx2 /* AVX-512 compares into masks, of which it makes vectors */
#define CTC_NARROW                                                                             \
    128 /* labels are read one beside their place: across two lines of the cache */
#define LSH_NARROW SIZE_MAX
#define JOIN_QUADS(a, b) _mm256_insertf128_ps(_mm256_castps128_ps256(a), b, 1)
#define PRODUCT_ROWS 8
#define PANEL_ROWS 14
#define RECUR_STEPS 4
#define LARGER(a, b) _mm512_max_ps(a, b)
#define SMALLER(a, b) _mm512_min_ps(a, b)
#define STREAM(p, v) _mm512_stream_ps(p, v)
#define STREAMED() _mm_sfence()
#define FULL_MASKS
#define FIRST(n) ((__mmask16)((1u << (n)) - 1))
#define LOAD_TAIL(p, n, fill) _mm512_mask_loadu_ps(fill, FIRST(n), p)
#define STORE_TAIL(p, v, n) _mm512_mask_storeu_ps(p, FIRST(n), v)
#define LOAD_HALVES_TAIL(p, n) _mm256_maskz_loadu_epi16(FIRST(n), p)
#define STORE_HALVES_TAIL(p, v, n) _mm256_mask_storeu_epi16(p, FIRST(n), (__m256i)(v))
#define MADD(a, b) (ivec) _mm512_madd_epi16((__m512i)(a), (__m512i)(b))
#define QUAD_DOT(sum, w, a) _mm512_dpbusd_epi32((__m512i)(sum), (__m512i)(w), (__m512i)(a))
#define QUAD_PUT(to, q) _mm_storeu_si128((__m128i *)(to), _mm512_cvtepi32_epi8((__m512i)(q)))
#define QUAD_TARGET __attribute__((target("avx512vnni")))
#define QUAD_OFFSET 128
#define HAS_QUAD_DOT() __builtin_cpu_supports("avx512vnni")
#define PAIR_DOT(sum, w, a) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)(w), (__m512bh)(a))
#define PAIR_TARGET __attribute__((target("avx512bf16")))
#define HAS_PAIR_DOT() __builtin_cpu_supports("avx512bf16")
#include "kernel/kernel_body.h"
