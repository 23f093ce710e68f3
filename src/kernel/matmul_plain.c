/* SPDX-License-Identifier: MIT */
/* matmul_plain.c - the dense product by its definition: what tests compare the others with. */
#include <math.h>

#include "kernel/matmul.h"

static float factor(const struct tn_matmul_desc *d, const float *matrix, size_t index)
{
    const float x = matrix[index];

    return tn_matmul_rounds(d) ? tn_bf16_to_f32(tn_bf16_from_f32(x)) : x;
}

static float activate(enum tn_activation activation, float x)
{
    switch (activation) {
    case TN_RELU:
        return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
    case TN_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case TN_IDENTITY:
        break;
    }
    return x;
}

static void make_element(const struct tn_matmul_desc *d, const struct tn_matmul_arrays *arrays,
                         size_t i, size_t j)
{
    float *const c = arrays->c + i * d->ldc + j;
    float sum = 0.0f;

    for (size_t p = 0; p < d->k; p++)
        sum += factor(d, arrays->a, d->transpose_a ? p * d->lda + i : i * d->lda + p) *
               factor(d, arrays->b, d->transpose_b ? j * d->ldb + p : p * d->ldb + j);
    if (d->bias)
        sum += arrays->bias[j];
    if (d->add)
        sum += *c;
    *c = activate(d->activation, sum);
}

/* ---- the backend -------------------------------------------------------- */

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    return plan->desc.packed ? tn_fail(err, TARN_EMACHINE,
                                       "backend: 'plain' needs weights that are not packed")
                             : TARN_OK;
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    for (size_t i = 0; i < plan->desc.m; i++)
        for (size_t j = 0; j < plan->desc.n; j++)
            make_element(&plan->desc, arrays, i, j);
}

extern const struct tn_matmul_backend tn_matmul_plain;
const struct tn_matmul_backend tn_matmul_plain = {
    .name = "plain", .create = create, .run = run};
