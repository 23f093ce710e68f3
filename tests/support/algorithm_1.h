/* SPDX-License-Identifier: MIT */
/* algorithm_1.h - Algorithm 1 of the paper, line by line, in double: the numerator of causal
 * linear attention for features that are already mapped, and its gradients. */
#ifndef ALGORITHM_1_H
#define ALGORITHM_1_H

#include <stddef.h>

/* y (N x M) from q, k (N x C) and v (N x M). */
void algorithm_1_forward(double *y, const double *q, const double *k, const double *v, size_t N,
                         size_t C, size_t M);

/* From g = dL/dy (N x M). */
void algorithm_1_backward(double *dq, double *dk, double *dv, const double *q, const double *k,
                          const double *v, const double *g, size_t N, size_t C, size_t M);

#endif
