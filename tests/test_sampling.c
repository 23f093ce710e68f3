/* SPDX-License-Identifier: MIT */
/* test_sampling.c - which symbols can be drawn, and how often, against a sort and a sum. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate/sampling.h"
#include "support/frequencies.h"

static const struct tn_sampling plain = {.temperature = 1.0, .top_p = 1.0};

/* ---- the definition ----------------------------------------------------- */

struct ranked {
    double x;
    size_t i;
};

static int by_falling_x_then_rising_i(const void *a, const void *b)
{
    const struct ranked *const p = a, *const q = b;

    if (p->x != q->x)
        return p->x < q->x ? 1 : -1;
    return p->i < q->i ? -1 : 1;
}

/* The probability of each symbol; logits are finite. */
static void define(double *p, const struct tn_sampling *s, const float *logits, size_t n)
{
    struct ranked *const rank = take(n, sizeof *rank);
    const size_t most = s->top_k > 0 && s->top_k < n ? s->top_k : n;
    double total = 0.0, kept = 0.0;
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        rank[i] = (struct ranked){(double)logits[i], i};
    qsort(rank, n, sizeof *rank, by_falling_x_then_rising_i);
    for (size_t j = 0; j < most; j++)
        total += exp((rank[j].x - rank[0].x) / s->temperature);
    while (count < most && (s->top_p == 1.0 || kept < s->top_p * total))
        kept += exp((rank[count++].x - rank[0].x) / s->temperature);
    for (size_t j = 0; j < n; j++)
        p[rank[j].i] = j < count ? exp((rank[j].x - rank[0].x) / s->temperature) / kept : 0.0;
    free(rank);
}

static void draw(size_t *counts, const struct tn_sampling *s, const float *logits, size_t n,
                 size_t draws, uint64_t seed)
{
    uint64_t *const scratch = take(n, sizeof *scratch);
    struct tn_random random;

    tn_random_seed(&random, seed);
    memset(counts, 0, n * sizeof *counts);
    for (size_t d = 0; d < draws; d++) {
        const int32_t symbol = tn_sample(s, logits, n, scratch, &random);

        assert_in_range(symbol, 0, n - 1);
        counts[symbol]++;
    }
    free(scratch);
}

static void check_case(const struct tn_sampling *s, const float *logits, size_t n, size_t draws,
                       uint64_t seed)
{
    double *const p = take(n, sizeof *p);
    size_t *const counts = take(n, sizeof *counts);
    tarn_error err = {0};

    check_ok(tn_sampling_check(s, &err), &err);
    define(p, s, logits, n);
    draw(counts, s, logits, n, draws, seed);
    check_counts(counts, p, n, draws);
    free(p);
    free(counts);
}

/* ---- frequencies -------------------------------------------------------- */

static void frequencies_are_the_probabilities(void **state)
{
    static const double temperatures[] = {0.3, 1.0, 2.5}, shares[] = {1.0, 0.95, 0.6, 0.1};
    static const size_t tops[] = {0, 1, 3, 7, 40, 1000};
    struct tn_random random;
    float logits[40];

    (void)state;
    tn_random_seed(&random, 9);
    for (size_t i = 0; i < 40; i++)
        logits[i] = (float)(2.0 * tn_random_normal(&random));
    for (size_t t = 0; t < 3; t++)
        for (size_t k = 0; k < 6; k++)
            for (size_t p = 0; p < 4; p++) {
                const struct tn_sampling s = {temperatures[t], tops[k], shares[p], false};

                check_case(&s, logits, 40, 20000, 100 * t + 10 * k + p);
            }
}

static void frequencies_are_the_probabilities_of_many_symbols(void **state)
{
    enum { MANY = 3001 };
    float *const logits = take(MANY, sizeof *logits);
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 10);
    for (size_t i = 0; i < MANY; i++)
        logits[i] = (float)(3.0 * tn_random_normal(&random));
    check_case(&plain, logits, MANY, 10000, 1);
    check_case(&(struct tn_sampling){0.8, 0, 0.9, false}, logits, MANY, 3000, 2);
    check_case(&(struct tn_sampling){0.8, 50, 1.0, false}, logits, MANY, 3000, 3);
    check_case(&(struct tn_sampling){0.8, 50, 0.9, false}, logits, MANY, 3000, 4);
    free(logits);
}

/* ---- sets --------------------------------------------------------------- */

/* Which symbols come up in many draws, as bits. */
static unsigned drawn(const struct tn_sampling *s, const float *logits, size_t n)
{
    size_t counts[32];
    unsigned bits = 0;

    draw(counts, s, logits, n, 3000, 77);
    for (size_t i = 0; i < n; i++)
        bits |= (counts[i] > 0 ? 1u : 0u) << i;
    return bits;
}

static struct tn_sampling top_k(size_t k)
{
    return (struct tn_sampling){1.0, k, 1.0, false};
}

static struct tn_sampling top_p(double p)
{
    return (struct tn_sampling){1.0, 0, p, false};
}

static void of_equal_logits_the_first_stay(void **state)
{
    static const float equal[8] = {2, 2, 2, 2, 2, 2, 2, 2}, mixed[5] = {1, 2, 1, 2, 1};
    static const float zeros[4] = {-0.0f, 0.0f, -0.0f, 0.0f};

    (void)state;
    for (size_t k = 1; k <= 8; k++) {
        const struct tn_sampling s = top_k(k), same = top_p((double)k / 8.0);

        assert_int_equal(drawn(&s, equal, 8), (1u << k) - 1u);
        assert_int_equal(drawn(&same, equal, 8), (1u << k) - 1u);
    }
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 3, 1.0, false}, mixed, 5), 0x0b);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 1, 1.0, false}, zeros, 4), 0x01);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 3, 1.0, false}, zeros, 4), 0x07);
}

/* Shares 1/2, 1/4, 1/8, 1/8: p is reached, not passed. */
static void top_p_keeps_the_fewest_that_reach_it(void **state)
{
    const float logits[4] = {logf(0.125f), logf(0.5f), logf(0.125f), logf(0.25f)};

    (void)state;
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 1e-300, false}, logits, 4), 0x02);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 0.49, false}, logits, 4), 0x02);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 0.51, false}, logits, 4), 0x0a);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 0.74, false}, logits, 4), 0x0a);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 0.76, false}, logits, 4), 0x0b);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 0.88, false}, logits, 4), 0x0f);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 0, 1.0, false}, logits, 4), 0x0f);
}

/* Of 1/2 and 1/4, which top-k leaves, 1/2 is two thirds. And a temperature comes before top-p:
 * at 1/2 the shares are as 16 : 4 : 1 : 1. */
static void temperature_then_top_k_then_top_p(void **state)
{
    const float logits[4] = {logf(0.125f), logf(0.5f), logf(0.125f), logf(0.25f)};

    (void)state;
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 2, 0.6, false}, logits, 4), 0x02);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 2, 0.7, false}, logits, 4), 0x0a);
    assert_int_equal(drawn(&(struct tn_sampling){0.5, 0, 0.7, false}, logits, 4), 0x02);
    assert_int_equal(drawn(&(struct tn_sampling){0.5, 0, 0.75, false}, logits, 4), 0x0a);
}

/* ---- greedy ------------------------------------------------------------- */

static void no_temperature_is_greedy(void **state)
{
    static const float logits[6] = {1.0f, 3.0f, 2.0f, 3.0f, NAN, -INFINITY};
    static const struct tn_sampling cold = {0.0, 0, 1.0, false}, greedy = {9.0, 4, 0.5, true};

    (void)state;
    assert_int_equal(tn_sample(&cold, logits, 6, NULL, NULL), 1);
    assert_int_equal(tn_sample(&greedy, logits, 6, NULL, NULL), 1);
    assert_int_equal(drawn(&(struct tn_sampling){1e-300, 0, 1.0, false}, logits, 3), 0x02);
    assert_int_equal(drawn(&(struct tn_sampling){1e-300, 0, 1.0, false}, logits, 6), 0x0a);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 1, 1.0, false}, logits, 6), 0x02);
}

/* ---- logits of any kind ------------------------------------------------- */

static const struct tn_sampling all_kinds[] = {
    {1.0, 0, 1.0, false},    {0.7, 2, 1.0, false},    {0.7, 0, 0.9, false},
    {1.3, 3, 0.5, false},    {1e-300, 9, 1.0, false}, {1e300, 0, 1.0, false},
    {1e300, 4, 0.99, false}, {0.0, 0, 1.0, false},    {1.0, 0, 1e-300, false},
};
enum { KINDS = sizeof all_kinds / sizeof all_kinds[0] };

static void minus_infinity_and_nan_are_never_drawn(void **state)
{
    static const float logits[6] = {-INFINITY, 1.0f, NAN, 1.5f, -INFINITY, NAN};

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        assert_int_equal(drawn(&all_kinds[k], logits, 6) & ~0x0au, 0);
    assert_int_equal(drawn(&plain, logits, 6), 0x0a);
    assert_int_equal(drawn(&(struct tn_sampling){1.0, 5, 1.0, false}, logits, 6), 0x0a);
}

static void plus_infinity_is_all_there_is(void **state)
{
    static const float logits[4] = {3e38f, INFINITY, 0.0f, INFINITY};

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        assert_int_equal(drawn(&all_kinds[k], logits, 4) & ~0x0au, 0);
    assert_int_equal(drawn(&plain, logits, 4), 0x0a);
}

static void without_any_number_it_is_the_first_symbol(void **state)
{
    static const float nan[3] = {NAN, NAN, NAN}, none[3] = {-INFINITY, -INFINITY, -INFINITY};

    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        assert_int_equal(drawn(&all_kinds[k], nan, 3), 0x01);
        assert_int_equal(drawn(&all_kinds[k], none, 3), 0x01);
    }
}

static void one_symbol_is_drawn_always(void **state)
{
    static const float logits[] = {0.0f, -1e30f, 3e38f, NAN, INFINITY};

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < 5; i++)
            assert_int_equal(drawn(&all_kinds[k], &logits[i], 1), 0x01);
}

static void huge_logits_keep_their_order(void **state)
{
    static const float logits[4] = {-3e38f, 3e38f, 2.9e38f, 3e38f};
    const float apart[2] = {1e4f, 1e4f + logf(3.0f)};

    (void)state;
    assert_int_equal(drawn(&plain, logits, 4), 0x0a);
    check_case(&plain, apart, 2, 20000, 5);
}

/* Any bits at all: a symbol, and only such as the definition allows. */
static void any_bits_give_a_symbol(void **state)
{
    struct tn_random random;
    uint64_t scratch[24];
    float logits[24];

    (void)state;
    tn_random_seed(&random, 12);
    for (size_t trial = 0; trial < 20000; trial++) {
        const size_t n = 1 + below(&random, 24);

        for (size_t i = 0; i < n; i++) {
            const uint32_t bits = (uint32_t)tn_random_bits(&random);

            memcpy(&logits[i], &bits, sizeof bits);
        }
        assert_in_range(
            tn_sample(&all_kinds[below(&random, KINDS)], logits, n, scratch, &random), 0,
            n - 1);
    }
}

/* ---- the rest ----------------------------------------------------------- */

/* So that what follows does not depend on what the logits were. */
static void every_draw_takes_one_number(void **state)
{
    static const float logits[3][3] = {{1, 2, 3}, {NAN, NAN, NAN}, {-INFINITY, 5, NAN}};
    uint64_t scratch[3];

    (void)state;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; i < 3; i++) {
            struct tn_random random, other;

            tn_random_seed(&random, 3);
            tn_random_seed(&other, 3);
            tn_sample(&all_kinds[k], logits[i], 3, scratch, &random);
            if (all_kinds[k].temperature > 0.0)
                tn_random_uniform(&other);
            assert_memory_equal(&random, &other, sizeof random);
        }
}

static void settings_that_cannot_be_used_are_refused(void **state)
{
    static const struct tn_sampling wrong[] = {
        {-1.0, 0, 1.0, false},
        {(double)NAN, 0, 1.0, false},
        {(double)INFINITY, 0, 1.0, false},
        {1.0, 0, 0.0, false},
        {1.0, 0, -0.5, false},
        {1.0, 0, 1.01, false},
        {1.0, 0, (double)NAN, false},
    };
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(tn_sampling_check(&wrong[i], &err), TARN_EINVAL);
    tn_sampling_check(&wrong[0], &err);
    assert_string_equal(err.text, "temperature is -1; it must be a finite number from 0");
    tn_sampling_check(&wrong[5], &err);
    assert_string_equal(err.text, "top_p is 1.01; it must be above 0 and at most 1");
    for (size_t k = 0; k < KINDS; k++)
        check_ok(tn_sampling_check(&all_kinds[k], &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frequencies_are_the_probabilities),
        cmocka_unit_test(frequencies_are_the_probabilities_of_many_symbols),
        cmocka_unit_test(of_equal_logits_the_first_stay),
        cmocka_unit_test(top_p_keeps_the_fewest_that_reach_it),
        cmocka_unit_test(temperature_then_top_k_then_top_p),
        cmocka_unit_test(no_temperature_is_greedy),
        cmocka_unit_test(minus_infinity_and_nan_are_never_drawn),
        cmocka_unit_test(plus_infinity_is_all_there_is),
        cmocka_unit_test(without_any_number_it_is_the_first_symbol),
        cmocka_unit_test(one_symbol_is_drawn_always),
        cmocka_unit_test(huge_logits_keep_their_order),
        cmocka_unit_test(any_bits_give_a_symbol),
        cmocka_unit_test(every_draw_takes_one_number),
        cmocka_unit_test(settings_that_cannot_be_used_are_refused),
    };

    return cmocka_run_group_tests_name("sampling", tests, NULL, NULL);
}
