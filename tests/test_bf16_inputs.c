/* SPDX-License-Identifier: MIT */
/* test_bf16_inputs.c - products of packed weights and inputs that are both rounded to bf16,
 * against sums of the rounded numbers in double: on every table of kernels, with the same bits
 * for any number of threads and of rows at a time. */
#include <math.h>
#include <stdlib.h>

#include "support/kernel_list.h"
#include "support/packed_product.h"

static double rounded(float x)
{
    return (double)tn_bf16_to_f32(tn_bf16_from_f32(x));
}

static void check_element(const struct packed_product *p, const struct tn_kernels *kernels,
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

static void check_table(const struct packed_product *p, const struct tn_kernels *kernels,
                        struct tn_random *random)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const c = packed_product_multiply(p, "bf16", host_of(kernels, 1), d->m);
    float *const apart = packed_product_multiply(
        p, "bf16", host_of(kernels, 1 + below(random, 3)), 1 + below(random, d->m));

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
        struct packed_product p = packed_product_draw(TN_BF16_INPUTS, &random);

        for (size_t i = 0; kernels_at(i); i++)
            check_table(&p, kernels_at(i), &random);
        packed_product_clear(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_those_of_rounded_numbers),
    };

    return cmocka_run_group_tests_name("bf16 inputs", tests, NULL, NULL);
}
