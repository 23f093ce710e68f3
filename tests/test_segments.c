/* SPDX-License-Identifier: MIT */
/* test_segments.c - linear attention on sequences that are cut into segments, and what forward
 * keeps of them for backward. Causal results are in test_linear.c. */
#include <stdlib.h>
#include <string.h>

#include "support/attention_case.h"

/* Few heads, whose segments threads share, and many; with sums that are kept and, where keys
 * are few, with none. */
static const struct {
    size_t B, H, N, Nk;
} sizes[] = {
    {1, 1, 70, 2600}, {1, 3, 1100, 90}, {1, 1, 3000, 3}, {1, 8, 100, 700},  {1, 8, 50, 1100},
    {3, 5, 600, 10},  {1, 7, 1, 1111},  {2, 9, 533, 33}, {1, 9, 300, 1600},
};

enum { SIZES = sizeof sizes / sizeof sizes[0] };

static struct attention_case sized(const struct variant *variant, bool causal, size_t i)
{
    struct attention_case is =
        case_of(variant, causal, sizes[i].B, sizes[i].H, sizes[i].N, 5, 9);

    is.desc.keys = causal ? sizes[i].N : sizes[i].Nk;
    return is;
}

static void segments_that_see_all_equal_the_definition(void **state)
{
    const struct variant linear = variant_of("linear", "elu");

    (void)state;
    for (size_t i = 0; i < SIZES; i++) {
        struct attention_case is = sized(&linear, false, i);
        const size_t Nk = is.desc.keys, lengths[] = {Nk / 3, tn_min(Nk, 528), 0};

        is.layout = (enum layout)(i % LAYOUTS);
        check_linear_equals_kernel(is);
        is.has_lengths = true;
        memcpy(is.lengths, lengths, sizeof lengths);
        check_linear_equals_kernel(is);
    }
}

typedef void check_case(const struct attention_case *is);

static void for_all(check_case *check)
{
    static const char *const kinds[] = {"linear", "linear:chunk=16", "linear:normalise=0"};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t i = 0; i < (size_t)2 * SIZES; i++) {
            const struct variant variant = variant_of(kinds[k], NULL);
            struct attention_case is = sized(&variant, i % 2, i / 2);

            is.layout = (enum layout)((k + i) % LAYOUTS);
            check(&is);
        }
}

static void check_unsaved(const struct attention_case *is)
{
    struct attention_run saving, bare;
    tarn_error err = {0};

    run_open(&saving, is);
    run_open(&bare, is);
    const tarn_attention_arrays arrays = run_arrays(&bare);

    run_forward(&saving);
    check_ok(tarn_attention_forward(bare.plan, &arrays, NULL, bare.work.bytes, &err), &err);
    check_same(&saving, &bare, false);
    run_close(&saving);
    run_close(&bare);
}

static void forward_without_saving_is_the_same(void **state)
{
    (void)state;
    for_all(check_unsaved);
}

/* Forward leaves nothing in the workspace, and backward changes nothing that was saved. */
static void check_again(const struct attention_case *is)
{
    struct attention_run once, again;

    run_open(&once, is);
    run_open(&again, is);
    run_forward(&once);
    run_backward(&once);
    run_forward(&again);
    memset(again.work.bytes, 0xff, again.work.size);
    run_backward(&again);
    run_backward(&again);
    check_same(&again, &once, true);
    assert_memory_equal(again.saved.bytes, once.saved.bytes, once.saved.size);
    run_close(&once);
    run_close(&again);
}

static void backward_needs_what_was_saved_alone_and_can_be_repeated(void **state)
{
    (void)state;
    for_all(check_again);
}

static void check_threads(const struct attention_case *is)
{
    struct attention_case one = *is, many = *is;
    struct attention_run a, b;

    one.desc.host.threads = 1;
    many.desc.host.threads = 3;
    run_open(&a, &one);
    run_open(&b, &many);
    run_forward(&a);
    run_forward(&b);
    run_backward(&a);
    run_backward(&b);
    check_same(&a, &b, true);
    run_close(&a);
    run_close(&b);
}

static void one_thread_equals_many(void **state)
{
    (void)state;
    for_all(check_threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_that_see_all_equal_the_definition),
        cmocka_unit_test(forward_without_saving_is_the_same),
        cmocka_unit_test(backward_needs_what_was_saved_alone_and_can_be_repeated),
        cmocka_unit_test(one_thread_equals_many),
    };

    return cmocka_run_group_tests_name("segments", tests, NULL, NULL);
}
