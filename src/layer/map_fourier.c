/* SPDX-License-Identifier: MIT */
/* map_fourier.c - random Fourier features of the RBF similarity (Rahimi and Recht 2007).
 *
 *   phi(x) = [cos(w_r.x), sin(w_r.x)]_r / sqrt(R),   w_r ~ N(0, I / sigma^2),   C = 2R
 *   E phi(q).phi(k) = E cos(w.(q - k)) = exp(-|q - k|^2 / (2 sigma^2))
 *
 * The estimate of a small similarity may be negative, as (3) does not allow; attention stays
 * finite, but is a weighted mean of values no longer. */
#include <math.h>

#include "layer/random_features.h"

enum { FEATURES, SIGMA, ORTHOGONAL };

static size_t features(const struct tn_feature_map *map)
{
    const size_t asked = (size_t)map->options.value[FEATURES];

    if (map->D > TN_RANDOM_WIDTH)
        return 0;
    return asked > 0 ? tn_round_up(asked, 2) : 2 * map->D;
}

static size_t draws(const struct tn_feature_map *map)
{
    return tn_random_rows_floats(map, map->C / 2);
}

static void draw(const struct tn_feature_map *map, struct tn_random *random)
{
    tn_random_rows_draw(map, map->C / 2, map->options.value[ORTHOGONAL] > 0.0,
                        1.0 / map->options.value[SIGMA], random);
}

static void forward(const struct tn_feature_map *map, float *phi, const float *x)
{
    const size_t R = map->C / 2;
    const float scale = 1.0f / sqrtf((float)R);
    float angle[TN_PROJECTION];

    for (size_t first = 0, count; first < R; first += count) {
        count = tn_random_rows_project(map, R, angle, first, x);
        for (size_t i = 0; i < count; i++) {
            phi[first + i] = scale * cosf(angle[i]);
            phi[R + first + i] = scale * sinf(angle[i]);
        }
    }
}

static void backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x)
{
    const size_t R = map->C / 2;
    const float scale = 1.0f / sqrtf((float)R);
    float angle[TN_PROJECTION];

    for (size_t d = 0; d < map->D; d++)
        dx[d] = 0.0f;
    for (size_t first = 0, count; first < R; first += count) {
        count = tn_random_rows_project(map, R, angle, first, x);
        for (size_t i = 0; i < count; i++) {
            const float dcos = dphi[first + i], dsin = dphi[R + first + i];

            angle[i] = scale * (cosf(angle[i]) * dsin - sinf(angle[i]) * dcos);
        }
        tn_random_rows_gather(map, dx, angle, first, count);
    }
}

const struct tn_feature_row tn_map_fourier = {
    .about = {"fourier", "random Fourier features of exp(-|q - k|^2 / (2 sigma^2))",
              (const tarn_option_info[]){
                  [FEATURES] = {"features", "number of features, rounded up to even; 0: 2 D",
                                0.0, 1048576.0, 0.0, true, NULL},
                  [SIGMA] = {"sigma", "width of the Gaussian kernel", 1e-6, 1e6, 1.0, false,
                             NULL},
                  [ORTHOGONAL] = TN_ORTHOGONAL_OPTION,
                  {0},
              }},
    .features = features,
    .draws = draws,
    .draw = draw,
    .forward = forward,
    .backward = backward,
};
