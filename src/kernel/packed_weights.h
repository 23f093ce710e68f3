/* SPDX-License-Identifier: MIT */
/* packed_weights.h - how a packed b is laid out: the panels of kernel_body_packed.h, piece
 * after piece of the sum, each piece panel after panel, in f32 or, if it is packed once for
 * many products, in bf16.
 *
 * One layout for each processor, whatever m is, and one order of summation: along a piece from
 * zero, multiply-add by multiply-add, then piece after piece. So a step of one stream, one of a
 * thousand and a prompt share a copy, and give the same bits. */
#ifndef TN_PACKED_WEIGHTS_H
#define TN_PACKED_WEIGHTS_H

#include "kernel/matmul.h"

/* ---- Layout, in elements or words --------------------------------------- */

/* Where instructions multiply pairs of bf16, a step of a sum of rounded factors is a word of
 * two. */
static inline bool tn_packed_pairs(const struct tn_matmul *plan)
{
    return tn_matmul_rounds(&plan->desc) && tn_host_has_bf16(plan->host);
}

static inline size_t tn_packed_steps(const struct tn_matmul *plan)
{
    return tn_packed_pairs(plan) ? tn_blocks(plan->desc.k, 2) : plan->desc.k;
}

size_t tn_packed_piece(const struct tn_matmul *plan); /* of the sum */
size_t tn_packed_width(const struct tn_matmul *plan); /* columns of b in whole panels */

/* What lies before the panel from column `col` on in the piece from p on, `depth` long, of so
 * many columns in whole panels. */
static inline size_t tn_packed_at(size_t width, size_t col, size_t p, size_t depth)
{
    return p * width + col * depth;
}

struct tn_packed_panel {
    size_t col, cols, p, depth; /* of b; a last panel has fewer columns */
    size_t at;                  /* elements before it */
};

size_t tn_packed_panels(const struct tn_matmul *plan); /* of all pieces */
struct tn_packed_panel tn_packed_panel_at(const struct tn_matmul *plan, size_t index);

/* As struct tn_matmul_backend has them. */
size_t tn_packed_size(const struct tn_matmul *plan);
void tn_packed_pack(const struct tn_matmul *plan, void *packed, const float *b);

#endif
