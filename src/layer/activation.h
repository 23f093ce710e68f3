/* SPDX-License-Identifier: MIT */
/* activation.h - relu and gelu, element by element:
 *
 *     relu(x) = max(x, 0)        gelu(x) = x Phi(x), Phi the normal distribution function
 *
 * relu's derivative is seen in its result, so its input need not be kept, and a product can
 * apply it on the way out (dense.h). gelu's is not: its input, the pre-activation, is kept. */
#ifndef TN_ACTIVATION_H
#define TN_ACTIVATION_H

#include "kernel/matmul.h"
#include "layer/rows.h"

/* Whether backward wants the input of the activation, not its result. */
bool tn_activation_keeps_input(enum tn_activation activation);

/* y == x is allowed. */
void tn_activation_forward(const struct tn_rows *r, enum tn_activation activation, float *y,
                           const float *x);

/* `kept` is what keeps_input says: x of the forward, or y. dx == dy is allowed. */
void tn_activation_backward(const struct tn_rows *r, enum tn_activation activation, float *dx,
                            const float *dy, const float *kept);

/* The name of activation `index`; NULL past the last. */
const char *tn_activation_name(size_t index);

#endif
