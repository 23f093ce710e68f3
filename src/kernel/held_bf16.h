/* SPDX-License-Identifier: MIT */
/* held_bf16.h - a b that is held in bf16 against rows of f32: one form for every backend that
 * multiplies with it, so that a prompt's plan and a single step's share a copy. */
#ifndef TN_HELD_BF16_H
#define TN_HELD_BF16_H

#include "kernel/matmul.h"

bool tn_held_bf16(const struct tn_matmul_desc *desc); /* b is such a one */
size_t tn_held_bf16_size(const struct tn_matmul *plan);
void tn_held_bf16_hold(const struct tn_matmul *plan, void *held, const float *b);

/* Where the weights of column `col` of c are, a multiple of TN_FEW_COLS. */
const void *tn_held_bf16_at(const struct tn_matmul *plan, const void *held, size_t col);

/* All of it, as n rows of k floats. */
void tn_held_bf16_widen(const struct tn_matmul *plan, float *b, const void *held);

#endif
