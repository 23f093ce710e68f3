/* SPDX-License-Identifier: MIT */
/* test_ctc_call.c - CTC as it is called: its gradient is the slope, bits do not depend on
 * threads, and what is beyond lengths or no number does no harm. test_ctc.c has the values. */
#include <math.h>
#include <string.h>

#include "support/ctc_case.h"
#include "support/kernel_list.h"

static double loss_at(void *arg)
{
    struct ctc_case *const c = arg;
    double sum = 0.0;

    ctc_run(c, NULL);
    for (size_t b = 0; b < c->ctc.B; b++)
        sum += isfinite(c->losses[b]) ? (double)c->dloss.at[b] * c->losses[b] : 0.0;
    return sum;
}

static void the_gradient_is_the_slope(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 485);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct ctc_case c = ctc_open((struct tn_ctc){kernels, 2, 5, 40, 9}, 40, 2.0, &random);

        ctc_draw(&c, 20, &random);
        ctc_run(&c, c.dx.at);
        check_slope("ctc", loss_at, &c, c.x.at, c.dx.at, c.x.n, 1e-3, &random);
        ctc_close(&c);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < AWKWARD_THREADS; i++) {
        struct tn_ctc ctc = {tn_kernels_pick(forced_cpu()), 1, 6, 120, 31};
        struct tn_random random;

        tn_random_seed(&random, 486);
        struct ctc_case one = ctc_open(ctc, 40, 3.0, &random);

        ctc_draw(&one, 40, &random);
        ctc.threads = awkward_threads[i];
        tn_random_seed(&random, 486);
        struct ctc_case many = ctc_open(ctc, 40, 3.0, &random);

        ctc_draw(&many, 40, &random);
        ctc_run(&one, one.dx.at);
        ctc_run(&many, many.dx.at);
        assert_memory_equal(one.losses, many.losses, ctc.B * sizeof *one.losses);
        check_bits("dx", one.dx.at, many.dx.at, one.dx.n);
        ctc_close(&one);
        ctc_close(&many);
    }
}

/* What is beyond lengths may be no numbers, and so may be all of a sequence that is left
 * out. */
static void frames_beyond_lengths_are_not_looked_at(void **state)
{
    struct tn_random random;
    const struct tn_ctc ctc = {tn_kernels_pick(forced_cpu()), 2, 6, 50, 7};

    (void)state;
    tn_random_seed(&random, 487);
    struct ctc_case c = ctc_open(ctc, 20, 2.0, &random);
    double was[6];

    ctc_draw(&c, 20, &random);
    c.dloss.at[3] = 0.0f;
    ctc_run(&c, c.dx.at);
    memcpy(was, c.losses, sizeof was);
    for (size_t b = 0; b < ctc.B; b++)
        for (size_t i = (b == 3 ? 0 : c.frames[b]) * ctc.S; i < ctc.N * ctc.S; i++) {
            c.x.at[b * ctc.N * ctc.S + i] = NAN;
            assert_true(c.dx.at[b * ctc.N * ctc.S + i] == 0.0f);
        }
    ctc_run(&c, c.x.at); /* in place */
    assert_memory_equal(was, c.losses, sizeof was);
    check_bits("dx", c.x.at, c.dx.at, c.x.n);
    assert_true(was[3] == 0.0);
    ctc_close(&c);
}

static void what_is_no_number_is_no_loss(void **state)
{
    const float strange[] = {NAN, INFINITY};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 488);
    for (size_t i = 0; i < 2; i++) {
        const struct tn_ctc ctc = {tn_kernels_pick(forced_cpu()), 1, 1, 9, 5};
        struct ctc_case c = ctc_open(ctc, 3, 2.0, &random);

        c.counts[0] = 2;
        c.labels[0] = c.labels[1] = 3;
        c.x.at[21] = strange[i];
        ctc_run(&c, c.dx.at);
        assert_true(isnan(c.losses[0]));
        for (size_t j = 0; j < c.dx.n; j++)
            assert_true(c.dx.at[j] == 0.0f);
        ctc_close(&c);
    }
}

/* -infinity is a probability of 0: here every path has one. */
static void outputs_may_rule_out_every_path(void **state)
{
    struct tn_random random;
    const struct tn_ctc ctc = {tn_kernels_pick(forced_cpu()), 1, 1, 6, 4};

    (void)state;
    tn_random_seed(&random, 489);
    struct ctc_case c = ctc_open(ctc, 3, 2.0, &random);

    c.counts[0] = 1;
    c.labels[0] = 3;
    for (size_t t = 0; t < ctc.N; t++)
        c.x.at[t * ctc.S + 3] = -INFINITY;
    ctc_run(&c, c.dx.at);
    assert_true(c.losses[0] == (double)INFINITY);
    for (size_t j = 0; j < c.dx.n; j++)
        assert_true(c.dx.at[j] == 0.0f);
    ctc_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_gradient_is_the_slope),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(frames_beyond_lengths_are_not_looked_at),
        cmocka_unit_test(what_is_no_number_is_no_loss),
        cmocka_unit_test(outputs_may_rule_out_every_path),
    };

    return cmocka_run_group_tests_name("ctc call", tests, NULL, NULL);
}
