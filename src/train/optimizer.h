/* SPDX-License-Identifier: MIT */
/* optimizer.h - from gradients to the next weights.
 *
 * Every optimizer here keeps two running means, m of the gradient and v of its square, and is a
 * function from its options, the rate and the number of the update to the seven numbers of
 * struct tn_update; one loop (kernel_body_update.h) does the rest. An optimizer is one file
 * that defines one row, and one line in optimizers.def. */
#ifndef TN_OPTIMIZER_H
#define TN_OPTIMIZER_H

#include "base/option.h"
#include "kernel/kernels.h"
#include "train/pieces.h"

struct tn_optimizer_row {
    tarn_table_row about;

    /* The numbers of update t, counted from 1. */
    struct tn_update (*numbers)(const struct tn_options *options, double rate, uint64_t t);
};

struct tn_optimizer {
    const struct tn_optimizer_row *row;
    struct tn_options options;
};

/* Four arrays of one layout. Moments start as zeros. */
struct tn_parameters {
    float *w, *m, *v;
    const float *g;
    size_t n;
};

/* The names in optimizers.def, ended by NULL. */
extern const tarn_table_row *const tn_optimizer_rows[];

/* Reads a spec such as "radam:decay=0". */
tarn_status tn_optimizer_init(struct tn_optimizer *optimizer, const char *spec,
                              tarn_error *err);

/* Update t, counted from 1, of all tensors (ascending ranges within p->n). Gradients count
 * scales[i] times in tensor i; NULL: once. Floats that belong to no tensor stay. */
void tn_optimizer_update(const struct tn_optimizer *optimizer, const struct tn_parameters *p,
                         const float *scales, const struct tn_range *tensors, size_t count,
                         double rate, uint64_t t, const struct tn_kernels *kernels,
                         size_t threads);

/* ---- For rows ----------------------------------------------------------- */

/* Options that all of them have, in this order; `what` says what decay is, and `share` how much
 * of it there is unless asked. */
enum { TN_BETA1, TN_BETA2, TN_EPS, TN_DECAY };

#define TN_MOMENT_OPTIONS(what, share)                                                         \
    [TN_BETA1] = {"beta1", "decay rate of the first moment", 0.0, 0.9999, 0.9, false, NULL},   \
    [TN_BETA2] = {"beta2", "decay rate of the second moment", 0.0, 0.999999, 0.999, false,     \
                  NULL},                                                                       \
    [TN_EPS] = {"eps", "added to the denominator", 1e-12, 1.0, 1e-8, false, NULL},             \
    [TN_DECAY] = {"decay", what, 0.0, 1.0, share, false, NULL}, {0},

/* 1 - beta^t, which m and v are too small by after t updates from zero: exact also where beta
 * is near 1. */
double tn_moment_share(double beta, uint64_t t);

/* Adam's numbers, without decay. */
struct tn_update tn_adam_numbers(const struct tn_options *options, double rate, uint64_t t);

#endif
