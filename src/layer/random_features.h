/* SPDX-License-Identifier: MIT */
/* random_features.h - the projections w_r . x that random feature maps share.
 *
 * R rows w_r of D Gaussians each. Orthogonal draws (Choromanski et al. 2021) make the rows
 * within every block of D orthogonal and leave each row's own distribution as it was: the
 * estimate stays unbiased and its variance falls.
 *
 * map->draws holds block after block. Each is transposed, D x tn_padded(D), so that a
 * projection is a product whose vectors run along the rows r. */
#ifndef TN_RANDOM_FEATURES_H
#define TN_RANDOM_FEATURES_H

#include "layer/feature_map.h"

/* The widest queries: making D rows orthogonal takes time as D^3. */
enum { TN_RANDOM_WIDTH = 4096 };

/* Rows that one projection yields at most: what fits on a stack, whole vectors anywhere. */
enum { TN_PROJECTION = 64 };

/* What such maps are asked: tn_random_rows_draw()'s `orthogonal`. */
#define TN_ORTHOGONAL_OPTION                                                                   \
    {                                                                                          \
        "orthogonal", "draw orthogonal vectors within blocks of D", 0.0, 1.0, 1.0, true,       \
            (const char *const[])                                                              \
        {                                                                                      \
            "no", "yes", NULL                                                                  \
        }                                                                                      \
    }

/* Floats of draws for R rows; SIZE_MAX if they do not fit. */
size_t tn_random_rows_floats(const struct tn_feature_map *map, size_t R);

/* Every entry is `scale` times a Gaussian of mean 0 and variance 1. */
void tn_random_rows_draw(const struct tn_feature_map *map, size_t R, bool orthogonal,
                         double scale, struct tn_random *random);

/* Entry d of row r, for whoever looks on. */
float tn_random_rows_entry(const struct tn_feature_map *map, size_t r, size_t d);

/* out[i] = w_{first+i} . x for the returned number of rows, at least one. `first` is 0 or where
 * the projection before ended. out has TN_PROJECTION floats. */
size_t tn_random_rows_project(const struct tn_feature_map *map, size_t R, float *out,
                              size_t first, const float *x);

/* dx += sum_i g[i] w_{first+i}, for the rows of that projection. */
void tn_random_rows_gather(const struct tn_feature_map *map, float *dx, const float *g,
                           size_t first, size_t count);

#endif
