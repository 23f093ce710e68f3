/* SPDX-License-Identifier: MIT */
/* kernels.h - float arrays in, float arrays out, one table per instruction set.
 *
 * All loops are written once, in kernel_body*.h, and compiled into one table for each
 * instruction set. They run on the calling thread. A plan holds the table it was made with.
 *
 * Tiles are packed: rows of floats `ld` apart, whose width is rounded up to whole vectors
 * (tn_padded) and filled with zeros. An ld may be negative, which walks a tile backwards. Rows
 * of the caller's arrays have any width and are never read or written past it. */
#ifndef TN_KERNELS_H
#define TN_KERNELS_H

#include "base/base.h"

/* Position by position, for i = 0 .. n-1 (Algorithm 1):
 *     S  +=  k_i v_i^T        rows x width, in and out
 *     o_i =  q_i^T S          width
 * Causal linear attention and each of its three gradients are this one recurrence with other
 * arrays in the places of q, k and v. */
struct tn_recurrence {
    float *o, *S;
    const float *q, *k, *v; /* n x rows, n x rows, n x width */
    ptrdiff_t ldo, ldS, ldq, ldk, ldv;
    size_t n, rows, width; /* width: whole vectors */
};

/* One float per row, `ld` apart. */
struct tn_column {
    float *at;
    ptrdiff_t ld;
};

/* c (m x n) = a b^T + bias + c, then zero where that is negative; each of the last three is
 * optional. a is m x k, and b is n x k, f32 or bf16, read once from front to back. */
struct tn_few {
    float *c;
    const float *a; /* packed by few_pack() */
    const void *b;
    const float *bias; /* NULL: none */
    ptrdiff_t ldc, ldb;
    size_t m, n, k;
    bool add, relu;
};

struct tn_kernels {
    const char *name; /* as in tarn_cpu_name() */
    size_t lanes;     /* floats in a vector */

    /* ---- tiles ---- */

    /* c (m x n) = a b, or c += a b. Element (i, p) of a is a[i*a_row + p*a_col], so that either
     * orientation of a serves; b is k x n; n is whole vectors. The sum over p is formed from
     * zero and added to c once, so splitting a sum over calls rounds the same on every path. */
    void (*product)(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t a_row, ptrdiff_t a_col,
                    const float *b, ptrdiff_t ldb, size_t m, size_t n, size_t k, bool add);

    void (*recur)(const struct tn_recurrence *r);

    /* z += k_i, then den[i] = q_i . z: the recurrence for a value that is always 1. */
    void (*recur_sum)(float *den, float *z, const float *q, ptrdiff_t ldq, const float *k,
                      ptrdiff_t ldk, size_t n, size_t width);

    /* out (cols x rows) = the transpose of in (rows x cols). */
    void (*transpose)(float *out, ptrdiff_t ldo, const float *in, ptrdiff_t ldi, size_t rows,
                      size_t cols);

    /* ---- rows of any width n ---- */

    float (*dot)(const float *x, const float *y, size_t n);
    float (*max)(const float *x, size_t n);                     /* -inf for n = 0 */
    void (*scale)(float *y, const float *x, float a, size_t n); /* y = a x */
    void (*axpy)(float *y, float a, const float *x, size_t n);  /* y += a x */

    /* y = exp(x - c); returns the sum of y. Below -87 the result is 0. */
    float (*exp_sum)(float *y, const float *x, float c, size_t n);

    /* With p = exp(s - lse):  s = p,  dp = p (dp - delta). The gradient of a softmax row.
     * */
    void (*softmax_slope)(float *s, float *dp, float lse, float delta, size_t n);

    /* ---- n rows of any width, ld apart; numbers that go with rows lie in `struct tn_column`s
     * ---- */

    /* y_i = by_i x_i; by.at NULL: copies. `streams`: y will not be read again soon, and may go
     * past the cache. */
    void (*scale_rows)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                       struct tn_column by, size_t n, size_t width, bool streams);

    /* y_i = by_i x_i, and dot_i = x_i . z_i on the way. */
    void (*scale_dot_rows)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx,
                           struct tn_column by, struct tn_column dot, const float *z,
                           ptrdiff_t ldz, size_t n, size_t width);

    /* y = elu(x) + 1,  and  dx = dy min(y, 1): elu's slope is 1 above zero and exp(x) below.
     * (7) */
    void (*elu1)(float *y, ptrdiff_t ldy, const float *x, ptrdiff_t ldx, size_t n,
                 size_t width);
    void (*elu1_slope)(float *dx, ptrdiff_t lddx, const float *dy, ptrdiff_t lddy,
                       const float *y, ptrdiff_t ldy, size_t n, size_t width, bool streams);

    /* After rows that streamed, before another thread may look at them. */
    void (*settle)(void);

    /* bf16 to f32. */
    void (*widen)(float *y, ptrdiff_t ldy, const uint16_t *x, ptrdiff_t ldx, size_t n,
                  size_t width);

    /* ---- few rows times many weights, of any widths ---- */

    /* A copy of a (m x k) for the products below: m times k floats, k rounded up to 2 lanes. */
    void (*few_pack)(float *packed, const float *a, ptrdiff_t lda, size_t m, size_t k,
                     bool bf16);

    /* Weights in f32 and in bf16. c_ij is the same to the last bit whatever m, n and the
     * addresses are. */
    void (*few_f32)(const struct tn_few *few);
    void (*few_bf16)(const struct tn_few *few);

    /* ---- the machine ---- */

    /* Fused multiply-adds in registers; returns how many flops that was. */
    double (*burn)(size_t rounds);

    /* Reads n floats (whole cache lines) once; the sum keeps the reads alive. */
    float (*read)(const float *x, size_t n);
};

/* The best table this processor runs, or the one called `name`; NULL if there is none such. */
const struct tn_kernels *tn_kernels_pick(const char *name);

/* The i-th table that this processor runs, best first; NULL past the last. */
const struct tn_kernels *tn_kernels_row(size_t i);

static inline size_t tn_padded(const struct tn_kernels *kernels, size_t width)
{
    return tn_round_up(width, kernels->lanes);
}

#endif
