/* SPDX-License-Identifier: MIT */
/* test_flops.c - what speeds are counted in. */
#include "support/attention_case.h"

struct flops {
    double forward, backward;
};

static struct flops flops_of(const struct attention_case *is)
{
    tarn_attention *plan = NULL;
    tarn_error err = {0};

    check_ok(tarn_attention_create(&plan, &is->desc, &err), &err);
    const struct flops flops = {tarn_attention_forward_flops(plan),
                                tarn_attention_backward_flops(plan)};

    tarn_attention_free(plan);
    return flops;
}

/* S and its use, then S again, the sum over queries, dq, dk and dv: 14 D M causal, 12 D M where
 * S is not needed again. */
static void linear_counts_multiply_adds_per_position(void **state)
{
    const struct variant linear = variant_of("linear", "elu");
    const struct attention_case causal = case_of(&linear, true, 2, 3, 100, 8, 5);
    const struct attention_case all = case_of(&linear, false, 2, 3, 100, 8, 5);
    const double each = 2.0 * 3.0 * 100.0 * 8.0 * 5.0;

    (void)state;
    assert_true(flops_of(&causal).forward == 4.0 * each);
    assert_true(flops_of(&causal).backward == 10.0 * each);
    assert_true(flops_of(&all).forward == 4.0 * each);
    assert_true(flops_of(&all).backward == 8.0 * each);
}

static void features_count_and_not_the_query_width(void **state)
{
    const struct variant linear = variant_of("linear", "positive:features=24");
    const struct attention_case is = case_of(&linear, true, 1, 1, 10, 8, 5);

    (void)state;
    assert_true(flops_of(&is).forward == 4.0 * 10.0 * 24.0 * 5.0);
}

/* s and y, then dp, dv, dq and dk, for every pair that is seen. */
static void softmax_counts_pairs_that_are_seen(void **state)
{
    const struct variant softmax = variant_of("softmax", NULL);
    const struct attention_case causal = case_of(&softmax, true, 2, 3, 100, 8, 5);
    struct attention_case all = case_of(&softmax, false, 2, 3, 100, 8, 5);
    const double pair = 2.0 * 3.0 * 2.0 * (8.0 + 5.0);

    (void)state;
    all.desc.keys = 70;
    assert_true(flops_of(&causal).forward == 5050.0 * pair);
    assert_true(flops_of(&causal).backward == 2.0 * 5050.0 * pair);
    assert_true(flops_of(&all).forward == 7000.0 * pair);
    assert_true(flops_of(&all).backward == 2.0 * 7000.0 * pair);
}

static void kinds_without_an_agreed_count_say_zero(void **state)
{
    static const char *const kinds[] = {"lsh", "kernel"};

    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const struct variant variant = variant_of(kinds[k], NULL);
        const struct attention_case is = case_of(&variant, true, 1, 1, 10, 8, 5);

        assert_true(flops_of(&is).forward == 0.0 && flops_of(&is).backward == 0.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_counts_multiply_adds_per_position),
        cmocka_unit_test(features_count_and_not_the_query_width),
        cmocka_unit_test(softmax_counts_pairs_that_are_seen),
        cmocka_unit_test(kinds_without_an_agreed_count_say_zero),
    };

    return cmocka_run_group_tests_name("flops", tests, NULL, NULL);
}
