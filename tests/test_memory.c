/* SPDX-License-Identifier: MIT */
/* test_memory.c - what plans allocate, and what calls need besides the caller's arrays. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"
#include "support/ledger.h"

/* Whether a plan could be made; nothing stays allocated either way. */
static bool survives(const struct attention_case *is, size_t allowed)
{
    struct ledger ledger = {.allowed = allowed};
    tarn_allocator allocator = ledger_allocator(&ledger);
    tarn_attention_desc desc = is->desc;
    tarn_attention *plan = NULL;
    tarn_error err = {0};

    desc.host.allocator = &allocator;
    const tarn_status status = tarn_attention_create(&plan, &desc, &err);

    memset(&allocator, 0xff, sizeof allocator); /* the plan has a copy */
    if (status == TARN_OK) {
        assert_non_null(plan);
        assert_true(ledger.out > 0);
        tarn_attention_free(plan);
    } else {
        assert_null(plan);
        assert_int_equal(status, TARN_ENOMEM);
        assert_int_equal(err.status, TARN_ENOMEM);
        assert_non_null(strstr(err.text, "memory"));
    }
    assert_int_equal(ledger.out, 0);
    return status == TARN_OK;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    const struct variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        const struct attention_case is = case_of(variant, true, 2, 3, 10, 5, 4);
        size_t n = 0;

        while (!survives(&is, n))
            assert_true(++n < 10);
        assert_true(n > 0);
    }
}

/* A refusal asks for nothing or gives it back. */
static void refused_plans_leak_nothing(void **state)
{
    static const char *const kinds[] = {"linear:eps=2", "lsh:buckets=3", "nonsense",
                                        "softmax:x=1"};

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct ledger ledger = {.allowed = SIZE_MAX};
        const tarn_allocator allocator = ledger_allocator(&ledger);
        const tarn_attention_desc desc = {.kind = kinds[i],
                                          .batch = 1,
                                          .heads = 1,
                                          .queries = 2,
                                          .keys = 2,
                                          .query_width = 2,
                                          .value_width = 2,
                                          .host.allocator = &allocator};
        tarn_attention *plan = NULL;

        assert_int_not_equal(tarn_attention_create(&plan, &desc, NULL), TARN_OK);
        assert_int_equal(ledger.out, 0);
    }
}

/* ---- what calls need ---------------------------------------------------- */

struct needs {
    double saved, work;
};

static struct needs needs_of(const char *kind, bool causal, size_t B, size_t H, size_t N,
                             size_t width, size_t threads)
{
    const struct variant variant = variant_of(kind, NULL);
    struct attention_case is = case_of(&variant, causal, B, H, N, width, width);
    tarn_attention *plan = NULL;

    is.desc.host.threads = threads;
    assert_int_equal(tarn_attention_create(&plan, &is.desc, NULL), TARN_OK);
    const struct needs needs = {(double)tarn_attention_saved_size(plan),
                                (double)tarn_attention_workspace_size(plan)};

    tarn_attention_free(plan);
    return needs;
}

static double total(struct needs needs)
{
    return needs.saved + needs.work;
}

/* What is left of linear attention's memory without two floats per position and head, or one
 * where it is not causal. */
static double rest(bool causal, size_t B, size_t H, size_t N, size_t threads)
{
    return total(needs_of("linear", causal, B, H, N, 32, threads)) -
           (causal ? 8.0 : 4.0) * (double)B * (double)H * (double)N;
}

/* A sequence's last segment is shorter than the others, or is not there: sums of 33 x 32 floats
 * for each head come and go with it. */
static void linear_needs_two_floats_per_position_and_sums(void **state)
{
    static const size_t heads[] = {1, 3, 8, 16};

    (void)state;
    for (size_t causal = 0; causal < 2; causal++)
        for (size_t h = 0; h < 4; h++)
            for (size_t threads = 1; threads <= 4; threads *= 2) {
                const double last = 4.0 * 33.0 * 32.0 * (double)heads[h];
                const double packed = causal ? 6.0 * 1024 * 1024 : 0.0;

                /* 32 parts' sums at most, or tiles of each thread; causal also its packed
                 * rows. */
                for (size_t N = 1; N <= (size_t)1 << 22; N *= 2)
                    assert_true(rest(causal, 1, heads[h], N, threads) <=
                                (double)(threads + 32) * 64 * 1024 + (double)threads * packed +
                                    last);
            }
}

/* Floats that are kept of each position and head: the inverse of its denominator and sums, of
 * which heads have up to a 32nd of their rows of q, k, v and y, but causal ones of width 32 and
 * less one float. */
static double kept_floats(bool causal, size_t width)
{
    return 1.0 + fmax(1.0, !causal || width > 32 ? (double)(4 * width) / 32.0 : 0.0);
}

/* Nothing grows with the number of sequences but what is kept of each position, whatever the
 * widths: sums are kept only where a sequence is long enough to pay for them. */
static void linear_keeps_no_sums_that_positions_do_not_pay_for(void **state)
{
    static const size_t widths[] = {1, 8, 32, 100, 256};

    (void)state;
    for (size_t causal = 0; causal < 2; causal++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++)
            for (size_t N = 1; N <= 100000; N = 3 * N + 1) {
                const double few = total(needs_of("linear", causal, 2, 8, N, widths[w], 2));
                const double many = total(needs_of("linear", causal, 102, 8, N, widths[w], 2));
                const double each = 4.0 * kept_floats(causal, widths[w]);

                assert_true(many - few <= each * 800.0 * (double)N);
            }
}

static void check_linear_in_length(const char *kind, size_t heads)
{
    for (size_t causal = 0; causal < 2; causal++)
        for (size_t N = 4096; N <= 65536; N *= 2) {
            const double once = total(needs_of(kind, causal, 1, heads, N, 32, 2));
            const double twice = total(needs_of(kind, causal, 1, heads, 2 * N, 32, 2));

            assert_true(twice <= 2.1 * once);
        }
}

static void softmax_and_lsh_need_memory_linear_in_the_length(void **state)
{
    (void)state;
    for (size_t heads = 1; heads <= 16; heads *= 4) {
        check_linear_in_length("softmax", heads);
        check_linear_in_length("lsh", heads);
        check_linear_in_length("kernel", heads);
    }
}

static void stored_softmax_needs_the_whole_matrix(void **state)
{
    (void)state;
    for (size_t N = 4096; N <= 16384; N *= 2) {
        const double matrix = 4.0 * (double)N * (double)N;
        const struct needs once = needs_of("softmax:store=1", false, 1, 1, N, 32, 2);
        const struct needs twice = needs_of("softmax:store=1", false, 1, 1, 2 * N, 32, 2);

        assert_true(once.saved >= matrix && once.saved <= 1.1 * matrix);
        assert_true(twice.saved >= 3.8 * once.saved);
        assert_true(needs_of("softmax", false, 1, 1, N, 32, 2).saved <=
                    4.0 * (double)N + 4096.0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
        cmocka_unit_test(refused_plans_leak_nothing),
        cmocka_unit_test(linear_needs_two_floats_per_position_and_sums),
        cmocka_unit_test(linear_keeps_no_sums_that_positions_do_not_pay_for),
        cmocka_unit_test(softmax_and_lsh_need_memory_linear_in_the_length),
        cmocka_unit_test(stored_softmax_needs_the_whole_matrix),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
