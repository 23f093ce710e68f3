/* SPDX-License-Identifier: MIT */
/* test_matmul.c - dense products against three plain loops in double. */
#include <stdlib.h>
#include <string.h>

#include "support/matmul_problem.h"
#include "tarn/machine.h"

static void check_backend(struct matmul_problem *p, const char *backend, const char *cpu)
{
    struct tn_matmul *plan;
    tarn_error err;

    p->desc.backend = backend;
    check_ok(
        tn_matmul_create(&plan, &p->desc, host_of(tn_kernels_pick(cpu), p->desc.m % 4), &err),
        &err);
    assert_string_equal(tn_matmul_name(plan), backend);
    matmul_problem_run(plan, p, p->c);
    matmul_problem_check(p);
    tn_matmul_free(plan);
}

static void check_everywhere(struct tn_matmul_desc desc, struct tn_random *random)
{
    struct matmul_problem p;

    matmul_problem_init(&p, desc, random);
    check_backend(&p, "plain", NULL);
    for (size_t i = 0; tarn_cpu_name(i); i++)
        check_backend(&p, "packed", tarn_cpu_name(i));
    matmul_problem_clear(&p);
}

/* ---- results ------------------------------------------------------------ */

static const enum tn_element unpacked[] = {TN_F32, TN_BF16};
enum { UNPACKED = sizeof unpacked / sizeof unpacked[0] };

static struct tn_matmul_desc random_desc(size_t m, size_t n, size_t k, struct tn_random *random)
{
    struct tn_matmul_desc desc = {
        .m = m,
        .n = n,
        .k = k,
        .transpose_a = below(random, 2),
        .transpose_b = below(random, 2),
        .bias = below(random, 2),
        .add = below(random, 2),
        .activation = (enum tn_activation)below(random, 3),
        .elements = unpacked[below(random, UNPACKED)],
    };

    if (below(random, 2))
        desc.lda = (desc.transpose_a ? m : k) + below(random, 20);
    if (below(random, 2))
        desc.ldb = (desc.transpose_b ? k : n) + below(random, 20);
    if (below(random, 2))
        desc.ldc = n + below(random, 20);
    return desc;
}

static void random_products_equal_the_plain_loops(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1);
    for (int i = 0; i < 200; i++)
        check_everywhere(random_desc(1 + below(&random, 90), 1 + below(&random, 90),
                                     1 + below(&random, 150), &random),
                         &random);
}

static void awkward_shapes_equal_the_plain_loops(void **state)
{
    static const size_t sizes[][3] = {
        {1, 1, 1},       {1, 1, 300},    {1, 300, 1},    {300, 1, 1},    {1, 257, 129},
        {257, 1, 129},   {64, 64, 64},   {65, 63, 65},   {64, 16, 128},  {16, 1025, 70},
        {1025, 16, 70},  {300, 520, 67}, {45, 70, 1300}, {300, 17, 513}, /* sums in slices */
        {2050, 17, 300}, {5, 4100, 270}, {20, 33, 9000},                 /* sums in pieces */
    };
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int repeat = 0; repeat < 4; repeat++)
            check_everywhere(random_desc(sizes[i][0], sizes[i][1], sizes[i][2], &random),
                             &random);
}

static void every_post_operation_equals_the_plain_loops(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 3);
    for (unsigned bits = 0; bits < 16 * 3 * UNPACKED; bits++)
        check_everywhere(
            (struct tn_matmul_desc){.m = 37,
                                    .n = 70,
                                    .k = 65,
                                    .transpose_a = bits & 1,
                                    .transpose_b = bits >> 1 & 1,
                                    .bias = bits >> 2 & 1,
                                    .add = bits >> 3 & 1,
                                    .elements = unpacked[bits / 16 % UNPACKED],
                                    .activation = (enum tn_activation)(bits / 16 / UNPACKED)},
            &random);
}

static void check_threads(struct tn_matmul_desc desc, struct tn_random *random)
{
    struct tn_matmul *plan;
    struct matmul_problem p;

    matmul_problem_init(&p, desc, random);
    float *const first = take(p.c_floats, sizeof *first);

    for (size_t threads = 1; threads <= 7; threads += 2) {
        assert_int_equal(tn_matmul_create(&plan, &desc, forced_host(threads), NULL), TARN_OK);
        matmul_problem_run(plan, &p, threads == 1 ? first : p.c);
        if (threads > 1)
            assert_memory_equal(first, p.c, p.c_floats * sizeof *first);
        tn_matmul_free(plan);
    }
    free(first);
    matmul_problem_clear(&p);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const size_t sizes[][3] = {{300, 200, 500}, {64, 64, 9000}, {1000, 130, 40}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 4);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t e = 0; e < UNPACKED; e++)
            check_threads((struct tn_matmul_desc){.m = sizes[i][0],
                                                  .n = sizes[i][1],
                                                  .k = sizes[i][2],
                                                  .elements = unpacked[e],
                                                  .bias = true,
                                                  .add = true},
                          &random);
}

/* Packing b before the first run instead of in each changes nothing where the sum is of one
 * piece in both; any number of threads gives the same bits. */
static void check_packed(struct tn_matmul_desc desc, const struct tn_kernels *kernels,
                         struct tn_random *random)
{
    struct matmul_problem p;
    struct tn_matmul *plan;

    desc.packed = false;
    matmul_problem_init(&p, desc, random);
    float *const first = take(p.c_floats, sizeof(float));
    const bool one_piece = desc.k <= 256;

    assert_int_equal(tn_matmul_create(&plan, &desc, host_of(kernels, 0), NULL), TARN_OK);
    assert_int_equal(tn_matmul_packed_size(plan), 0);
    matmul_problem_run(plan, &p, first);
    tn_matmul_free(plan);
    desc.packed = true;
    for (size_t threads = 1; threads <= 5; threads += 2) {
        assert_int_equal(tn_matmul_create(&plan, &desc, host_of(kernels, threads), NULL),
                         TARN_OK);
        assert_true(tn_matmul_packed_size(plan) >= desc.n * desc.k * sizeof(float));
        matmul_problem_run(plan, &p, p.c);
        matmul_problem_check(&p);
        if (threads > 1 || one_piece)
            assert_memory_equal(p.c, first, p.c_floats * sizeof(float));
        memcpy(first, p.c, p.c_floats * sizeof(float));
        tn_matmul_free(plan);
    }
    free(first);
    matmul_problem_clear(&p);
}

static void a_packed_operand_gives_the_same_bits(void **state)
{
    static const size_t sizes[][3] = {
        {1, 1, 1},       {7, 33, 9},      {17, 40, 5},
        {128, 256, 300}, {131, 47, 1024}, {300, 17, 2113}, /* rectangles of several rows */
        {2200, 20, 30},  {128, 256, 256},                  /* many of them */
    };
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 7);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t cpu = 0; tarn_cpu_name(cpu); cpu++)
            for (int repeat = 0; repeat < 3; repeat++) {
                struct tn_matmul_desc desc =
                    random_desc(sizes[i][0], sizes[i][1], sizes[i][2], &random);

                desc.backend = "packed";
                desc.elements = TN_F32;
                check_packed(desc, tn_kernels_row(cpu), &random);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products_equal_the_plain_loops),
        cmocka_unit_test(awkward_shapes_equal_the_plain_loops),
        cmocka_unit_test(every_post_operation_equals_the_plain_loops),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_packed_operand_gives_the_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
