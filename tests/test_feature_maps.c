/* SPDX-License-Identifier: MIT */
/* test_feature_maps.c - every row of feature_maps.def: gradients, and the similarities that
 * phi(q).phi(k) is or approximates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/feature_map.h"
#include "layer/random_features.h"
#include "support/testing.h"
#include "tarn/attention.h"

/* ---- help --------------------------------------------------------------- */

#ifdef TN_HAVE_AVX2
extern const struct tn_kernels tn_kernels_wide;
static const struct tn_kernels *const wide = &tn_kernels_wide; /* runs where AVX2 does */
#else
static const struct tn_kernels *const wide = NULL;
#endif

/* Every table that runs here, then the one of 16 lanes; NULL past the last. */
static const struct tn_kernels *table_at(size_t i)
{
    const struct tn_kernels *const table = tn_kernels_row(i);

    if (table || i == 0 || !tn_kernels_row(i - 1))
        return table;
    return tn_kernels_pick("avx2") ? wide : NULL;
}

static const struct tn_kernels *any_table(void)
{
    return tn_kernels_pick(forced_cpu());
}

static struct tn_feature_map map_open(const char *spec, size_t D,
                                      const struct tn_kernels *kernels, uint64_t seed)
{
    struct tn_feature_map map;
    struct tn_random random;
    tarn_error err = {0};

    check_ok(tn_feature_map_init(&map, spec, D, kernels, &err), &err);
    map.draws = take(tn_feature_map_draws(&map), sizeof(float));
    tn_random_seed(&random, seed);
    tn_feature_map_draw(&map, &random);
    return map;
}

static void map_close(struct tn_feature_map *map)
{
    free(map->draws);
}

static double similarity(const struct tn_feature_map *map, const float *q, const float *k)
{
    float *const phi_q = take(map->C, sizeof(float)), *const phi_k =
                                                          take(map->C, sizeof(float));
    double sum = 0.0;

    map->row->forward(map, phi_q, q);
    map->row->forward(map, phi_k, k);
    for (size_t c = 0; c < map->C; c++)
        sum += (double)phi_q[c] * (double)phi_k[c];
    free(phi_q);
    free(phi_k);
    return sum;
}

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static void draw_vector(float *x, size_t n, double scale, struct tn_random *random)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tn_random_normal(random));
}

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
            for (size_t i = 0; (kernels = table_at(i)) != NULL; i++) {
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
        for (size_t i = 0; (kernels = table_at(i)) != NULL; i++) {
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

/* ---- similarities ------------------------------------------------------- */

static void square_is_the_polynomial_of_degree_2(void **state)
{
    static const struct {
        const char *spec;
        double bias;
    } cases[] = {{"square", 1.0}, {"square:bias=0", 0.0}, {"square:bias=2.5", 2.5}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 13);
    for (size_t c = 0; c < 3; c++)
        for (size_t w = 0; w < WIDTHS; w++) {
            const size_t D = widths[w];
            struct tn_feature_map map = map_open(cases[c].spec, D, any_table(), 0);
            float q[80], k[80];

            draw_vector(q, D, 1.0, &random);
            draw_vector(k, D, 1.0, &random);
            const double want = pow(dot(q, k, D) + cases[c].bias, 2.0);
            const double size = pow(sqrt(dot(q, q, D) * dot(k, k, D)) + cases[c].bias, 2.0);

            assert_int_equal(map.C, D * (D + 1) / 2 + (cases[c].bias > 0.0 ? D + 1 : 0));
            assert_true(fabs(similarity(&map, q, k) - want) <= 1e-6 * size);
            map_close(&map);
        }
}

/* Each feature pair has variance at most 1, so five standard deviations are 5 / sqrt(R). */
static void fourier_approximates_the_rbf_similarity(void **state)
{
    static const char *const cases[] = {"fourier:features=16384,sigma=2",
                                        "fourier:features=16384,sigma=2,orthogonal=no"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 14);
    for (size_t c = 0; c < 2; c++) {
        struct tn_feature_map map = map_open(cases[c], 9, any_table(), 21);

        for (size_t trial = 0; trial < 20; trial++) {
            float q[9], k[9], apart[9];

            draw_vector(q, 9, 1.0, &random);
            draw_vector(k, 9, 1.0, &random);
            for (size_t d = 0; d < 9; d++)
                apart[d] = q[d] - k[d];
            const double want = exp(-dot(apart, apart, 9) / (2.0 * 2.0 * 2.0));

            assert_true(fabs(similarity(&map, q, k) - want) <= 5.0 / sqrt(8192.0));
            assert_true(fabs(similarity(&map, q, q) - 1.0) <= 1e-5);
        }
        map_close(&map);
    }
}

/* With z = q' + k', one feature's product has mean m = exp(q'.k') and variance
 * m^2 (exp(|z|^2) - 1); orthogonal draws have less. */
static void positive_approximates_the_similarity_of_softmax(void **state)
{
    static const char *const cases[] = {"positive:features=16384",
                                        "positive:features=16384,orthogonal=no"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 15);
    for (size_t c = 0; c < 2; c++) {
        struct tn_feature_map map = map_open(cases[c], 16, any_table(), 22);

        for (size_t trial = 0; trial < 20; trial++) {
            float q[16], k[16], sum[16];

            draw_vector(q, 16, 0.5, &random);
            draw_vector(k, 16, 0.5, &random);
            for (size_t d = 0; d < 16; d++)
                sum[d] = q[d] + k[d];
            const double want = exp(dot(q, k, 16) / sqrt(16.0));
            const double spread = sqrt((exp(dot(sum, sum, 16) / sqrt(16.0)) - 1.0) / 16384.0);

            assert_true(fabs(similarity(&map, q, k) / want - 1.0) <= 5.0 * spread);
        }
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

/* ---- draws -------------------------------------------------------------- */

/* The cosine of the angle between rows i and j. */
static double cosine(const struct tn_feature_map *map, size_t i, size_t j)
{
    double ij = 0.0, ii = 0.0, jj = 0.0;

    for (size_t d = 0; d < map->D; d++) {
        const double a = (double)tn_random_rows_entry(map, i, d);
        const double b = (double)tn_random_rows_entry(map, j, d);

        ij += a * b;
        ii += a * a;
        jj += b * b;
    }
    return ij / sqrt(ii * jj);
}

static void orthogonal_draws_are_orthogonal_within_blocks(void **state)
{
    struct tn_feature_map map = map_open("fourier:features=150", 32, any_table(), 31);

    (void)state;
    for (size_t i = 0; i < 75; i++)
        for (size_t j = 0; j < i; j++)
            if (i / 32 == j / 32)
                assert_true(fabs(cosine(&map, i, j)) <= 1e-6);
    map_close(&map);
    map = map_open("fourier:features=150,orthogonal=no", 32, any_table(), 31);
    assert_true(fabs(cosine(&map, 0, 1)) > 1e-3);
    map_close(&map);
}

/* Over 4096 rows of 16 Gaussians of variance 1/4 each, the mean square has a standard deviation
 * of sqrt(2 / 65536) / 4. The lengths themselves must vary as those of Gaussians do. */
static void draws_have_the_lengths_of_gaussians(void **state)
{
    static const char *const cases[] = {
        "fourier:features=8192,sigma=2",
        "fourier:features=8192,sigma=2,orthogonal=no",
        "positive:features=4096", /* its scale of D^(-1/4) is 1/2, too */
        "positive:features=4096,orthogonal=no",
    };

    (void)state;
    for (size_t c = 0; c < 4; c++) {
        struct tn_feature_map map = map_open(cases[c], 16, any_table(), 32);
        double sum = 0.0, sum2 = 0.0;

        for (size_t r = 0; r < 4096; r++) {
            double length2 = 0.0;

            for (size_t d = 0; d < 16; d++)
                length2 += pow((double)tn_random_rows_entry(&map, r, d), 2.0);
            sum += 4.0 * length2 / 4096.0;
            sum2 += pow(4.0 * length2, 2.0) / 4096.0;
        }
        assert_true(fabs(sum / 16.0 - 1.0) <= 5.0 * sqrt(2.0 / 65536.0));
        assert_true(fabs((sum2 - sum * sum) / 32.0 - 1.0) <=
                    0.2); /* chi squared: variance 2 D */
        map_close(&map);
    }
}

static void equal_seeds_draw_alike(void **state)
{
    static const char *const cases[] = {"fourier:features=100", "positive:features=100",
                                        "positive:features=100,orthogonal=no"};

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        struct tn_feature_map a = map_open(cases[c], 24, any_table(), 41);
        struct tn_feature_map b = map_open(cases[c], 24, any_table(), 41);
        struct tn_feature_map other = map_open(cases[c], 24, any_table(), 42);
        const size_t bytes = tn_feature_map_draws(&a) * sizeof(float);

        assert_memory_equal(a.draws, b.draws, bytes);
        assert_memory_not_equal(a.draws, other.draws, bytes);
        map_close(&a);
        map_close(&b);
        map_close(&other);
    }
}

static void instruction_sets_draw_alike(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t i = 0; (kernels = table_at(i)) != NULL; i++) {
        struct tn_feature_map a = map_open("positive", 21, tn_kernels_pick("portable"), 51);
        struct tn_feature_map b = map_open("positive", 21, kernels, 51);

        for (size_t r = 0; r < a.C; r++)
            for (size_t d = 0; d < a.D; d++)
                assert_true(tn_random_rows_entry(&a, r, d) == tn_random_rows_entry(&b, r, d));
        map_close(&a);
        map_close(&b);
    }
}

/* Through the public header: a redraw changes the output, and the old seed brings it back. */
static void redraw_changes_what_random_maps_give(void **state)
{
    enum { N = 6, D = 8, SIZE = N * D };
    const tarn_attention_desc desc = {
        .kind = "linear",
        .feature_map = "positive",
        .batch = 1,
        .heads = 1,
        .queries = N,
        .keys = N,
        .query_width = D,
        .value_width = D,
        .seed = 61,
        .threads = 1,
    };
    tarn_attention *attention = NULL;
    struct tn_random random;
    float q[SIZE], k[SIZE], v[SIZE], y[3][SIZE];

    (void)state;
    tn_random_seed(&random, 16);
    draw_vector(q, SIZE, 1.0, &random);
    draw_vector(k, SIZE, 1.0, &random);
    draw_vector(v, SIZE, 1.0, &random);
    assert_int_equal(tarn_attention_create(&attention, &desc, NULL), TARN_OK);
    void *const work = take(tarn_attention_workspace_size(attention), 1);

    for (size_t i = 0; i < 3; i++) {
        const tarn_attention_arrays arrays = {.q = {q, SIZE, D, D},
                                              .k = {k, SIZE, D, D},
                                              .v = {v, SIZE, D, D},
                                              .y = {y[i], SIZE, D, D}};

        if (i > 0)
            tarn_attention_redraw(attention, i == 1 ? 62 : 61);
        assert_int_equal(tarn_attention_forward(attention, &arrays, NULL, work, NULL), TARN_OK);
    }
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    free(work);
    tarn_attention_free(attention);
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
        cmocka_unit_test(square_is_the_polynomial_of_degree_2),
        cmocka_unit_test(fourier_approximates_the_rbf_similarity),
        cmocka_unit_test(positive_approximates_the_similarity_of_softmax),
        cmocka_unit_test(positive_features_are_finite_for_any_input),
        cmocka_unit_test(a_feature_that_is_capped_has_no_slope),
        cmocka_unit_test(orthogonal_draws_are_orthogonal_within_blocks),
        cmocka_unit_test(draws_have_the_lengths_of_gaussians),
        cmocka_unit_test(equal_seeds_draw_alike),
        cmocka_unit_test(instruction_sets_draw_alike),
        cmocka_unit_test(redraw_changes_what_random_maps_give),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(feature_counts_are_as_documented),
    };

    return cmocka_run_group_tests_name("feature maps", tests, NULL, NULL);
}
