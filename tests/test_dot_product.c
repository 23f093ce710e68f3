/* SPDX-License-Identifier: MIT */
/* test_dot_product.c - the numerator of (8) alone, against Algorithm 1. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/algorithm_1.h"
#include "support/guarded.h"
#include "tarn/attention.h"

enum { TQ, TK, TV, TG, TY, TDQ, TDK, TDV, TENSORS };

struct problem {
    tarn_dot_product_sizes sizes;
    struct tensor t[TENSORS];
    struct pool inputs, outputs;
    struct block work;
};

static void problem_open(struct problem *p, const tarn_dot_product_sizes *sizes,
                         enum layout layout, struct tn_random *random)
{
    *p = (struct problem){.sizes = *sizes};
    for (size_t i = 0; i < TENSORS; i++) {
        const bool of_query = i == TQ || i == TK || i == TDQ || i == TDK;

        p->t[i] = (struct tensor){.B = sizes->batch,
                                  .n = sizes->length,
                                  .H = sizes->heads,
                                  .width = of_query ? sizes->query_width : sizes->value_width};
    }
    p->inputs = pool_open(p->t, 4, layout);
    p->outputs = pool_open(p->t + 4, 4, layout);
    for (size_t i = 0; i < 4; i++)
        for (size_t r = 0; r < tensor_rows(&p->t[i]); r++)
            for (size_t e = 0; e < p->t[i].width; e++)
                tensor_row_at(&p->t[i], r)[e] = (float)tn_random_normal(random);
    p->work = block_open(tarn_causal_dot_product_workspace_size(sizes), 7, 0xff);
}

static void problem_close(struct problem *p)
{
    pool_close(&p->inputs);
    pool_close(&p->outputs);
    block_close(&p->work);
}

static tarn_output out(const struct problem *p, size_t i)
{
    const struct tensor *const t = &p->t[i];

    return (tarn_output){t->data, t->batch, t->position, t->head};
}

static tarn_input in(const struct problem *p, size_t i)
{
    const struct tensor *const t = &p->t[i];

    return (tarn_input){t->data, t->batch, t->position, t->head};
}

static void problem_run(struct problem *p)
{
    tarn_error err = {0};

    check_ok(tarn_causal_dot_product(&p->sizes, out(p, TY), in(p, TQ), in(p, TK), in(p, TV),
                                     p->work.bytes, &err),
             &err);
    check_ok(tarn_causal_dot_product_backward(&p->sizes, out(p, TDQ), out(p, TDK), out(p, TDV),
                                              in(p, TQ), in(p, TK), in(p, TV), in(p, TG),
                                              p->work.bytes, &err),
             &err);
    pool_check(&p->inputs, "inputs");
    pool_check(&p->outputs, "outputs");
    block_check(&p->work, "workspace");
}

/* Rows of one head in double. */
static double *rows_of(const struct tensor *t, size_t b, size_t h)
{
    double *const rows = take(t->n * t->width, sizeof *rows);

    for (size_t i = 0; i < t->n; i++)
        for (size_t e = 0; e < t->width; e++)
            rows[i * t->width + e] = (double)tensor_row(t, b, i, h)[e];
    return rows;
}

/* Sums of up to `length` products each. */
static void check_rows(const struct tensor *t, size_t b, size_t h, const double *want,
                       const char *name)
{
    double square = 0.0;

    for (size_t i = 0; i < t->n * t->width; i++)
        square += want[i] * want[i];
    const double scale = sqrt(square / (double)(t->n * t->width));

    for (size_t i = 0; i < t->n; i++)
        for (size_t e = 0; e < t->width; e++) {
            const double got = (double)tensor_row(t, b, i, h)[e], is = want[i * t->width + e];

            if (!(fabs(got - is) <= 2e-5 * (fabs(is) + scale)))
                fail_msg("N %zu, D or M %zu: %s[%zu][%zu] is %g, not %g", t->n, t->width, name,
                         i, e, got, is);
        }
}

static void check_head(const struct problem *p, size_t b, size_t h)
{
    double *x[TENSORS];

    for (size_t i = 0; i < TENSORS; i++)
        x[i] = rows_of(&p->t[i], b, h); /* results are overwritten */
    const size_t N = p->sizes.length, C = p->sizes.query_width, M = p->sizes.value_width;

    algorithm_1_forward(x[TY], x[TQ], x[TK], x[TV], N, C, M);
    algorithm_1_backward(x[TDQ], x[TDK], x[TDV], x[TQ], x[TK], x[TV], x[TG], N, C, M);
    check_rows(&p->t[TY], b, h, x[TY], "y");
    check_rows(&p->t[TDQ], b, h, x[TDQ], "dq");
    check_rows(&p->t[TDK], b, h, x[TDK], "dk");
    check_rows(&p->t[TDV], b, h, x[TDV], "dv");
    for (size_t i = 0; i < TENSORS; i++)
        free(x[i]);
}

static void dot_product_and_its_gradient_equal_algorithm_1(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1301);
    for (size_t trial = 0; trial < 60; trial++) {
        const tarn_dot_product_sizes sizes = {
            .batch = 1 + below(&random, 2),
            .heads = ONE_OF(&random, 1, 2, 3, 9),
            .length = ONE_OF(&random, 1, 2, 13, 48, 49, 100, 1100),
            .query_width = ONE_OF(&random, 1, 3, 8, 17, 32),
            .value_width = ONE_OF(&random, 1, 5, 8, 16, 33),
            .host.threads = ONE_OF(&random, 0, 1, 3),
        };
        struct problem p;

        problem_open(&p, &sizes, (enum layout)below(&random, LAYOUTS), &random);
        problem_run(&p);
        for (size_t b = 0; b < sizes.batch; b++)
            for (size_t h = 0; h < sizes.heads; h++)
                check_head(&p, b, h);
        problem_close(&p);
    }
}

/* Where widths differ, dv cannot stand in for y: it does not have to. */
static void wide_states_equal_algorithm_1(void **state)
{
    static const tarn_dot_product_sizes sizes[] = {{1, 1, 120, 100, 70, {.threads = 2}},
                                                   {1, 2, 60, 3, 300, {.threads = 1}}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1302);
    for (size_t i = 0; i < 2; i++) {
        struct problem p;

        problem_open(&p, &sizes[i], SLICES, &random);
        problem_run(&p);
        check_head(&p, 0, sizes[i].heads - 1);
        problem_close(&p);
    }
}

/* ---- refusals ----------------------------------------------------------- */

static void check_sizes_refused(const tarn_dot_product_sizes *sizes, const char *names)
{
    float data[4] = {0};
    char work[64];
    const tarn_input x = {data, 1, 1, 1};
    const tarn_output y = {data, 1, 1, 1};
    tarn_error err = {0};

    assert_int_equal(tarn_causal_dot_product_workspace_size(sizes), 0);
    assert_int_equal(tarn_causal_dot_product(sizes, y, x, x, x, work, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, names));
    memset(&err, 0, sizeof err);
    assert_int_equal(tarn_causal_dot_product_backward(sizes, y, y, y, x, x, x, x, work, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, names));
    assert_int_equal(tarn_causal_dot_product(sizes, y, x, x, x, work, NULL), TARN_EINVAL);
}

static void sizes_that_cannot_be_used_are_refused(void **state)
{
    static const struct {
        tarn_dot_product_sizes sizes;
        const char *names;
    } cases[] = {
        {{0, 1, 1, 1, 1, {.threads = 1}}, "batch"},
        {{1, 0, 1, 1, 1, {.threads = 1}}, "heads"},
        {{1, 1, 0, 1, 1, {.threads = 1}}, "queries"},
        {{1, 1, 1, 0, 1, {.threads = 1}}, "query_width"},
        {{1, 1, 1, 1, 0, {.threads = 1}}, "value_width"},
        {{1, 1, 1, 1, 1, {.threads = 1025}}, "threads"},
        {{SIZE_MAX / 2, 1, 1, 1, 1, {.threads = 1}}, "sizes"},
        {{1, SIZE_MAX, 1, 1, 1, {.threads = 1}}, "sizes"},
        {{1, 1, SIZE_MAX / 2, 4, 1, {.threads = 1}}, "sizes"},
        {{1, 1, 1, SIZE_MAX / 2, 1, {.threads = 1}}, "sizes"},
        {{1, 1, 1, 1, SIZE_MAX / 3, {.threads = 1}}, "sizes"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_sizes_refused(&cases[i].sizes, cases[i].names);
    check_sizes_refused(NULL, "sizes");
}

static void pointers_and_strides_are_checked(void **state)
{
    const tarn_dot_product_sizes sizes = {2, 2, 3, 4, 5, {.threads = 1}};
    struct tn_random random;
    struct problem p;
    tarn_error err = {0};

    (void)state;
    tn_random_seed(&random, 1303);
    problem_open(&p, &sizes, POSITIONS_FIRST, &random);
    const tarn_input q = in(&p, TQ), k = in(&p, TK), v = in(&p, TV), none = {0};
    tarn_output y = out(&p, TY);

    assert_int_equal(tarn_causal_dot_product(&sizes, y, none, k, v, p.work.bytes, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "query:"));
    assert_int_equal(tarn_causal_dot_product(&sizes, y, q, k, v, NULL, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "workspace is NULL"));
    y.head = 1;
    assert_int_equal(tarn_causal_dot_product(&sizes, y, q, k, v, p.work.bytes, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "y:"));
    assert_int_equal(tarn_causal_dot_product_backward(&sizes, out(&p, TDQ), out(&p, TDK),
                                                      out(&p, TDV), q, k, v, none, p.work.bytes,
                                                      &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "dy:"));
    y = out(&p, TDV);
    y.data = NULL;
    assert_int_equal(tarn_causal_dot_product_backward(&sizes, out(&p, TDQ), out(&p, TDK), y, q,
                                                      k, v, in(&p, TG), p.work.bytes, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "gradient of value:"));
    problem_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_product_and_its_gradient_equal_algorithm_1),
        cmocka_unit_test(wide_states_equal_algorithm_1),
        cmocka_unit_test(sizes_that_cannot_be_used_are_refused),
        cmocka_unit_test(pointers_and_strides_are_checked),
    };

    return cmocka_run_group_tests_name("dot product", tests, NULL, NULL);
}
