/* SPDX-License-Identifier: MIT */
/* map_elu.c - phi(x) = elu(x) + 1: x + 1 above zero, exp(x) below.    Paper (7) */
#include "layer/feature_map.h"

static size_t features(const struct tn_feature_map *map)
{
    return map->D;
}

static void forward_rows(const struct tn_feature_map *map, float *phi, ptrdiff_t ldphi,
                         const float *x, ptrdiff_t ldx, size_t n)
{
    map->kernels->elu1(phi, ldphi, x, ldx, n, map->D);
}

static void forward(const struct tn_feature_map *map, float *phi, const float *x)
{
    forward_rows(map, phi, 0, x, 0, 1);
}

static void backward_rows(const struct tn_feature_map *map, float *dx, ptrdiff_t lddx,
                          const float *dphi, ptrdiff_t lddphi, const float *x, ptrdiff_t ldx,
                          const float *phi, ptrdiff_t ldphi, size_t n, bool streams)
{
    (void)x;
    (void)ldx;
    map->kernels->elu1_slope(dx, lddx, dphi, lddphi, phi, ldphi, n, map->D, streams);
}

static void backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x)
{
    forward(map, dx, x);
    backward_rows(map, dx, 0, dphi, 0, x, 0, dx, 0, 1, false);
}

extern const struct tn_feature_row tn_map_elu;
const struct tn_feature_row tn_map_elu = {
    .about = {"elu", "elu(x) + 1, as in the paper, eq. (7)", (const tarn_option_info[]){{0}}},
    .features = features,
    .forward = forward,
    .backward = backward,
    .forward_rows = forward_rows,
    .backward_rows = backward_rows,
};
