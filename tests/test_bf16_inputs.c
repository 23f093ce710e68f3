/* SPDX-License-Identifier: MIT */
/* test_bf16_inputs.c - products of packed weights and inputs that are both rounded to bf16,
 * against sums of the rounded numbers in double: on every table of kernels, with the same bits
 * for any number of threads and of rows at a time. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/kernel_list.h"
#include "support/testing.h"

struct problem {
    struct tn_matmul_desc desc;
    float *a, *b, *bias, *old;
};

static float *drawn(size_t n, double scale, struct tn_random *random)
{
    float *const x = take(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tn_random_normal(random));
    return x;
}

static struct problem problem_draw(struct tn_random *random)
{
    struct tn_matmul_desc d = {
        .m = ONE_OF(random, 1, 2, 3, 4, 5, 7, 13, 14, 15, 100),
        .n = ONE_OF(random, 1, 7, 16, 30, 32, 33, 64, 65, 200),
        .k = ONE_OF(random, 1, 2, 3, 27, 64, 127, 256, 301),
        .transpose_b = below(random, 4) > 0,
        .bias = below(random, 2) > 0,
        .add = below(random, 2) > 0,
        .activation = below(random, 2) > 0 ? TN_RELU : TN_IDENTITY,
        .packed = true,
        .elements = TN_BF16_INPUTS,
    };

    d.lda = d.k + below(random, 3);
    d.ldb = d.transpose_b ? d.k : d.n;
    d.ldc = d.n + below(random, 3);
    return (struct problem){d, drawn(d.m * d.lda, 3.0, random), drawn(d.k * d.n, 0.1, random),
                            drawn(d.n, 1.0, random), drawn(d.m * d.ldc, 1.0, random)};
}

static void problem_free(struct problem *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->old);
}

/* c, `rows` at a time. */
static float *multiply(const struct problem *p, const struct tn_kernels *kernels,
                       size_t threads, size_t rows)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const c = take(d->m * d->ldc, sizeof *c);
    struct tn_matmul *plan;
    tarn_error err;

    check_ok(tn_matmul_create(&plan, d, host_of(kernels, threads), &err), &err);
    assert_string_equal(tn_matmul_name(plan), "bf16");
    void *const packed = take(tn_matmul_packed_size(plan) + TN_ALIGN, 1);
    void *const aligned = (void *)tn_round_up((size_t)packed, TN_ALIGN);
    void *const scratch = take(tn_matmul_scratch_size(plan) + 1, 1);

    memcpy(c, p->old, d->m * d->ldc * sizeof *c);
    tn_matmul_pack(plan, aligned, p->b);
    for (size_t i = 0; i < d->m; i += rows)
        tn_matmul_run_rows(plan, c + i * d->ldc, p->a + i * d->lda, aligned,
                           d->bias ? p->bias : NULL, tn_min(rows, d->m - i), scratch);
    free(scratch);
    free(packed);
    tn_matmul_free(plan);
    return c;
}

static double rounded(float x)
{
    return (double)tn_bf16_to_f32(tn_bf16_from_f32(x));
}

static void check_element(const struct problem *p, const struct tn_kernels *kernels,
                          const float *c, size_t i, size_t j)
{
    const struct tn_matmul_desc *const d = &p->desc;
    double want = 0.0, size = 1.0;

    for (size_t l = 0; l < d->k; l++) {
        const double term = rounded(p->a[i * d->lda + l]) *
                            rounded(p->b[d->transpose_b ? j * d->ldb + l : l * d->ldb + j]);

        want += term;
        size += fabs(term);
    }
    want +=
        (d->add ? (double)p->old[i * d->ldc + j] : 0.0) + (d->bias ? (double)p->bias[j] : 0.0);
    if (d->activation == TN_RELU)
        want = fmax(want, 0.0);
    if (!(fabs((double)c[i * d->ldc + j] - want) <= 1e-6 * size))
        fail_msg("%s, %zu x %zu x %zu: element %zu, %zu is %.9g; expected %.9g", kernels->name,
                 d->m, d->n, d->k, i, j, (double)c[i * d->ldc + j], want);
}

static void check_table(const struct problem *p, const struct tn_kernels *kernels,
                        struct tn_random *random)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const c = multiply(p, kernels, 1, d->m);
    float *const apart = multiply(p, kernels, 1 + below(random, 3), 1 + below(random, d->m));

    assert_memory_equal(c, apart, d->m * d->ldc * sizeof *c);
    for (size_t i = 0; i < d->m; i++) {
        for (size_t j = 0; j < d->n; j++)
            check_element(p, kernels, c, i, j);
        assert_memory_equal(c + i * d->ldc + d->n, p->old + i * d->ldc + d->n,
                            (d->ldc - d->n) * sizeof *c);
    }
    free(c);
    free(apart);
}

static void products_are_those_of_rounded_numbers(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 3);
    for (int trial = 0; trial < 40; trial++) {
        struct problem p = problem_draw(&random);

        for (size_t i = 0; kernels_at(i); i++)
            check_table(&p, kernels_at(i), &random);
        problem_free(&p);
    }
}

static void only_packed_weights_meet_rounded_inputs(void **state)
{
    struct tn_matmul *plan;
    tarn_error err;

    (void)state;
    assert_int_equal(
        tn_matmul_create(
            &plan, &(struct tn_matmul_desc){.m = 1, .n = 1, .k = 1, .elements = TN_BF16_INPUTS},
            forced_host(1), &err),
        TARN_EINVAL);
    assert_null(plan);
    assert_non_null(strstr(err.text, "packed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_rounded_numbers),
        cmocka_unit_test(only_packed_weights_meet_rounded_inputs),
    };

    return cmocka_run_group_tests_name("bf16 inputs", tests, NULL, NULL);
}
