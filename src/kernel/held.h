/* SPDX-License-Identifier: MIT */
/* held.h - a b that is packed once for many products: the panels of kernel_body_packed.h, piece
 * after piece of the sum, each piece panel after panel, in f32 or narrowed to bf16.
 *
 * One form for every backend, processor by processor, whatever m is, and one order of
 * summation: along a piece from zero, multiply-add by multiply-add, then piece after piece. So
 * a step of one stream, one of a thousand and a prompt share a copy, and give the same bits. */
#ifndef TN_HELD_H
#define TN_HELD_H

#include "kernel/matmul.h"

/* b is such a one: f32, or bf16 against rows of f32. */
bool tn_held(const struct tn_matmul_desc *desc);

size_t tn_held_size(const struct tn_matmul *plan); /* bytes; 0 if it is not */
void tn_held_hold(const struct tn_matmul *plan, void *held, const float *b);

/* ---- Layout, in elements ------------------------------------------------ */

size_t tn_held_piece(const struct tn_matmul *plan); /* of the sum */
size_t tn_held_width(const struct tn_matmul *plan); /* columns of b in whole panels */

/* What lies before the panel from column `col` on in the piece from p on, `depth` long. */
size_t tn_held_at(const struct tn_matmul *plan, size_t col, size_t p, size_t depth);

/* ---- Panels ------------------------------------------------------------- */

size_t tn_held_panels(const struct tn_matmul *plan); /* of all pieces */

/* Panel `index` of b, in f32, to its place in all of them. */
void tn_held_pack(const struct tn_matmul *plan, float *all, const float *b, size_t index);

/* All of them from bf16. */
void tn_held_widen(const struct tn_matmul *plan, float *all, const void *held);

#endif
