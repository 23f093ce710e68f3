/* SPDX-License-Identifier: MIT */
/* map_positive.c - positive random features of softmax's similarity (Choromanski et al. 2021).
 *
 *   phi(x) = exp(w_c.x' - |x'|^2 / 2) / sqrt(C),   x' = x / D^(1/4),   w_c ~ N(0, I)
 *   E phi(q).phi(k) = exp(q'.k') = exp(q.k / sqrt D)
 *
 * w_c.x' is computed as (w_c / D^(1/4)).x, and |x'|^2 as |x|^2 / sqrt D. Exponents stop at
 * `cap`, where the derivative becomes zero: sums of products of features then stay finite for
 * any input. */
#include <float.h>
#include <math.h>

#include "layer/random_features.h"

enum { FEATURES, ORTHOGONAL };

static const float cap = 30.0f;

static size_t features(const struct tn_feature_map *map)
{
    const size_t asked = (size_t)map->options.value[FEATURES];

    if (map->D > TN_RANDOM_WIDTH)
        return 0;
    return asked > 0 ? asked : 2 * map->D;
}

static size_t draws(const struct tn_feature_map *map)
{
    return tn_random_rows_floats(map, map->C);
}

static void draw(const struct tn_feature_map *map, struct tn_random *random)
{
    tn_random_rows_draw(map, map->C, map->options.value[ORTHOGONAL] > 0.0,
                        pow((double)map->D, -0.25), random);
}

/* |x'|^2 / 2, finite: an exponent of infinity less infinity would not be a number. */
static float half_square(const struct tn_feature_map *map, const float *x)
{
    return fminf(0.5f * map->kernels->dot(x, x, map->D) / sqrtf((float)map->D), FLT_MAX);
}

/* Exponents of as many features as one projection yields. */
static size_t exponents(const struct tn_feature_map *map, float *out, size_t first, float half,
                        const float *x)
{
    const size_t count = tn_random_rows_project(map, map->C, out, first, x);

    for (size_t i = 0; i < count; i++)
        out[i] = out[i] - half > cap ? cap : out[i] - half;
    return count;
}

static void forward(const struct tn_feature_map *map, float *phi, const float *x)
{
    const float half = half_square(map, x), log_sqrt_C = 0.5f * logf((float)map->C);
    float exponent[TN_PROJECTION];

    for (size_t first = 0, count; first < map->C; first += count) {
        count = exponents(map, exponent, first, half, x);
        map->kernels->exp_sum(phi + first, exponent, log_sqrt_C, count);
    }
}

/* dx = sum_c g_c w_c / D^(1/4) - x sum_c g_c / sqrt D,  g_c = phi_c dphi_c, 0 where capped. */
static void backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x)
{
    const float half = half_square(map, x), log_sqrt_C = 0.5f * logf((float)map->C);
    float exponent[TN_PROJECTION], g[TN_PROJECTION], sum = 0.0f;

    for (size_t d = 0; d < map->D; d++)
        dx[d] = 0.0f;
    for (size_t first = 0, count; first < map->C; first += count) {
        count = exponents(map, exponent, first, half, x);
        map->kernels->exp_sum(g, exponent, log_sqrt_C, count);
        for (size_t i = 0; i < count; i++) {
            g[i] = exponent[i] < cap ? g[i] * dphi[first + i] : 0.0f;
            sum += g[i];
        }
        tn_random_rows_gather(map, dx, g, first, count);
    }
    map->kernels->axpy(dx, -sum / sqrtf((float)map->D), x, map->D);
}

const struct tn_feature_row tn_map_positive = {
    .about = {"positive", "positive random features of the softmax kernel exp(q.k / sqrt D)",
              (const tarn_option_info[]){
                  [FEATURES] = {"features", "number of features; 0: 2 D", 0.0, 1048576.0, 0.0,
                                true, NULL},
                  [ORTHOGONAL] = TN_ORTHOGONAL_OPTION,
                  {0},
              }},
    .features = features,
    .draws = draws,
    .draw = draw,
    .forward = forward,
    .backward = backward,
};
