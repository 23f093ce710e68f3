/* SPDX-License-Identifier: MIT */
/* dropout.h - zeroes each element with probability p and scales the rest by 1 / (1 - p).
 *
 * What is kept is a hash of the seed and the element's index, so nothing is stored: backward is
 * the same call on the gradient. Equal to the last bit on every instruction set, for any number
 * of threads and however an array is split over calls. */
#ifndef TN_DROPOUT_H
#define TN_DROPOUT_H

#include "layer/rows.h"

struct tn_dropout {
    float p; /* 0 <= p < 1; 0 keeps everything */
    uint64_t seed;
    uint64_t first; /* the index of the first element, row by row */
};

/* y = dropout(x) [+ residual]; residual NULL: none. y == x and y == residual are allowed. */
void tn_dropout_run(const struct tn_rows *r, const struct tn_dropout *dropout, float *y,
                    const float *x, const float *residual);

/* A seed for one place of a model at one step of training, from the seed of the run. */
uint64_t tn_dropout_seed(uint64_t seed, uint64_t step, uint64_t place);

#endif
