/* SPDX-License-Identifier: MIT */
/* int8.h - weights as whole numbers from -127 to 127 with a scale for every block:
 *
 *     w = q s,   s = max |w| / 127 over TN_INT8_BLOCK inputs of one output
 *
 * s is rounded up to 16 significant bits. So q s is exact in a float, and quantising it again
 * gives the same q and s: a model that was stored in int8 is multiplied with what was stored.
 *
 * Inputs are quantised in every product, by row and block, with scales that are powers of two:
 *
 *     c_ij = sum over blocks g of ((float)(sum over p in g of x_ip q_pj) s_gj) 2^e_ig
 *
 * The inner sum is exact, in int32; the outer one runs from the first block to the last. A
 * product with a power of two is exact, so it makes no difference whether a processor fuses it
 * with the addition: all instruction sets give the same bits, for any number of rows. */
#ifndef TN_INT8_H
#define TN_INT8_H

#include "base/base.h"

enum { TN_INT8_BLOCK = 64, TN_INT8_MOST = 127 };

static inline size_t tn_int8_blocks(size_t k)
{
    return tn_blocks(k, TN_INT8_BLOCK);
}

/* One block of n <= TN_INT8_BLOCK weights that lie `step` floats apart; returns its scale.
 * Weights are finite. */
float tn_int8_quantise(int8_t *q, const float *w, size_t step, size_t n);

/* ---- Rows of inputs ----------------------------------------------------- */

/* A quantised row is a struct for every block, then the numbers in an order of the kernel's. */
struct tn_int8_input {
    float scale;   /* 2^e; NaN if an input was not finite */
    int32_t start; /* of the inner sum: what kernels that add 128 to weights add too much */
};

static inline size_t tn_int8_inputs_at(size_t k)
{
    return tn_round_up(tn_int8_blocks(k) * sizeof(struct tn_int8_input), TN_ALIGN);
}

/* Bytes from one row to the next: numbers have two bytes at most, and whole vectors. */
static inline size_t tn_int8_row_size(size_t k)
{
    return tn_int8_inputs_at(k) + tn_round_up(k, TN_ALIGN / 2) * 2;
}

/* ---- Panels of weights -------------------------------------------------- */

/* For each block the scales of a panel's columns, then bytes q + 128: those of four inputs
 * behind each other, for column after column, then for the next four inputs. Inputs beyond the
 * last have q = 0, and so have columns. */
static inline size_t tn_int8_panel_size(size_t columns, size_t k)
{
    return columns * 4 * (tn_int8_blocks(k) + tn_blocks(k, 4));
}

#endif
