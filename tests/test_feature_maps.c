/* SPDX-License-Identifier: MIT */
/* test_feature_maps.c - every row of the table: gradients, instruction sets,
 * refusals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/random_features.h"
#include "support/feature_map_case.h"
#include "support/kernel_list.h"

/* ---- gradients ---------------------------------------------------------- */

/* L(x) = g . phi(x) at x + t u. */
static double loss_along(const struct tn_feature_map *map, const float *g, const float *x,
                         const float *u, double t)
{
    float *const at = take(map->D, sizeof(float)), *const phi = take(map->C, sizeof(float));

    for (size_t d = 0; d < map->D; d++)
        at[d] = (float)((double)x[d] + t * (double)u[d]);
    map->row->forward(map, phi, at);
    const double loss = dot(g, phi, map->C);

    free(at);
    free(phi);
    return loss;
}

/* <dL/dx, u> must be the slope of L along a random u of +-1: four points, so that float
 * forwards resolve it. */
static void check_slope(const struct tn_feature_map *map, const float *x,
                        struct tn_random *random)
{
    const double e = 1e-2;
    const size_t D = map->D, C = map->C;
    float *const u = take(D, sizeof(float)), *const dx = take(D, sizeof(float));
    float *const g = take(C, sizeof(float)), *const phi = take(C, sizeof(float));

    draw_vector(g, C, 1.0, random);
    for (size_t d = 0; d < D; d++)
        u[d] = tn_random_uniform(random) < 0.5 ? -1.0f : 1.0f;
    map->row->forward(map, phi, x);
    map->row->backward(map, dx, g, x);
    const double near = loss_along(map, g, x, u, e / 2) - loss_along(map, g, x, u, -e / 2);
    const double far = loss_along(map, g, x, u, e) - loss_along(map, g, x, u, -e);
    const double slope = (8.0 * near - far) / (6.0 * e), want = dot(dx, u, D);
    const double scale = sqrt(dot(dx, dx, D)) + 0.1 * sqrt(dot(phi, phi, C));

    if (!(fabs(slope - want) <= 1e-3 * scale))
        fail_msg("%s, D %zu, %s: slope %g, gradient %g", map->row->about.name, D,
                 map->kernels->name, slope, want);
    free(u);
    free(dx);
    free(g);
    free(phi);
}

static const char *const specs[] = {
    "elu",
    "relu",
    "identity",
    "square",
    "square:bias=0",
    "fourier",
    "fourier:features=70,sigma=1.5",
    "fourier:orthogonal=no",
    "positive",
    "positive:features=5",
    "positive:features=200,orthogonal=no",
};
enum { SPECS = sizeof specs / sizeof specs[0] };

static const size_t widths[] = {1, 2, 3, 8, 17, 33, 80};
enum { WIDTHS = sizeof widths / sizeof widths[0] };

/* Entries stay 0.1 off zero, where relu has no slope. */
static void gradient_is_the_slope_of_every_map(void **state)
{
    struct tn_random random;
    const struct tn_kernels *kernels;

    (void)state;
    tn_random_seed(&random, 11);
    for (size_t s = 0; s < SPECS; s++)
        for (size_t w = 0; w < WIDTHS; w++)
            for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
                struct tn_feature_map map = map_open(specs[s], widths[w], kernels, 5);
                float *const x = take(map.D, sizeof(float));

                draw_vector(x, map.D, 0.5, &random);
                for (size_t d = 0; d < map.D; d++)
                    x[d] += x[d] < 0.0f ? -0.1f : 0.1f;
                check_slope(&map, x, &random);
                free(x);
                map_close(&map);
            }
}

static void every_instruction_set_maps_alike(void **state)
{
    const struct tn_kernels *const portable = tn_kernels_pick("portable"), *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 12);
    for (size_t s = 0; s < SPECS; s++)
        for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
            struct tn_feature_map want = map_open(specs[s], 33, portable, 5);
            struct tn_feature_map map = map_open(specs[s], 33, kernels, 5);
            float x[33], *const a = take(map.C, sizeof(float)),
                                *const b = take(map.C, sizeof(float));

            draw_vector(x, 33, 0.7, &random);
            want.row->forward(&want, a, x);
            map.row->forward(&map, b, x);
            for (size_t c = 0; c < map.C; c++)
                assert_true(fabsf(a[c] - b[c]) <= 1e-5f * (1.0f + fabsf(a[c])));
            free(a);
            free(b);
            map_close(&want);
            map_close(&map);
        }
}

/* A query that is not a number must not look like one without features. */
static void nan_is_seen_in_the_features_of_every_map(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t s = 0; s < SPECS; s++)
        for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
            struct tn_feature_map map = map_open(specs[s], 17, kernels, 5);
            float x[17] = {0}, *const phi = take(map.C, sizeof(float));
            size_t count = 0;

            x[9] = NAN;
            map.row->forward(&map, phi, x);
            for (size_t c = 0; c < map.C; c++)
                count += isnan(phi[c]) != 0;
            if (count == 0)
                fail_msg("%s, %s: no feature is NaN", specs[s], kernels->name);
            free(phi);
            map_close(&map);
        }
}

static void positive_features_are_finite_for_any_input(void **state)
{
    static const float sizes[] = {0.0f, 1e-30f, 1.0f, 10.0f, 1e3f, 1e10f, 1e30f};
    struct tn_feature_map map = map_open("positive", 8, any_table(), 1);
    float x[8], phi[16], dx[8], ones[16];

    (void)state;
    for (size_t c = 0; c < 16; c++)
        ones[c] = 1.0f;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t d = 0; d < 8; d++)
            x[d] = d % 2 ? sizes[s] : -sizes[s];
        map.row->forward(&map, phi, x);
        map.row->backward(&map, dx, ones, x);
        for (size_t c = 0; c < 16; c++)
            assert_true(phi[c] >= 0.0f && phi[c] <= 1.1e13f);
        for (size_t d = 0; d < 8; d++)
            assert_true(isfinite(dx[d]));
    }
    map_close(&map);
}

/* The exponent w.x' - |x'|^2 / 2 is largest at x' = w, and there far above what exp() may see.
 * */
static void a_feature_that_is_capped_has_no_slope(void **state)
{
    enum { D = 100, R = 7 };
    struct tn_feature_map map = map_open("positive:features=30", D, tn_kernels_pick(NULL), 2);
    float x[D], phi[30], dphi[30] = {0}, dx[D];

    (void)state;
    for (size_t d = 0; d < D; d++)
        x[d] = tn_random_rows_entry(&map, R, d) * sqrtf(D); /* entries are w / D^(1/4) */
    dphi[R] = 1.0f;
    map.row->forward(&map, phi, x);
    map.row->backward(&map, dx, dphi, x);
    assert_true(fabs(log((double)phi[R] * sqrt(30.0)) - 30.0) < 1e-4);
    for (size_t d = 0; d < D; d++)
        assert_true(dx[d] == 0.0f);
    map_close(&map);
}

/* ---- refusals ----------------------------------------------------------- */

static void bad_specs_are_refused(void **state)
{
    static const struct {
        const char *spec;
        size_t D;
    } cases[] = {
        {"square", 6000},
        {"square", SIZE_MAX / 2},
        {"square:bias=-1", 4},
        {"square:bias=nan", 4},
        {"fourier:sigma=0", 4},
        {"fourier:features=-2", 4},
        {"fourier", SIZE_MAX},
        {"positive:features=1.5", 4},
        {"positive:features=inf", 4},
        {"positive", SIZE_MAX},
        {"positive:orthogonal=maybe", 4},
        {"positive:sigma=1", 4},
        {"cube", 4},
        {"", 4},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tn_feature_map map;
        tarn_error err = {0};

        if (tn_feature_map_init(&map, cases[c].spec, cases[c].D, any_table(), &err) == TARN_OK)
            fail_msg("'%s' of %zu was accepted", cases[c].spec, cases[c].D);
        assert_non_null(strstr(err.text, "feature_map"));
    }
}

static void feature_counts_are_as_documented(void **state)
{
    static const struct {
        const char *spec;
        size_t D, C;
    } cases[] = {
        {"elu", 7, 7},       {"relu", 7, 7},
        {"fourier", 7, 14},  {"fourier:features=9", 7, 10},
        {"positive", 7, 14}, {"positive:features=9", 7, 9},
        {"square", 7, 36},   {"square:bias=0", 7, 28},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tn_feature_map map = map_open(cases[c].spec, cases[c].D, any_table(), 0);

        assert_int_equal(map.C, cases[c].C);
        map_close(&map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_the_slope_of_every_map),
        cmocka_unit_test(every_instruction_set_maps_alike),
        cmocka_unit_test(nan_is_seen_in_the_features_of_every_map),
        cmocka_unit_test(positive_features_are_finite_for_any_input),
        cmocka_unit_test(a_feature_that_is_capped_has_no_slope),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(feature_counts_are_as_documented),
    };

    return cmocka_run_group_tests_name("feature maps", tests, NULL, NULL);
}
