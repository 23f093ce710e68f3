/* SPDX-License-Identifier: MIT */
/* kernel_wasm.c - 128-bit vectors of WebAssembly, without fused multiply-add. */
#ifndef __wasm_simd128__
#error "compile this file with -msimd128"
#endif
#include <wasm_simd128.h>
#define TN_TABLE tn_kernels_wasm
#define TN_NAME "wasm"
#define LANES 4
#define PRODUCT_ROWS 4
#define PANEL_ROWS 4
#define RECUR_STEPS 2
#define LARGER(a, b) (vec) wasm_f32x4_pmax((v128_t)(b), (v128_t)(a))
#define SMALLER(a, b) (vec) wasm_f32x4_pmin((v128_t)(b), (v128_t)(a))
#define MADD(a, b) (ivec) wasm_i32x4_dot_i16x8((v128_t)(a), (v128_t)(b))
#include "kernel/kernel_body.h"
