/* SPDX-License-Identifier: MIT */
/* test_matmul.c - every backend against three plain loops in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/testing.h"
#include "tarn/machine.h"

static const char *const backends[] = {
#ifdef TN_HAVE_ONEDNN
    "onednn",
#endif
    "portable",
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

static const float untouched = 12345.0f;

/* One product with its arrays. Elements between rows are NaN in a and b, `untouched` in c. */
struct problem {
    struct tn_matmul_desc desc;
    size_t a_rows, b_rows, a_floats, b_floats, c_floats;
    float *a, *b, *bias, *c, *old;
    uint16_t *a_bf16, *b_bf16;
};

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

/* Rounds x to bf16 in place, so that both kinds of element hold the same numbers. */
static uint16_t *new_bf16(float *x, size_t n)
{
    uint16_t *const halves = malloc(n * sizeof *halves);

    assert_non_null(halves);
    for (size_t i = 0; i < n; i++) {
        halves[i] = tn_bf16_from_f32(x[i]);
        x[i] = tn_bf16_to_f32(halves[i]);
    }
    return halves;
}

static void problem_init(struct problem *p, struct tn_matmul_desc desc,
                         struct tn_random *random)
{
    const size_t m = desc.m, n = desc.n, k = desc.k;
    const size_t a_cols = desc.transpose_a ? m : k, b_cols = desc.transpose_b ? k : n;
    const size_t lda = desc.lda ? desc.lda : a_cols, ldb = desc.ldb ? desc.ldb : b_cols;
    const size_t ldc = desc.ldc ? desc.ldc : n;

    *p = (struct problem){
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
    if (desc.elements == TN_BF16) {
        p->a_bf16 = new_bf16(p->a, p->a_floats);
        p->b_bf16 = new_bf16(p->b, p->b_floats);
    }
}

static void problem_clear(struct problem *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->c);
    free(p->old);
    free(p->a_bf16);
    free(p->b_bf16);
}

static void run_with(const struct tn_matmul *plan, struct problem *p, float *c)
{
    void *const scratch = malloc(tn_matmul_scratch_size(plan) + 1);
    const bool bf16 = p->desc.elements == TN_BF16;

    assert_non_null(scratch);
    memcpy(c, p->old, p->c_floats * sizeof *c);
    tn_matmul_run(plan, c, bf16 ? (const void *)p->a_bf16 : p->a,
                  bf16 ? (const void *)p->b_bf16 : p->b, p->desc.bias ? p->bias : NULL,
                  (char *)scratch + 1);
    free(scratch);
}

static double activate(enum tn_activation activation, double x)
{
    if (activation == TN_RELU)
        return x > 0.0 ? x : 0.0;
    return activation == TN_GELU ? 0.5 * x * (1.0 + erf(x / sqrt(2.0))) : x;
}

/* Element (i, j), and the sum of its terms' sizes, which bounds the rounding. */
static double definition(const struct problem *p, size_t i, size_t j, double *size)
{
    const struct tn_matmul_desc *const d = &p->desc;
    const size_t lda = p->a_floats / p->a_rows, ldb = p->b_floats / p->b_rows;
    const size_t ldc = p->c_floats / d->m;
    double sum =
        (d->bias ? (double)p->bias[j] : 0.0) + (d->add ? (double)p->old[i * ldc + j] : 0.0);

    *size = 1.0 + fabs(sum);
    for (size_t l = 0; l < d->k; l++) {
        const double a = (double)p->a[d->transpose_a ? l * lda + i : i * lda + l];
        const double b = (double)p->b[d->transpose_b ? j * ldb + l : l * ldb + j];

        sum += a * b;
        *size += fabs(a * b);
    }
    return activate(d->activation, sum);
}

static void check_result(const struct problem *p)
{
    const size_t ldc = p->c_floats / p->desc.m;

    for (size_t i = 0; i < p->desc.m; i++)
        for (size_t j = 0; j < ldc; j++) {
            const float got = p->c[i * ldc + j];
            double size, want;

            if (j >= p->desc.n) {
                assert_true(got == untouched);
                continue;
            }
            want = definition(p, i, j, &size);
            if (!(fabs((double)got - want) <= 1e-6 * size))
                fail_msg("(%zu, %zu) of %zu x %zu x %zu: %g, expected %g", i, j, p->desc.m,
                         p->desc.n, p->desc.k, (double)got, want);
        }
}

/* True if this backend can; a product of f32 every backend can. */
static bool check_backend(struct problem *p, const char *backend, const char *cpu)
{
    struct tn_matmul *plan;
    tarn_error err = {0};

    p->desc.backend = backend;
    p->desc.cpu = cpu;
    if (tn_matmul_create(&plan, &p->desc, &err) != TARN_OK) {
        if (p->desc.elements == TN_F32 || strcmp(backend, "portable") == 0)
            fail_msg("%s", err.text);
        assert_int_equal(err.status, TARN_EMACHINE);
        assert_null(plan);
        return false;
    }
    assert_string_equal(tn_matmul_name(plan), backend);
    run_with(plan, p, p->c);
    check_result(p);
    tn_matmul_free(plan);
    return true;
}

static void check_everywhere(struct tn_matmul_desc desc, struct tn_random *random)
{
    struct problem p;

    problem_init(&p, desc, random);
    for (size_t i = 0; i < BACKENDS; i++)
        check_backend(&p, backends[i], NULL);
    for (size_t i = 0; tarn_cpu_name(i); i++)
        check_backend(&p, "portable", tarn_cpu_name(i));
    problem_clear(&p);
}

/* ---- results ------------------------------------------------------------ */

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
        .elements = below(random, 3) == 0 ? TN_BF16 : TN_F32,
        .threads = below(random, 4),
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
        {1, 1, 1},     {1, 1, 300},    {1, 300, 1},    {300, 1, 1},
        {1, 257, 129}, {257, 1, 129},  {64, 64, 64},   {65, 63, 65},
        {64, 16, 128}, {16, 1025, 70}, {1025, 16, 70}, {300, 520, 67},
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
    for (unsigned bits = 0; bits < 96; bits++)
        check_everywhere((struct tn_matmul_desc){.m = 37,
                                                 .n = 70,
                                                 .k = 65,
                                                 .transpose_a = bits & 1,
                                                 .transpose_b = bits >> 1 & 1,
                                                 .bias = bits >> 2 & 1,
                                                 .add = bits >> 3 & 1,
                                                 .elements = bits >> 4 & 1 ? TN_BF16 : TN_F32,
                                                 .activation = (enum tn_activation)(bits / 32)},
                         &random);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const size_t sizes[][3] = {{300, 200, 500}, {64, 64, 20000}, {1000, 130, 40}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 4);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] * BACKENDS; i++) {
        const size_t *const size = sizes[i / BACKENDS];
        struct tn_matmul_desc desc = {
            .m = size[0], .n = size[1], .k = size[2], .bias = true, .add = true};
        struct tn_matmul *plan;
        struct problem p;

        desc.backend = backends[i % BACKENDS];
        problem_init(&p, desc, &random);
        float *const first = malloc(p.c_floats * sizeof *first);
        assert_non_null(first);
        for (desc.threads = 1; desc.threads <= 7; desc.threads++) {
            assert_int_equal(tn_matmul_create(&plan, &desc, NULL), TARN_OK);
            run_with(plan, &p, desc.threads == 1 ? first : p.c);
            if (desc.threads > 1)
                assert_memory_equal(first, p.c, p.c_floats * sizeof *first);
            tn_matmul_free(plan);
        }
        free(first);
        problem_clear(&p);
    }
}

/* ---- life --------------------------------------------------------------- */

enum { CALLERS = 4 };

struct shared {
    const struct tn_matmul *plan;
    struct problem *p;
    float *results[CALLERS];
};

static void run_shared(void *arg, size_t i, size_t thread)
{
    struct shared *const shared = arg;

    (void)thread;
    run_with(shared->plan, shared->p, shared->results[i]);
}

static void one_plan_serves_many_threads(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 5);
    for (size_t i = 0; i < BACKENDS; i++) {
        struct problem p;
        struct tn_matmul *plan;

        problem_init(&p,
                     (struct tn_matmul_desc){.backend = backends[i],
                                             .m = 200,
                                             .n = 190,
                                             .k = 180,
                                             .bias = true,
                                             .add = true,
                                             .activation = TN_GELU},
                     &random);
        assert_int_equal(tn_matmul_create(&plan, &p.desc, NULL), TARN_OK);
        struct shared shared = {plan, &p, {0}};
        for (size_t j = 0; j < CALLERS; j++)
            assert_non_null(shared.results[j] = malloc(p.c_floats * sizeof(float)));
        tn_parallel(CALLERS, CALLERS, run_shared, &shared);
        run_with(plan, &p, p.c);
        check_result(&p);
        for (size_t j = 0; j < CALLERS; j++) {
            assert_memory_equal(p.c, shared.results[j], p.c_floats * sizeof(float));
            free(shared.results[j]);
        }
        tn_matmul_free(plan);
        problem_clear(&p);
    }
}

static void the_best_backend_is_the_default(void **state)
{
    struct tn_matmul *plan;

    (void)state;
    assert_int_equal(
        tn_matmul_create(&plan, &(struct tn_matmul_desc){.m = 9, .n = 9, .k = 9}, NULL),
        TARN_OK);
    assert_string_equal(tn_matmul_name(plan), backends[0]);
    tn_matmul_free(plan);
    tn_matmul_free(NULL);
}

/* Where no instruction multiplies bf16, the portable loops do. */
static void products_of_bf16_run_on_every_machine(void **state)
{
    const struct tn_matmul_desc desc = {.m = 70, .n = 33, .k = 65, .elements = TN_BF16};
    struct tn_random random;
    struct tn_matmul *plan;
    struct problem p;

    (void)state;
    tn_random_seed(&random, 6);
    problem_init(&p, desc, &random);
    assert_int_equal(tn_matmul_create(&plan, &desc, NULL), TARN_OK);
    run_with(plan, &p, p.c);
    check_result(&p);
    tn_matmul_free(plan);
    problem_clear(&p);
}

/* ---- refusals ----------------------------------------------------------- */

static void bad_input_is_refused_with_a_sentence(void **state)
{
    static const struct {
        struct tn_matmul_desc desc;
        tarn_status status;
        const char *mentions;
    } cases[] = {
        {{.m = 0, .n = 2, .k = 3}, TARN_EINVAL, "m, n, k: 0, 2, 3"},
        {{.m = 1, .n = 0, .k = 3}, TARN_EINVAL, "at least 1"},
        {{.m = 1, .n = 2, .k = 0}, TARN_EINVAL, "at least 1"},
        {{.m = 4, .n = 5, .k = 6, .lda = 5}, TARN_EINVAL, "lda: 5"},
        {{.m = 4, .n = 5, .k = 6, .lda = 3, .transpose_a = true}, TARN_EINVAL, "lda: 3"},
        {{.m = 4, .n = 5, .k = 6, .ldb = 4}, TARN_EINVAL, "ldb: 4"},
        {{.m = 4, .n = 5, .k = 6, .ldb = 5, .transpose_b = true}, TARN_EINVAL, "ldb: 5"},
        {{.m = 4, .n = 5, .k = 6, .ldc = 4}, TARN_EINVAL, "ldc: 4"},
        {{.m = SIZE_MAX / 2, .n = 1, .k = 8}, TARN_EINVAL, "a: "},
        {{.m = 2, .n = SIZE_MAX / 8, .k = 1}, TARN_EINVAL, "do not fit"},
        {{.m = 2, .n = 2, .k = 2, .ldc = SIZE_MAX}, TARN_EINVAL, "c: "},
        {{.m = 2, .n = 2, .k = 2, .threads = 5000}, TARN_EINVAL, "threads: 5000"},
        {{.m = 2, .n = 2, .k = 2, .backend = "abacus"}, TARN_EUNKNOWN, "'abacus'"},
        {{.m = 2, .n = 2, .k = 2, .cpu = "z80"}, TARN_EUNKNOWN, "'z80'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tn_matmul *plan = (struct tn_matmul *)&plan;
        tarn_error err = {0};

        assert_int_equal(tn_matmul_create(&plan, &cases[i].desc, &err), cases[i].status);
        assert_null(plan);
        if (!strstr(err.text, cases[i].mentions))
            fail_msg("'%s' does not mention '%s'", err.text, cases[i].mentions);
    }
}

/* Says no from the n-th request on. */
static void *grudging(void *context, size_t bytes)
{
    size_t *const left = context;

    return *left > 0 ? (--*left, malloc(bytes)) : NULL;
}

static void grudging_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static void a_failing_allocator_is_reported(void **state)
{
    (void)state;
    for (size_t granted = 0; granted < 3; granted++) {
        size_t left = granted;
        const tarn_allocator allocator = {grudging, grudging_release, &left};
        struct tn_matmul *plan;
        const tarn_status status = tn_matmul_create(
            &plan, &(struct tn_matmul_desc){.m = 8, .n = 8, .k = 8, .allocator = &allocator},
            NULL);

        assert_int_equal(status, plan ? TARN_OK : TARN_ENOMEM);
        assert_true(granted > 0 || !plan);
        assert_true(granted < 2 || plan);
        tn_matmul_free(plan);
    }
}

static void bf16_rounds_to_nearest(void **state)
{
    (void)state;
    assert_true(tn_bf16_from_f32(1.0f) == 0x3f80);
    assert_true(tn_bf16_from_f32(1.00390625f) == 0x3f80); /* half way: to even */
    assert_true(tn_bf16_from_f32(1.01171875f) == 0x3f82);
    assert_true(tn_bf16_from_f32(1.004f) == 0x3f81);
    assert_true(isinf(tn_bf16_to_f32(tn_bf16_from_f32(INFINITY))));
    assert_true(isnan(tn_bf16_to_f32(tn_bf16_from_f32(NAN))));
    assert_true(tn_bf16_to_f32(tn_bf16_from_f32(-0.15625f)) == -0.15625f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_products_equal_the_plain_loops),
        cmocka_unit_test(awkward_shapes_equal_the_plain_loops),
        cmocka_unit_test(every_post_operation_equals_the_plain_loops),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(one_plan_serves_many_threads),
        cmocka_unit_test(the_best_backend_is_the_default),
        cmocka_unit_test(products_of_bf16_run_on_every_machine),
        cmocka_unit_test(bad_input_is_refused_with_a_sentence),
        cmocka_unit_test(a_failing_allocator_is_reported),
        cmocka_unit_test(bf16_rounds_to_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
