/* SPDX-License-Identifier: MIT */
/* test_feature_similarities.c - the similarities that phi(q).phi(k) is or approximates. */
#include <math.h>
#include <stdlib.h>

#include "support/feature_map_case.h"

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

static void square_is_the_polynomial_of_degree_2(void **state)
{
    static const size_t widths[] = {1, 2, 3, 8, 17, 33, 80};
    static const struct {
        const char *spec;
        double bias;
    } cases[] = {{"square", 1.0}, {"square:bias=0", 0.0}, {"square:bias=2.5", 2.5}};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 13);
    for (size_t c = 0; c < 3; c++)
        for (size_t w = 0; w < sizeof widths / sizeof widths[0]; w++) {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(square_is_the_polynomial_of_degree_2),
        cmocka_unit_test(fourier_approximates_the_rbf_similarity),
        cmocka_unit_test(positive_approximates_the_similarity_of_softmax),
    };

    return cmocka_run_group_tests_name("feature similarities", tests, NULL, NULL);
}
