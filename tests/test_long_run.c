/* SPDX-License-Identifier: MIT */
/* test_long_run.c - a million steps of linear attention stay what (18)-(20) say in doubles. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/testing.h"
#include "tarn/attention.h"

enum { D = 8, STEPS = 1000000, EVERY = 997 };

/* (16), (17) are zeros. */
struct sums {
    double s[D][D], z[D];
};

static double feature(float x)
{
    return x > 0.0f ? (double)x + 1.0 : exp((double)x);
}

/* (18)-(20) */
static void advance(struct sums *sums, double *y, const float *q, const float *k,
                    const float *v)
{
    double den = 1e-6; /* as the layer's eps */

    for (size_t d = 0; d < D; d++) {
        const double phi = feature(k[d]);

        sums->z[d] += phi;
        for (size_t m = 0; m < D; m++)
            sums->s[d][m] += phi * (double)v[m];
    }
    for (size_t m = 0; m < D; m++)
        y[m] = 0.0;
    for (size_t d = 0; d < D; d++) {
        den += feature(q[d]) * sums->z[d];
        for (size_t m = 0; m < D; m++)
            y[m] += feature(q[d]) * sums->s[d][m];
    }
    for (size_t m = 0; m < D; m++)
        y[m] /= den;
}

/* Largest difference, relative to the largest output. */
static double difference(const float *found, const double *expected)
{
    double worst = 0.0, largest = 0.0;

    for (size_t m = 0; m < D; m++) {
        worst = fmax(worst, fabs((double)found[m] - expected[m]));
        largest = fmax(largest, fabs(expected[m]));
    }
    return worst / largest;
}

/* Rows of q, k, v of one position. */
typedef void draw_row(float *row, size_t step, struct tn_random *random);

static double run_long(draw_row *draw)
{
    const tarn_attention_desc desc = {.kind = "linear",
                                      .causal = true,
                                      .batch = 1,
                                      .heads = 1,
                                      .queries = 1,
                                      .keys = 1,
                                      .query_width = D,
                                      .value_width = D,
                                      .host = {.threads = 1, .cpu = forced_cpu()}};
    struct sums sums = {0};
    float row[3 * D], y[D];
    const tarn_attention_arrays arrays = {
        .in = {{.data = row}, {.data = row + D}, {.data = row + 2 * D}}, .y = {.data = y}};
    double expected[D], worst = 0.0;
    struct tn_random random;
    tarn_attention *attention;
    tarn_error err;

    check_ok(tarn_attention_create(&attention, &desc, &err), &err);
    void *const work = take(tarn_attention_workspace_size(attention), 1);
    void *state = take(tarn_attention_state_size(attention), 1);

    tn_random_seed(&random, 1);
    for (size_t i = 0; i < STEPS; i++) {
        draw(row, i, &random);
        check_ok(tarn_attention_step(attention, &arrays, &state, 1, work, &err), &err);
        advance(&sums, expected, row, row + D, row + 2 * D);
        if (i % EVERY == 0 || i + 1 == STEPS)
            worst = fmax(worst, difference(y, expected));
    }
    free(state);
    free(work);
    tarn_attention_free(attention);
    return worst;
}

static void draw_anew(float *row, size_t step, struct tn_random *random)
{
    (void)step;
    for (size_t i = 0; i < 3 * D; i++)
        row[i] = (float)tn_random_normal(random);
}

/* The same three rows for ever: sums round the same way each time. */
static void draw_again(float *row, size_t step, struct tn_random *random)
{
    static float rows[3][3 * D];

    if (step == 0)
        for (size_t i = 0; i < 3; i++)
            draw_anew(rows[i], 0, random);
    memcpy(row, rows[step % 3], sizeof rows[0]);
}

static void a_million_random_steps_stay_near(void **state)
{
    const double worst = run_long(draw_anew);

    (void)state;
    print_message("random rows: %.2e\n", worst);
    assert_true(worst < 1e-3);
}

static void a_million_repeated_steps_stay_near(void **state)
{
    const double worst = run_long(draw_again);

    (void)state;
    print_message("repeated rows: %.2e\n", worst);
    assert_true(worst < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_random_steps_stay_near),
        cmocka_unit_test(a_million_repeated_steps_stay_near),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
