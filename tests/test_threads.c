/* SPDX-License-Identifier: MIT */
/* test_threads.c - results are the same bits for any number of threads. */
#include "support/attention_case.h"

static const size_t many[] = {2, 3, 7};

static void check_threads(struct attention_case is)
{
    struct attention_run one;

    is.desc.host.threads = 1;
    run_open(&one, &is);
    run_forward(&one);
    run_backward(&one);
    for (size_t t = 0; t < sizeof many / sizeof many[0]; t++) {
        struct attention_run run;

        is.desc.host.threads = many[t];
        run_open(&run, &is);
        run_forward(&run);
        run_backward(&run);
        check_same(&run, &one, true);
        run_close(&run);
    }
    run_close(&one);
}

static void one_thread_equals_many(void **state)
{
    const struct variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 701);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++)
        for (size_t trial = 0; trial < 4; trial++)
            check_threads(case_draw(variant, trial % 2, 5e5, &random));
}

/* Split into segments, blocks, or chunks. */
static void one_thread_equals_many_on_one_long_head(void **state)
{
    static const char *const kinds[] = {"linear", "linear:chunk=16", "softmax", "lsh"};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct variant variant = variant_of(kinds[k], NULL);

            check_threads(case_of(&variant, causal, 1, 1, 3000, 8, 12));
        }
}

/* Tasks of a head, or of a sequence. */
static void one_thread_equals_many_on_many_heads(void **state)
{
    static const char *const kinds[] = {"linear", "linear:chunk=16", "softmax", "lsh",
                                        "kernel"};

    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t causal = 0; causal < 2; causal++) {
            const struct variant variant = variant_of(kinds[k], NULL);

            check_threads(case_of(&variant, causal, 2, 19, 50, 16, 17));
        }
}

static void check_step_threads(struct attention_case is)
{
    const size_t N = is.desc.queries;
    struct attention_run one;

    is.desc.host.threads = 1;
    run_open(&one, &is);
    for (size_t n = 0; n < N; n++)
        run_step(&one, n);
    for (size_t t = 0; t < sizeof many / sizeof many[0]; t++) {
        struct attention_run run;

        is.desc.host.threads = many[t];
        run_open(&run, &is);
        for (size_t n = 0; n < N; n++)
            run_step(&run, n);
        check_same(&run, &one, false);
        run_close(&run);
    }
    run_close(&one);
}

/* States large enough that threads are woken for them. */
static void one_thread_equals_many_step_by_step(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        if (!variant->has_step)
            continue;
        check_step_threads(case_of(variant, true, 2, 3, 20, 8, 5));
        check_step_threads(case_of(variant, true, 8, 11, 4, 32, 100));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(one_thread_equals_many_on_one_long_head),
        cmocka_unit_test(one_thread_equals_many_on_many_heads),
        cmocka_unit_test(one_thread_equals_many_step_by_step),
    };

    return cmocka_run_group_tests_name("threads", tests, NULL, NULL);
}
