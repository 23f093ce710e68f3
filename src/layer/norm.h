/* SPDX-License-Identifier: MIT */
/* norm.h - layer normalisation, over each row of F floats:
 *
 *     y = gain (x - mean) / sqrt(variance + eps) + bias       variance over F, not F - 1
 */
#ifndef TN_NORM_H
#define TN_NORM_H

#include "layer/rows.h"

#define TN_NORM_EPS 1e-5f /* PyTorch's, and the authors' */

/* stats: mean and scale of every row (kernels.h), for backward; NULL: not wanted. y == x is
 * allowed. */
void tn_norm_forward(const struct tn_rows *r, float *y, struct tn_norm_stats *stats,
                     const float *x, const float *gain, const float *bias, float eps);

size_t tn_norm_scratch_size(const struct tn_rows *r); /* bytes, for backward */

/* dx = ..., or dx += ... if add_dx; dgain += and dbias += always. dx == dy is allowed, unless
 * add_dx. `scratch` of any alignment. */
void tn_norm_backward(const struct tn_rows *r, float *dx, bool add_dx, float *dgain,
                      float *dbias, const float *dy, const float *x,
                      const struct tn_norm_stats *stats, const float *gain, void *scratch);

#endif
