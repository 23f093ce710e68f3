/* SPDX-License-Identifier: MIT */
/* test_dropout.c - that what is dropped depends on seed and index alone, and looks random. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/dropout.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

static struct tn_rows rows_of(size_t rows, size_t width, size_t threads)
{
    return (struct tn_rows){tn_kernels_pick(forced_cpu()), threads, rows, width};
}

/* ---- what it computes --------------------------------------------------- */

static void every_instruction_set_and_split_gives_the_same_bits(void **state)
{
    enum { N = 1031 };
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 421);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        /* The index passes 2^32 on the way. */
        struct tn_dropout dropout = {0.3f, 77, (UINT64_C(1) << 32) - 500};
        const struct tn_rows portable = {tn_kernels_pick("portable"), 1, N, 1};
        struct floats x = floats_open(N, 1.0, &random), residual = floats_open(N, 1.0, &random);
        struct floats want = floats_open(N, 1.0, &random), y = floats_open(N, 1.0, &random);

        for (int with = 0; with < 2; with++) {
            const float *const plus = with ? residual.at : NULL;

            dropout.first = (UINT64_C(1) << 32) - 500;
            tn_dropout_run(&portable, &dropout, want.at, x.at, plus);
            tn_dropout_run(&(struct tn_rows){kernels, 3, 1, N}, &dropout, y.at, x.at, plus);
            check_bits("dropout", want.at, y.at, N);
            for (size_t from = 0, n; from < N; from += n) {
                n = tn_min(1 + below(&random, 90), N - from);
                dropout.first = (UINT64_C(1) << 32) - 500 + from;
                tn_dropout_run(&(struct tn_rows){kernels, 1, 1, n}, &dropout, y.at + from,
                               x.at + from, plus ? plus + from : NULL);
            }
            check_bits("dropout in parts", want.at, y.at, N);
        }
        floats_close(&x);
        floats_close(&residual);
        floats_close(&want);
        floats_close(&y);
    }
}

static void elements_are_zeroed_or_scaled(void **state)
{
    enum { N = 4001 };
    const struct tn_rows r = rows_of(N, 1, 2), many = rows_of(N, 1, 7);
    const struct tn_dropout dropout = {0.25f, 5, 0};
    struct tn_random random;
    size_t zeroed = 0;

    (void)state;
    tn_random_seed(&random, 422);
    struct floats x = floats_open(N, 1.0, &random), y = floats_open(N, 1.0, &random);
    struct floats residual = floats_open(N, 1.0, &random), sum = floats_open(N, 1.0, &random);

    x.at[3] = NAN;
    tn_dropout_run(&r, &dropout, y.at, x.at, NULL);
    tn_dropout_run(&many, &dropout, sum.at, x.at, residual.at);
    for (size_t i = 0; i < N; i++) {
        zeroed += y.at[i] == 0.0f;
        assert_true(y.at[i] == 0.0f || i == 3 || y.at[i] == x.at[i] * (1.0f / 0.75f));
        assert_true(i == 3 || sum.at[i] == residual.at[i] + y.at[i]);
    }
    assert_in_range(zeroed, N / 5, N / 3);
    tn_dropout_run(&r, &dropout, residual.at, x.at, residual.at); /* in place */
    x.at[3] = sum.at[3] = residual.at[3] = 0.0f;
    check_bits("over the residual", residual.at, sum.at, N);
    y.at[3] = 0.0f;
    tn_dropout_run(&r, &dropout, x.at, x.at, NULL);
    check_bits("over x", x.at, y.at, N);
    floats_close(&x);
    floats_close(&y);
    floats_close(&residual);
    floats_close(&sum);
}

static void a_rate_of_zero_keeps_everything(void **state)
{
    enum { N = 1000 };
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 423);
    struct floats x = floats_open(N, 1.0, &random), y = floats_open(N, 1.0, &random);
    const struct tn_rows r = rows_of(10, 100, 2);

    tn_dropout_run(&r, &(struct tn_dropout){0.0f, 9, 0}, y.at, x.at, NULL);
    check_bits("y", x.at, y.at, N);
    floats_close(&x);
    floats_close(&y);
}

/* ---- statistics: five standard deviations ------------------------------- */

enum { DRAWS = 1 << 18 };

/* kept[i]: 1 or 0. */
static void draw(float *kept, struct tn_dropout dropout)
{
    const struct tn_rows r = rows_of(DRAWS / 256, 256, 2);

    for (size_t i = 0; i < DRAWS; i++)
        kept[i] = 1.0f;
    tn_dropout_run(&r, &dropout, kept, kept, NULL);
    for (size_t i = 0; i < DRAWS; i++)
        kept[i] = kept[i] != 0.0f;
}

static void check_rate(const float *kept, size_t n, double p)
{
    double rate = 0.0;

    for (size_t i = 0; i < n; i++)
        rate += 1.0 - (double)kept[i];
    rate /= (double)n;
    if (fabs(rate - p) > 5.0 * sqrt(p * (1.0 - p) / (double)n))
        fail_msg("a rate of %.6f, not %.6f, over %zu", rate, p, n);
}

/* The correlation of a[i] and b[i] over n pairs has a standard deviation of 1 / sqrt(n). */
static void check_independent(const char *what, const float *a, const float *b, size_t n,
                              double p)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += ((double)a[i] - (1.0 - p)) * ((double)b[i] - (1.0 - p));
    sum /= p * (1.0 - p) * (double)n;
    if (fabs(sum) > 5.0 / sqrt((double)n))
        fail_msg("%s: a correlation of %.5f over %zu", what, sum, n);
}

static void rates_and_neighbours_are_random(void **state)
{
    static const double rates[] = {0.1, 0.2, 0.5, 0.9};
    static const size_t lags[] = {1, 2, 3, 4, 7, 8, 16, 64, 255, 256, 1024, 65536};
    float *const kept = take(DRAWS, sizeof *kept);

    (void)state;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            draw(kept, (struct tn_dropout){(float)rates[i], seed, 0});
            check_rate(kept, DRAWS, rates[i]);
            for (size_t from = 0; from < DRAWS; from += 4096)
                check_rate(kept + from, 4096, rates[i]);
            for (size_t j = 0; j < sizeof lags / sizeof lags[0]; j++)
                check_independent("neighbours", kept, kept + lags[j], DRAWS - lags[j],
                                  rates[i]);
        }
    free(kept);
}

/* Seeds one apart, indices 2^32 apart, and steps and places of a model. */
static void seeds_are_independent(void **state)
{
    float *const a = take(DRAWS, sizeof *a), *const b = take(DRAWS, sizeof *b);
    const struct tn_dropout first = {0.3f, tn_dropout_seed(1, 10, 2), 0};
    const struct tn_dropout others[] = {
        {0.3f, first.seed + 1, 0},
        {0.3f, first.seed ^ UINT64_C(1) << 63, 0},
        {0.3f, first.seed, UINT64_C(1) << 32},
        {0.3f, first.seed, UINT64_C(1) << 40},
        {0.3f, tn_dropout_seed(1, 11, 2), 0},
        {0.3f, tn_dropout_seed(1, 10, 3), 0},
        {0.3f, tn_dropout_seed(2, 10, 2), 0},
        {0.3f, tn_dropout_seed(10, 1, 2), 0},
        {0.3f, tn_dropout_seed(1, 2, 10), 0},
    };

    (void)state;
    draw(a, first);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        draw(b, others[i]);
        check_independent("seeds", a, b, DRAWS, 0.3);
        check_independent("seeds, shifted", a, b + 1, DRAWS - 1, 0.3);
    }
    free(a);
    free(b);
}

/* Runs of four: each of the 16 patterns as often as it should be. */
static void patterns_occur_as_often_as_they_should(void **state)
{
    float *const kept = take(DRAWS, sizeof *kept);
    size_t counts[16] = {0};

    (void)state;
    draw(kept, (struct tn_dropout){0.5f, 31, 0});
    for (size_t i = 0; i < DRAWS; i += 4)
        counts[(size_t)(kept[i] + 2 * kept[i + 1] + 4 * kept[i + 2] + 8 * kept[i + 3])]++;
    for (size_t i = 0; i < 16; i++)
        assert_true(fabs((double)counts[i] - DRAWS / 64.0) < 5.0 * sqrt(DRAWS / 64.0));
    free(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_and_split_gives_the_same_bits),
        cmocka_unit_test(elements_are_zeroed_or_scaled),
        cmocka_unit_test(a_rate_of_zero_keeps_everything),
        cmocka_unit_test(rates_and_neighbours_are_random),
        cmocka_unit_test(seeds_are_independent),
        cmocka_unit_test(patterns_occur_as_often_as_they_should),
    };

    return cmocka_run_group_tests_name("dropout", tests, NULL, NULL);
}
