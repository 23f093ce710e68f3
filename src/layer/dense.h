/* SPDX-License-Identifier: MIT */
/* dense.h - the linear layer and its gradients:
 *
 *     y  = activation(x W^T + b [+ y])     W is out x in, as PyTorch stores it
 *     dx = dy W  [+ dx]     dW += dy^T x     db += sum of dy over rows
 *
 * dy is the gradient of what went into the activation: where there is one, activation.h takes
 * the gradient of y through it first.
 *
 * With elements TN_BF16, x, W and dy are rounded to bf16 on the way into the three products;
 * sums, and everything that is stored, stay f32. Weights that are packed are rounded once, and
 * x is then left as it is: generation is as fast as they can be read. TN_INT8 is for packed
 * weights only, and quantises x in the product (int8.h). */
#ifndef TN_DENSE_H
#define TN_DENSE_H

#include "kernel/matmul.h"
#include "layer/rows.h"

/* Zero is a valid default for every field but the sizes. */
struct tn_dense_desc {
    size_t rows, in, out;
    size_t ldx, ldy; /* between rows of x and dx, of y and dy; 0: in, out */
    enum tn_activation activation;
    bool bias, add; /* b; the old y goes into the sum */
    bool trains;    /* backward is wanted */
    bool add_dx;    /* backward adds to dx */
    bool packed;    /* forward takes what tn_dense_pack() gave; not with `trains` */
    enum tn_element elements;
};

/* A plan. Immutable, so any number of threads may run it at once, each with its own scratch. */
struct tn_dense {
    struct tn_dense_desc desc; /* without zeros that stand for something */
    const struct tn_host *host;
    struct tn_matmul *forward;          /* y = x W^T */
    struct tn_matmul *inputs, *weights; /* dx = dy W, dW = dy^T x; NULL unless it trains */
};

/* On failure *d is cleared. */
tarn_status tn_dense_init(struct tn_dense *d, const struct tn_dense_desc *desc,
                          const struct tn_host *host, tarn_error *err);
void tn_dense_clear(struct tn_dense *d); /* accepts zeros */

/* Bytes that forward or backward works in, of any alignment; what is in it may be lost between
 * calls, so that layers share one. SIZE_MAX: they do not fit. */
size_t tn_dense_scratch_size(const struct tn_dense *d);

/* W as a plan with `packed` wants it, packed into the arena's memory; not to be looked into. An
 * arena that measures only grows. */
float *tn_dense_pack(const struct tn_dense *d, const float *W, struct tn_arena *arena);

/* The same plan for fewer rows, as long as d exists; only with `packed`. Not to be cleared. */
struct tn_dense tn_dense_of_rows(const struct tn_dense *d, size_t rows);

/* b is NULL in a plan without. y may not overlap x, W or b. */
void tn_dense_forward(const struct tn_dense *d, float *y, const float *x, const float *W,
                      const float *b, void *scratch);

/* dx NULL: not wanted. db is NULL in a plan without bias. No output may overlap another
 * array. */
void tn_dense_backward(const struct tn_dense *d, float *dx, float *dW, float *db,
                       const float *dy, const float *x, const float *W, void *scratch);

#endif
