/* SPDX-License-Identifier: MIT */
#include "support/feature_map_case.h"

#include <stdlib.h>

const struct tn_kernels *any_table(void)
{
    return tn_kernels_pick(forced_cpu());
}

struct tn_feature_map map_open(const char *spec, size_t D, const struct tn_kernels *kernels,
                               uint64_t seed)
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

void map_close(struct tn_feature_map *map)
{
    free(map->draws);
}

void draw_vector(float *x, size_t n, double scale, struct tn_random *random)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tn_random_normal(random));
}

double dot(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}
