/* SPDX-License-Identifier: MIT */
/* feature_map_case.h - feature maps outside of any attention, with draws of their own. */
#ifndef FEATURE_MAP_CASE_H
#define FEATURE_MAP_CASE_H

#include "layer/feature_map.h"
#include "support/testing.h"

/* Fails with the refusal if there is no such map. */
struct tn_feature_map map_open(const char *spec, size_t D, const struct tn_kernels *kernels,
                               uint64_t seed);
void map_close(struct tn_feature_map *map);

/* The best that runs here, or what TARN_CPU forces. */
const struct tn_kernels *any_table(void);

void draw_vector(float *x, size_t n, double scale, struct tn_random *random);
double dot(const float *x, const float *y, size_t n);

#endif
