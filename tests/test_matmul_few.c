/* SPDX-License-Identifier: MIT */
/* test_matmul_few.c - plans for few rows and for weights in bf16 against rows of f32. */
#include <stdlib.h>
#include <string.h>

#include "support/matmul_problem.h"
#include "tarn/machine.h"

static struct tn_matmul_desc random_desc(size_t m, size_t n, size_t k, struct tn_random *random)
{
    struct tn_matmul_desc desc = {
        .m = m,
        .n = n,
        .k = k,
        .transpose_b = true,
        .bias = below(random, 2),
        .add = below(random, 2),
        .activation = (enum tn_activation)below(random, 3),
        .elements = below(random, 2) ? TN_BF16 : TN_F32,
        .packed = true,
    };

    if (below(random, 2))
        desc.lda = k + below(random, 20);
    if (below(random, 2))
        desc.ldb = k + below(random, 20);
    if (below(random, 2))
        desc.ldc = n + below(random, 20);
    return desc;
}

static void check_with(struct matmul_problem *p, const char *backend, const char *cpu)
{
    struct tn_matmul *plan;
    tarn_error err = {0};

    p->desc.backend = backend;
    check_ok(
        tn_matmul_create(&plan, &p->desc, host_of(tn_kernels_pick(cpu), p->desc.m % 4), &err),
        &err);
    if (backend)
        assert_string_equal(tn_matmul_name(plan), backend);
    matmul_problem_run(plan, p, p->c);
    matmul_problem_check(p);
    tn_matmul_free(plan);
}

/* ---- results ------------------------------------------------------------ */

static void few_rows_equal_the_plain_loops_on_every_processor(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2201);
    for (int repeat = 0; repeat < 150; repeat++) {
        struct matmul_problem p;

        matmul_problem_init(&p,
                            random_desc(1 + below(&random, 20), 1 + below(&random, 300),
                                        1 + below(&random, 300), &random),
                            &random);
        for (size_t i = 0; tarn_cpu_name(i); i++)
            check_with(&p, "packed", tarn_cpu_name(i));
        matmul_problem_clear(&p);
    }
}

/* Any m, either orientation. */
static void weights_in_bf16_meet_rows_of_f32_in_every_product(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2202);
    for (int repeat = 0; repeat < 100; repeat++) {
        struct tn_matmul_desc desc = random_desc(1 + below(&random, 90), 1 + below(&random, 90),
                                                 1 + below(&random, 150), &random);
        struct matmul_problem p;

        desc.elements = TN_BF16;
        desc.transpose_a = below(&random, 2);
        desc.transpose_b = below(&random, 2);
        desc.lda = desc.ldb = 0;
        matmul_problem_init(&p, desc, &random);
        check_with(&p, NULL, NULL);
        matmul_problem_clear(&p);
    }
}

/* What is not packed before the product is widened within it. */
static void products_of_bf16_equal_the_plain_loops(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2203);
    for (int repeat = 0; repeat < 50; repeat++) {
        struct tn_matmul_desc desc = random_desc(1 + below(&random, 90), 1 + below(&random, 90),
                                                 1 + below(&random, 150), &random);
        struct matmul_problem p;

        desc.elements = TN_BF16;
        desc.packed = false;
        matmul_problem_init(&p, desc, &random);
        check_with(&p, "packed", NULL);
        check_with(&p, "plain", NULL);
        matmul_problem_clear(&p);
    }
}

/* ---- to the last bit ---------------------------------------------------- */

static void run_plan(struct matmul_problem *p, struct tn_matmul_desc desc,
                     const struct tn_host *host, float *c)
{
    struct tn_matmul *plan;
    tarn_error err = {0};

    check_ok(tn_matmul_create(&plan, &desc, host, &err), &err);
    matmul_problem_run(plan, p, c);
    tn_matmul_free(plan);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const size_t sizes[][3] = {
        {1, 1000, 300}, {8, 70, 2000}, {3, 2000, 31}, {40, 90, 200}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2204);
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof sizes[0]; i++) {
        struct tn_matmul_desc desc =
            random_desc(sizes[i / 2][0], sizes[i / 2][1], sizes[i / 2][2], &random);
        struct matmul_problem p;

        desc.elements = i % 2 ? TN_BF16 : TN_F32;
        matmul_problem_init(&p, desc, &random);
        float *const first = take(p.c_floats, sizeof *first);

        for (size_t threads = 1; threads <= 7; threads++) {
            run_plan(&p, desc, forced_host(threads), threads == 1 ? first : p.c);
            if (threads > 1)
                assert_memory_equal(first, p.c, p.c_floats * sizeof *first);
        }
        free(first);
        matmul_problem_clear(&p);
    }
}

/* Runs a plan for fewer rows than it was made for. `all` is what it gives for all of them. */
static void check_fewer_rows(struct matmul_problem *p, const struct tn_matmul *plan,
                             const float *all, size_t rows)
{
    const size_t row = p->c_floats / plan->desc.m;

    matmul_problem_run_rows(plan, p, p->c, rows);
    assert_memory_equal(all, p->c, rows * row * sizeof *all);
    assert_memory_equal(p->old + rows * row, p->c + rows * row,
                        (plan->desc.m - rows) * row * sizeof *all);
}

static void a_plan_gives_fewer_rows_the_same_bits(void **state)
{
    static const size_t made_for[] = {16, 40, 300}, some[] = {1, 2, 15, 16, 17, 39, 128, 299};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2206);
    for (size_t i = 0; i < 12; i++) {
        struct tn_matmul_desc desc = random_desc(made_for[i % 3], 1 + below(&random, 200),
                                                 1 + below(&random, 2000), &random);
        struct matmul_problem p;
        struct tn_matmul *plan;
        tarn_error err = {0};

        matmul_problem_init(&p, desc, &random);
        check_ok(tn_matmul_create(&plan, &desc, forced_host(i % 4), &err), &err);
        float *const all = take(p.c_floats, sizeof *all);

        matmul_problem_run(plan, &p, all);
        for (size_t rows = 0; rows < sizeof some / sizeof some[0]; rows++)
            if (some[rows] <= desc.m)
                check_fewer_rows(&p, plan, all, some[rows]);
        free(all);
        tn_matmul_free(plan);
        matmul_problem_clear(&p);
    }
}

/* The plan chosen by default: a sequence alone equals that sequence in a batch, on both sides
 * of what are few rows, and where the sum is long enough to be cut otherwise. */
static void a_row_does_not_depend_on_its_batch(void **state)
{
    enum { ALL = 150 };
    static const size_t some[] = {1, 2, 3, 4, 5, 6, 7, 11, 16, 17, 33, 64, 129};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2205);
    for (int repeat = 0; repeat < 24; repeat++) {
        struct tn_matmul_desc desc =
            random_desc(ALL, 1 + below(&random, 200), 1 + below(&random, 2000), &random);
        struct matmul_problem p;

        desc.activation = (enum tn_activation)(repeat % 3);
        matmul_problem_init(&p, desc, &random);
        run_plan(&p, desc, forced_host(0), p.c);
        float *const all = take(p.c_floats, sizeof *all);

        memcpy(all, p.c, p.c_floats * sizeof *all);
        for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
            desc.m = some[i];
            run_plan(&p, desc, forced_host(0), p.c);
            assert_memory_equal(all, p.c, desc.m * (p.c_floats / ALL) * sizeof *all);
        }
        free(all);
        matmul_problem_clear(&p);
    }
}

/* A multiply-add rounds once: what is too small for a float keeps its sign. */
static void products_that_underflow_have_one_sign(void **state)
{
    enum { ALL = 40, N = 70, K = 3 };
    static float a[ALL * K], b[N * K], few[N], many[ALL * N], old[ALL * N];

    (void)state;
    for (size_t i = 0; i < ALL * K; i++)
        a[i] = 1e-30f;
    for (size_t i = 0; i < N * K; i++)
        b[i] = i / K % 2 ? 1e-30f : -1e-30f;
    for (size_t cpu = 0; tarn_cpu_name(cpu); cpu++)
        for (int elements = 0; elements < 2; elements++) {
            struct matmul_problem p = {.a = a, .b = b, .old = old, .c_floats = N};
            struct tn_matmul_desc desc = {.m = 1,
                                          .n = N,
                                          .k = K,
                                          .transpose_b = true,
                                          .elements = elements ? TN_BF16 : TN_F32,
                                          .packed = true};
            const struct tn_host *const host = host_of(tn_kernels_row(cpu), 1);

            run_plan(&p, desc, host, few);
            desc.m = ALL;
            p.c_floats = ALL * N;
            run_plan(&p, desc, host, many);
            assert_memory_equal(few, many, sizeof few);
        }
}

/* ---- who multiplies ----------------------------------------------------- */

static void packed_weights_are_refused_by_the_definition(void **state)
{
    (void)state;
    for (int elements = 0; elements < 2; elements++) {
        const struct tn_matmul_desc desc = {.backend = "plain",
                                            .m = 40,
                                            .n = 8,
                                            .k = 8,
                                            .elements = elements ? TN_BF16 : TN_F32,
                                            .packed = true};
        struct tn_matmul *plan;
        tarn_error err = {0};

        assert_int_equal(tn_matmul_create(&plan, &desc, forced_host(0), &err), TARN_EMACHINE);
        assert_null(plan);
        assert_non_null(strstr(err.text, "needs weights that are not packed"));
    }
}

static void sizes_of_f32_rows_are_checked_as_such(void **state)
{
    const struct tn_matmul_desc desc = {.m = 2,
                                        .n = 1,
                                        .k = SIZE_MAX / 10,
                                        .transpose_b = true,
                                        .elements = TN_BF16,
                                        .packed = true};
    struct tn_matmul *plan;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_matmul_create(&plan, &desc, forced_host(0), &err), TARN_EINVAL);
    assert_null(plan);
    assert_non_null(strstr(err.text, "a: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_equal_the_plain_loops_on_every_processor),
        cmocka_unit_test(weights_in_bf16_meet_rows_of_f32_in_every_product),
        cmocka_unit_test(products_of_bf16_equal_the_plain_loops),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_plan_gives_fewer_rows_the_same_bits),
        cmocka_unit_test(a_row_does_not_depend_on_its_batch),
        cmocka_unit_test(products_that_underflow_have_one_sign),
        cmocka_unit_test(packed_weights_are_refused_by_the_definition),
        cmocka_unit_test(sizes_of_f32_rows_are_checked_as_such),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
