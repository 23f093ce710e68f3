/* SPDX-License-Identifier: MIT */
/* test_matmul_plan.c - plans of dense products: who shares them, and what they refuse. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/matmul_problem.h"

static const struct tn_host *best_host(void)
{
    return host_of(tn_kernels_pick(NULL), 0);
}

/* ---- life --------------------------------------------------------------- */

enum { CALLERS = 4 };

struct shared {
    const struct tn_matmul *plan;
    struct matmul_problem *p;
    float *results[CALLERS];
};

static void run_shared(void *arg, size_t i, size_t thread)
{
    struct shared *const shared = arg;

    (void)thread;
    matmul_problem_run(shared->plan, shared->p, shared->results[i]);
}

static void one_plan_serves_many_threads(void **state)
{
    struct tn_random random;
    struct matmul_problem p;
    struct tn_matmul *plan;

    (void)state;
    tn_random_seed(&random, 5);
    matmul_problem_init(
        &p,
        (struct tn_matmul_desc){
            .m = 200, .n = 190, .k = 180, .bias = true, .add = true, .activation = TN_GELU},
        &random);
    assert_int_equal(tn_matmul_create(&plan, &p.desc, best_host(), NULL), TARN_OK);
    struct shared shared = {plan, &p, {0}};

    for (size_t i = 0; i < CALLERS; i++)
        assert_non_null(shared.results[i] = malloc(p.c_floats * sizeof(float)));
    tn_parallel(CALLERS, CALLERS, run_shared, &shared);
    matmul_problem_run(plan, &p, p.c);
    matmul_problem_check(&p);
    for (size_t i = 0; i < CALLERS; i++) {
        assert_memory_equal(p.c, shared.results[i], p.c_floats * sizeof(float));
        free(shared.results[i]);
    }
    tn_matmul_free(plan);
    matmul_problem_clear(&p);
}

static void check_default(struct tn_matmul_desc desc, const char *backend)
{
    struct tn_matmul *plan;

    assert_int_equal(tn_matmul_create(&plan, &desc, best_host(), NULL), TARN_OK);
    assert_string_equal(tn_matmul_name(plan), backend);
    tn_matmul_free(plan);
}

static void the_best_backend_is_the_default(void **state)
{
    (void)state;
    check_default((struct tn_matmul_desc){.m = 9, .n = 9, .k = 9}, "packed");
    check_default((struct tn_matmul_desc){.m = 9, .n = 9, .k = 9, .elements = TN_BF16},
                  "packed");
    check_default((struct tn_matmul_desc){.m = 9, .n = 9, .k = 9, .packed = true}, "packed");
    tn_matmul_free(NULL);
}

static size_t packed_size(size_t m, enum tn_element elements)
{
    const struct tn_matmul_desc desc = {
        .m = m, .n = 50, .k = 70, .transpose_b = true, .elements = elements, .packed = true};
    struct tn_matmul *plan;

    assert_int_equal(tn_matmul_create(&plan, &desc, best_host(), NULL), TARN_OK);
    const size_t size = tn_matmul_packed_size(plan);

    tn_matmul_free(plan);
    return size;
}

/* Plans of the same elements can share one. */
static void packed_weights_do_not_depend_on_the_rows(void **state)
{
    static const size_t rows[] = {1, 16, 17, 40, 9000};

    (void)state;
    assert_true(packed_size(1, TN_F32) >= 50 * 70 * sizeof(float));
    assert_true(packed_size(1, TN_BF16) >= 50 * 70 * sizeof(uint16_t));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(packed_size(rows[i], TN_F32), packed_size(1, TN_F32));
        assert_int_equal(packed_size(rows[i], TN_BF16), packed_size(1, TN_BF16));
    }
}

/* ---- refusals ----------------------------------------------------------- */

static void bad_input_is_refused_with_a_sentence(void **state)
{
    static const struct {
        struct tn_matmul_desc desc;
        tarn_status status;
        const char *mentions;
    } cases[] = {
        {{.m = 0, .n = 2, .k = 3}, TARN_EINVAL, "m, n, k are 0, 2, 3"},
        {{.m = 1, .n = 0, .k = 3}, TARN_EINVAL, "at least 1"},
        {{.m = 1, .n = 2, .k = 0}, TARN_EINVAL, "at least 1"},
        {{.m = 4, .n = 5, .k = 6, .lda = 5}, TARN_EINVAL, "lda is 5"},
        {{.m = 4, .n = 5, .k = 6, .lda = 3, .transpose_a = true}, TARN_EINVAL, "lda is 3"},
        {{.m = 4, .n = 5, .k = 6, .ldb = 4}, TARN_EINVAL, "ldb is 4"},
        {{.m = 4, .n = 5, .k = 6, .ldb = 5, .transpose_b = true}, TARN_EINVAL, "ldb is 5"},
        {{.m = 4, .n = 5, .k = 6, .ldc = 4}, TARN_EINVAL, "ldc is 4"},
        {{.m = SIZE_MAX / 2, .n = 1, .k = 8}, TARN_EINVAL, "a: "},
        {{.m = 2, .n = SIZE_MAX / 8, .k = 1}, TARN_EINVAL, "do not fit"},
        {{.m = 2, .n = 2, .k = 2, .ldc = SIZE_MAX}, TARN_EINVAL, "c: "},
        {{.m = 2, .n = 2, .k = 2, .backend = "abacus"}, TARN_EUNKNOWN, "'abacus'"},
        {{.m = 2, .n = 2, .k = 2, .elements = TN_INT8}, TARN_EINVAL, "must be packed"},
        {{.m = 2, .n = 2, .k = 2, .elements = TN_BF16_INPUTS}, TARN_EINVAL, "must be packed"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tn_matmul *plan = (struct tn_matmul *)&plan;
        tarn_error err = {0};

        assert_int_equal(tn_matmul_create(&plan, &cases[i].desc, best_host(), &err),
                         cases[i].status);
        assert_null(plan);
        if (!strstr(err.text, cases[i].mentions))
            fail_msg("'%s' does not mention '%s'", err.text, cases[i].mentions);
    }
}

/* Each of which was refused by a backend that is better at others. */
static void a_plan_that_was_made_leaves_no_refusal(void **state)
{
    static const struct tn_matmul_desc descs[] = {
        {.m = 2, .n = 2, .k = 2},
        {.m = 40, .n = 30, .k = 20, .packed = true},
        {.m = 2, .n = 2, .k = 2, .elements = TN_BF16},
        {.m = 40, .n = 30, .k = 20, .elements = TN_BF16, .packed = true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof descs / sizeof descs[0]; i++) {
        struct tn_matmul *plan;
        tarn_error err = {.text = "untouched"};

        check_ok(tn_matmul_create(&plan, &descs[i], best_host(), &err), &err);
        assert_int_equal(err.status, TARN_OK);
        assert_string_equal(err.text, "untouched");
        tn_matmul_free(plan);
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
        struct tn_host host = *best_host();
        struct tn_matmul *plan;

        host.allocator = (tarn_allocator){grudging, grudging_release, &left};
        const tarn_status status = tn_matmul_create(
            &plan, &(struct tn_matmul_desc){.m = 8, .n = 8, .k = 8}, &host, NULL);

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
        cmocka_unit_test(one_plan_serves_many_threads),
        cmocka_unit_test(the_best_backend_is_the_default),
        cmocka_unit_test(packed_weights_do_not_depend_on_the_rows),
        cmocka_unit_test(bad_input_is_refused_with_a_sentence),
        cmocka_unit_test(a_plan_that_was_made_leaves_no_refusal),
        cmocka_unit_test(a_failing_allocator_is_reported),
        cmocka_unit_test(bf16_rounds_to_nearest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
