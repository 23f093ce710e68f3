/* SPDX-License-Identifier: MIT */
/* test_int8.c - products with weights in int8: by every table of kernels, with any threads and
 * any company, the very bits of the definition in kernel/int8.h, written here in plain loops.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/int8.h"
#include "support/kernel_list.h"
#include "support/packed_product.h"

/* ---- the definition ----------------------------------------------------- */

/* The least power of two that leaves the largest of a block at 127 or below. */
static float input_scale(const float *x, size_t n)
{
    float most = 0.0f, scale = 1.0f;

    for (size_t p = 0; p < n; p++)
        most = fmaxf(most, fabsf(x[p]));
    if (most < 0x1p-100f)
        return 0.0f;
    while (most / scale > 127.0f)
        scale *= 2.0f;
    while (most / (scale / 2.0f) <= 127.0f)
        scale /= 2.0f;
    return scale;
}

/* Of one output and one row, over one block. */
static float block_sum(const struct packed_product *p, size_t i, size_t j, size_t from,
                       size_t n)
{
    const struct tn_matmul_desc *const d = &p->desc;
    const float *const x = p->a + i * d->lda + from;
    const float *const w = p->b + (d->transpose_b ? j * d->ldb + from : from * d->ldb + j);
    const size_t step = d->transpose_b ? 1 : d->ldb;
    const float scale = input_scale(x, n);
    int8_t q[TN_INT8_BLOCK];
    const float weight_scale = tn_int8_quantise(q, w, step, n);
    int32_t sum = 0;

    for (size_t l = 0; l < n && scale > 0.0f; l++)
        sum += (int32_t)nearbyintf(x[l] / scale) * q[l];
    const float scaled = (float)sum * weight_scale;

    return scaled * scale; /* exact: a power of two */
}

/* c, to be freed. */
static float *define(const struct packed_product *p)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const want = take(d->m * d->ldc, sizeof *want);

    memcpy(want, p->old, d->m * d->ldc * sizeof *want);
    for (size_t i = 0; i < d->m; i++)
        for (size_t j = 0; j < d->n; j++) {
            float sum = 0.0f;

            for (size_t from = 0; from < d->k; from += TN_INT8_BLOCK)
                sum += block_sum(p, i, j, from, tn_min(TN_INT8_BLOCK, d->k - from));
            if (d->add)
                sum = p->old[i * d->ldc + j] + sum;
            if (d->bias)
                sum += p->bias[j];
            want[i * d->ldc + j] = d->activation == TN_RELU && sum < 0.0f ? 0.0f : sum;
        }
    return want;
}

/* ---- products ----------------------------------------------------------- */

/* By the backend: all rows at once, or some at a time. */
static float *multiply(const struct packed_product *p, const struct tn_host *host, size_t rows)
{
    return packed_product_multiply(p, "int8", host, rows);
}

static void check_product(const struct packed_product *p, const float *want,
                          const struct tn_host *host, size_t rows)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const c = multiply(p, host, rows);

    for (size_t i = 0; i < d->m * d->ldc; i++)
        if (memcmp(c + i, want + i, sizeof *c) != 0)
            fail_msg("%s, %zu threads, %zu x %zu x %zu, %zu rows at a time: element %zu is "
                     "%.9g; expected %.9g",
                     host->kernels->name, host->threads, d->m, d->n, d->k, rows, i,
                     (double)c[i], (double)want[i]);
    free(c);
}

static void products_are_the_definition(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 3);
    for (int trial = 0; trial < 40; trial++) {
        struct packed_product p = packed_product_draw(TN_INT8, &random);
        float *const want = define(&p);

        for (size_t i = 0; kernels_at(i); i++) {
            check_product(&p, want, host_of(kernels_at(i), 1 + below(&random, 3)), p.desc.m);
            check_product(&p, want, host_of(kernels_at(i), 1), 1 + below(&random, p.desc.m));
        }
        free(want);
        packed_product_clear(&p);
    }
}

/* About as exact as eight bits can be. */
static void products_are_close_to_those_of_floats(void **state)
{
    enum { M = 4, N = 50, K = 256 };
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 4);
    struct packed_product p = packed_product_of(
        (struct tn_matmul_desc){.m = M, .n = N, .k = K, .transpose_b = true}, TN_INT8, &random);
    float *const c = multiply(&p, forced_host(1), M);
    double error = 0.0, size = 0.0;

    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double exact = 0.0;

            for (size_t l = 0; l < K; l++)
                exact += (double)p.a[i * K + l] * (double)p.b[j * K + l];
            error += pow((double)c[i * N + j] - exact, 2.0);
            size += exact * exact;
        }
    assert_true(error > 0.0 && error < 2e-4 * size);
    free(c);
    packed_product_clear(&p);
}

/* ---- numbers ------------------------------------------------------------ */

static void quantising_again_changes_nothing(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 5);
    for (int trial = 0; trial < 2000; trial++) {
        const size_t n = 1 + below(&random, TN_INT8_BLOCK);
        float w[TN_INT8_BLOCK], again[TN_INT8_BLOCK];
        int8_t q[TN_INT8_BLOCK], r[TN_INT8_BLOCK];

        draw_normal(w, n, exp(60.0 * (tn_random_uniform(&random) - 0.5)), &random);
        const float scale = tn_int8_quantise(q, w, 1, n);

        for (size_t i = 0; i < n; i++) {
            again[i] = (float)q[i] * scale;
            assert_true(fabsf(w[i] - again[i]) <= 0.5001f * scale);
        }
        assert_true(tn_int8_quantise(r, again, 1, n) == scale);
        assert_memory_equal(q, r, n);
    }
}

static void blocks_of_zeros_stay_zeros(void **state)
{
    const float zeros[2][3] = {{0}, {0.0f, 1e-38f, -1e-38f}};
    int8_t q[3];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        assert_true(tn_int8_quantise(q, zeros[i], 1, 3) == 0.0f);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(q[j], 0);
    }
}

/* Rows beside one with a NaN or an infinity are what they are without. */
static void inputs_that_are_not_finite_spoil_their_row_alone(void **state)
{
    const float values[] = {NAN, INFINITY, -INFINITY};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 6);
    for (size_t v = 0; v < 3; v++)
        for (size_t i = 0; kernels_at(i); i++) {
            struct packed_product p = packed_product_of(
                (struct tn_matmul_desc){.m = 3, .n = 20, .k = 100, .transpose_b = true},
                TN_INT8, &random);
            const struct tn_host *const host = host_of(kernels_at(i), 1);
            float *const before = multiply(&p, host, 3);

            p.a[p.desc.lda + 70] = values[v];
            float *const after = multiply(&p, host, 3);

            for (size_t j = 0; j < 20; j++) {
                assert_true(isnan(after[p.desc.ldc + j]));
                assert_true(after[j] == before[j]);
                assert_true(after[2 * p.desc.ldc + j] == before[2 * p.desc.ldc + j]);
            }
            free(before);
            free(after);
            packed_product_clear(&p);
        }
}

static void only_packed_weights_can_be_int8(void **state)
{
    const struct tn_matmul_desc desc = {.m = 1, .n = 1, .k = 1, .elements = TN_INT8};
    struct tn_matmul *plan;
    tarn_error err;

    (void)state;
    assert_int_equal(tn_matmul_create(&plan, &desc, forced_host(1), &err), TARN_EINVAL);
    assert_null(plan);
    assert_non_null(strstr(err.text, "packed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_are_the_definition),
        cmocka_unit_test(products_are_close_to_those_of_floats),
        cmocka_unit_test(quantising_again_changes_nothing),
        cmocka_unit_test(blocks_of_zeros_stay_zeros),
        cmocka_unit_test(inputs_that_are_not_finite_spoil_their_row_alone),
        cmocka_unit_test(only_packed_weights_can_be_int8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
