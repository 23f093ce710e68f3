/* SPDX-License-Identifier: MIT */
/* map_relu.c - phi(x) = max(x, 0). Queries or keys without a positive entry see or are nothing.
 * */
#include "layer/feature_map.h"

static size_t features(const struct tn_feature_map *map)
{
    return map->D;
}

static void forward(const struct tn_feature_map *map, float *phi, const float *x)
{
    for (size_t i = 0; i < map->D; i++)
        phi[i] = x[i] > 0.0f ? x[i] : 0.0f;
}

static void backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x)
{
    for (size_t i = 0; i < map->D; i++)
        dx[i] = x[i] > 0.0f ? dphi[i] : 0.0f;
}

extern const struct tn_feature_row tn_map_relu;
const struct tn_feature_row tn_map_relu = {
    .about = {"relu", "max(x, 0)", (const tarn_option_info[]){{0}}},
    .features = features,
    .forward = forward,
    .backward = backward,
};
