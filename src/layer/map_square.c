/* SPDX-License-Identifier: MIT */
/* map_square.c - the exact features of the polynomial similarity of degree 2.       Paper 3.2.1
 *
 *   (q.k + b)^2 = sum_i q_i^2 k_i^2 + sum_{i<j} (sqrt2 q_i q_j)(sqrt2 k_i k_j)
 *               + sum_i (sqrt(2b) q_i)(sqrt(2b) k_i) + b b
 *
 * so phi(x) holds, for every i, x_i^2 and then sqrt2 x_i x_j for the j after i; after them, if
 * b > 0, sqrt(2b) x and b. C = D (D + 1) / 2, and D + 1 more if b > 0. */
#include <math.h>

#include "layer/feature_map.h"

enum { BIAS };

static const float sqrt2 = 1.41421356f;
static const size_t widest = (size_t)1 << 24; /* a state of C x M floats must stay thinkable */

static size_t features(const struct tn_feature_map *map)
{
    const size_t D = map->D;

    if (D > 8192) /* and nothing below overflows, whatever a size_t is */
        return 0;
    const size_t C = D * (D + 1) / 2 + (map->options.value[BIAS] > 0.0 ? D + 1 : 0);

    return C <= widest ? C : 0;
}

static void forward(const struct tn_feature_map *map, float *phi, const float *x)
{
    const size_t D = map->D;
    const float bias = (float)map->options.value[BIAS];

    for (size_t i = 0; i < D; i++) {
        phi[0] = x[i] * x[i];
        map->kernels->scale(phi + 1, x + i + 1, sqrt2 * x[i], D - i - 1);
        phi += D - i;
    }
    if (bias > 0.0f) {
        map->kernels->scale(phi, x, sqrtf(2.0f * bias), D);
        phi[D] = bias;
    }
}

/* dx_i = 2 x_i dphi_ii + sqrt2 sum_{j != i} x_j dphi_ij + sqrt(2b) dphi_i. The last term is
 * after all others in dphi and first here, because it sets dx and the others add. */
static void backward(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x)
{
    const struct tn_kernels *const kernels = map->kernels;
    const size_t D = map->D;
    const float bias = (float)map->options.value[BIAS];

    if (bias > 0.0f)
        kernels->scale(dx, dphi + D * (D + 1) / 2, sqrtf(2.0f * bias), D);
    else
        for (size_t i = 0; i < D; i++)
            dx[i] = 0.0f;
    for (size_t i = 0; i < D; i++) {
        const size_t after = D - i - 1;

        dx[i] += 2.0f * x[i] * dphi[0] + sqrt2 * kernels->dot(dphi + 1, x + i + 1, after);
        kernels->axpy(dx + i + 1, sqrt2 * x[i], dphi + 1, after);
        dphi += D - i;
    }
}

const struct tn_feature_row tn_map_square = {
    .about = {"square", "exact features of (q.k + bias)^2",
              (const tarn_option_info[]){
                  [BIAS] = {"bias", "added to q.k before squaring", 0.0, 1e6, 1.0, false, NULL},
                  {0},
              }},
    .features = features,
    .forward = forward,
    .backward = backward,
};
