/* SPDX-License-Identifier: MIT */
/* map_elementwise.c - maps of each float on its own, so that C = D:
 *
 *   elu        phi(x) = elu(x) + 1: x + 1 above zero, exp(x) below      Paper (7)
 *   relu       phi(x) = max(x, 0); a query or key without a positive entry has no features
 *   identity   phi(x) = x, for queries and keys that are features already */
#include <string.h>

#include "layer/feature_map.h"

static size_t same_width(const struct tn_feature_map *map)
{
    return map->D;
}

/* ---- elu ---------------------------------------------------------------- */

static void elu_rows(const struct tn_feature_map *map, float *phi, ptrdiff_t ldphi,
                     const float *x, ptrdiff_t ldx, size_t n)
{
    map->kernels->elu1(phi, ldphi, x, ldx, n, map->D);
}

static void elu(const struct tn_feature_map *map, float *phi, const float *x)
{
    elu_rows(map, phi, 0, x, 0, 1);
}

static void elu_backward_rows(const struct tn_feature_map *map, float *dx, ptrdiff_t lddx,
                              const float *dphi, ptrdiff_t lddphi, const float *x,
                              ptrdiff_t ldx, const float *phi, ptrdiff_t ldphi, size_t n,
                              bool streams)
{
    (void)x;
    (void)ldx;
    map->kernels->elu1_backward(dx, lddx, dphi, lddphi, phi, ldphi, n, map->D, streams);
}

static void elu_backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                         const float *x)
{
    elu(map, dx, x);
    elu_backward_rows(map, dx, 0, dphi, 0, x, 0, dx, 0, 1, false);
}

const struct tn_feature_row tn_map_elu = {
    .about = {"elu", "elu(x) + 1, as in the paper, eq. (7)", tn_no_options},
    .features = same_width,
    .forward = elu,
    .backward = elu_backward,
    .forward_rows = elu_rows,
    .backward_rows = elu_backward_rows,
};

/* ---- relu --------------------------------------------------------------- */

static void relu(const struct tn_feature_map *map, float *phi, const float *x)
{
    map->kernels->relu(phi, x, map->D);
}

static void relu_backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                          const float *x)
{
    map->kernels->relu_backward(dx, dphi, x, map->D);
}

const struct tn_feature_row tn_map_relu = {
    .about = {"relu", "max(x, 0)", tn_no_options},
    .features = same_width,
    .forward = relu,
    .backward = relu_backward,
};

/* ---- identity ----------------------------------------------------------- */

static void copy(const struct tn_feature_map *map, float *phi, const float *x)
{
    memcpy(phi, x, map->D * sizeof(float));
}

static void copy_backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                          const float *x)
{
    (void)x;
    memcpy(dx, dphi, map->D * sizeof(float));
}

const struct tn_feature_row tn_map_identity = {
    .about = {"identity", "x itself, for inputs that are already features", tn_no_options},
    .features = same_width,
    .forward = copy,
    .backward = copy_backward,
};
