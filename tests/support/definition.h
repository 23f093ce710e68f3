/* SPDX-License-Identifier: MIT */
/* definition.h - attention as (2) and (3) define it, pair by pair in double, with its
 * gradients:
 *
 *   y_i = sum_j sim_ij v_j / d_i      d_i = sum_j sim_ij + eps
 *
 * nowhere nearer to zero than eps. */
#ifndef DEFINITION_H
#define DEFINITION_H

#include "support/attention_case.h"

struct definition {
    enum {
        PRODUCT,    /* phi(q).phi(k) */
        POLYNOMIAL, /* (q.k + bias)^degree */
        RBF,        /* exp(-|q - k|^2 / (2 sigma^2)) */
        SOFTMAX     /* exp(scale q.k), in units of the row's largest */
    } similarity;
    enum {
        PHI_ELU,
        PHI_RELU,
        PHI_IDENTITY,
        PHI_LIBRARY /* random ones: what test_feature_maps.c has tested */
    } phi;
    double degree, bias, sigma;
    double scale; /* 0: 1 / sqrt D */
    double eps;
    bool bare; /* the numerator alone */
};

/* What y, and for the gradients dq, dk and dv, have to be: (B, n, H, width). */
struct defined {
    double *y, *dq, *dk, *dv;
};

struct defined define(const struct definition *definition, const struct attention_run *run);
void defined_free(struct defined *defined);

/* y, and with `gradients` dq, dk and dv of the run. */
void check_defined(const struct attention_run *run, const struct definition *definition,
                   bool gradients, double tolerance);

#endif
