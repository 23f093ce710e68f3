/* SPDX-License-Identifier: MIT */
#include "support/matmul_problem.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const float untouched = 12345.0f;

static float *new_matrix(size_t rows, size_t cols, size_t ld, float between,
                         struct tn_random *random)
{
    float *const matrix = malloc(rows * ld * sizeof *matrix);

    assert_non_null(matrix);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < ld; j++)
            matrix[i * ld + j] = j < cols ? (float)tn_random_normal(random) : between;
    return matrix;
}

static double activate(enum tn_activation activation, double x)
{
    if (activation == TN_RELU)
        return x > 0.0 ? x : 0.0;
    return activation == TN_GELU ? 0.5 * x * (1.0 + erf(x / sqrt(2.0))) : x;
}

/* What is multiplied for a stored x. */
static double factor(const struct matmul_problem *p, float x)
{
    return (double)(tn_matmul_rounds(&p->desc) ? tn_bf16_to_f32(tn_bf16_from_f32(x)) : x);
}

/* Element (i, j), and the sum of its terms' sizes, which bounds the rounding. */
static double definition(const struct matmul_problem *p, size_t i, size_t j, double *size)
{
    const struct tn_matmul_desc *const d = &p->desc;
    const size_t lda = p->a_floats / p->a_rows, ldb = p->b_floats / p->b_rows;
    const size_t ldc = p->c_floats / d->m;
    double sum =
        (d->bias ? (double)p->bias[j] : 0.0) + (d->add ? (double)p->old[i * ldc + j] : 0.0);

    *size = 1.0 + fabs(sum);
    for (size_t l = 0; l < d->k; l++) {
        const double a = factor(p, p->a[d->transpose_a ? l * lda + i : i * lda + l]);
        const double b = factor(p, p->b[d->transpose_b ? j * ldb + l : l * ldb + j]);

        sum += a * b;
        *size += fabs(a * b);
    }
    return activate(d->activation, sum);
}

void matmul_problem_init(struct matmul_problem *p, struct tn_matmul_desc desc,
                         struct tn_random *random)
{
    const size_t m = desc.m, n = desc.n, k = desc.k;
    const size_t a_cols = desc.transpose_a ? m : k, b_cols = desc.transpose_b ? k : n;
    const size_t lda = desc.lda ? desc.lda : a_cols, ldb = desc.ldb ? desc.ldb : b_cols;
    const size_t ldc = desc.ldc ? desc.ldc : n;

    *p = (struct matmul_problem){
        .desc = desc, .a_rows = desc.transpose_a ? k : m, .b_rows = desc.transpose_b ? n : k};
    p->a_floats = p->a_rows * lda;
    p->b_floats = p->b_rows * ldb;
    p->c_floats = m * ldc;
    p->a = new_matrix(p->a_rows, a_cols, lda, NAN, random);
    p->b = new_matrix(p->b_rows, b_cols, ldb, NAN, random);
    p->old = new_matrix(m, n, ldc, untouched, random);
    p->c = malloc(p->c_floats * sizeof *p->c);
    assert_non_null(p->c);
    p->bias = new_matrix(1, n, n, 0.0f, random);
    for (size_t i = 0; desc.packed && desc.elements == TN_BF16 && i < p->b_floats; i++)
        p->b[i] = tn_bf16_to_f32(tn_bf16_from_f32(p->b[i])); /* as packing does */
    p->want = take(m * n, sizeof *p->want);
    p->size = take(m * n, sizeof *p->size);
    for (size_t i = 0; i < m * n; i++)
        p->want[i] = definition(p, i / n, i % n, &p->size[i]);
}

void matmul_problem_clear(struct matmul_problem *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->c);
    free(p->old);
    free(p->want);
    free(p->size);
}

void matmul_problem_run(const struct tn_matmul *plan, struct matmul_problem *p, float *c)
{
    matmul_problem_run_rows(plan, p, c, plan->desc.m);
}

void matmul_problem_run_rows(const struct tn_matmul *plan, struct matmul_problem *p, float *c,
                             size_t rows)
{
    const size_t packed_bytes = tn_matmul_packed_size(plan);
    void *const scratch = malloc(tn_matmul_scratch_size(plan) + 1);
    void *const packed = aligned_alloc(TN_ALIGN, tn_round_up(packed_bytes + 1, TN_ALIGN));

    assert_non_null(scratch);
    assert_non_null(packed);
    if (packed_bytes)
        tn_matmul_pack(plan, packed, p->b);
    memcpy(c, p->old, p->c_floats * sizeof *c);
    tn_matmul_run_rows(plan, c, p->a, packed_bytes ? packed : p->b,
                       p->desc.bias ? p->bias : NULL, rows, (char *)scratch + 1);
    free(packed);
    free(scratch);
}

void matmul_problem_check(const struct matmul_problem *p)
{
    const size_t ldc = p->c_floats / p->desc.m;

    for (size_t i = 0; i < p->desc.m; i++)
        for (size_t j = 0; j < ldc; j++) {
            const float got = p->c[i * ldc + j];

            if (j >= p->desc.n) {
                assert_true(got == untouched);
                continue;
            }
            const double want = p->want[i * p->desc.n + j], size = p->size[i * p->desc.n + j];

            if (!(fabs((double)got - want) <= 1e-6 * size))
                fail_msg("(%zu, %zu) of %zu x %zu x %zu: %g, expected %g", i, j, p->desc.m,
                         p->desc.n, p->desc.k, (double)got, want);
        }
}
