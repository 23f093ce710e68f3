/* SPDX-License-Identifier: MIT */
/* test_feature_draws.c - what random features are drawn from: lengths, angles, seeds. */
#include <math.h>
#include <stdlib.h>

#include "layer/random_features.h"
#include "support/feature_map_case.h"
#include "support/kernel_list.h"
#include "tarn/attention.h"

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
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
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
        .host.threads = 1,
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
        const tarn_attention_arrays arrays = {
            .in = {{q, SIZE, D, D}, {k, SIZE, D, D}, {v, SIZE, D, D}}, .y = {y[i], SIZE, D, D}};

        if (i > 0)
            tarn_attention_redraw(attention, i == 1 ? 62 : 61);
        assert_int_equal(tarn_attention_forward(attention, &arrays, NULL, work, NULL), TARN_OK);
    }
    assert_memory_not_equal(y[0], y[1], sizeof y[0]);
    assert_memory_equal(y[0], y[2], sizeof y[0]);
    free(work);
    tarn_attention_free(attention);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orthogonal_draws_are_orthogonal_within_blocks),
        cmocka_unit_test(draws_have_the_lengths_of_gaussians),
        cmocka_unit_test(equal_seeds_draw_alike),
        cmocka_unit_test(instruction_sets_draw_alike),
        cmocka_unit_test(redraw_changes_what_random_maps_give),
    };

    return cmocka_run_group_tests_name("feature draws", tests, NULL, NULL);
}
