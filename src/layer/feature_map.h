/* SPDX-License-Identifier: MIT */
/* feature_map.h - phi: a row of D floats becomes a row of C floats.
 *
 * sim(q, k) = phi(q) . phi(k) is the similarity that attention is built on. A map is one
 * row, in a file map_*.c, which is listed here and in feature_map.c. */
#ifndef TN_FEATURE_MAP_H
#define TN_FEATURE_MAP_H

#include "base/option.h"
#include "kernel/kernels.h"

struct tn_feature_row;

/* A row of the table with its sizes, options and, if it has any, random draws. */
struct tn_feature_map {
    const struct tn_feature_row *row;
    const struct tn_kernels *kernels;
    size_t D, C;
    struct tn_options options;
    float *draws; /* row->draws() floats */
};

struct tn_feature_row {
    tarn_table_row about;

    /* C for this D and these options; 0 if it does not fit in a size_t. */
    size_t (*features)(const struct tn_feature_map *map);

    /* Random numbers: how many floats, and drawing them. NULL: the map has none. */
    size_t (*draws)(const struct tn_feature_map *map);
    void (*draw)(const struct tn_feature_map *map, struct tn_random *random);

    /* phi (C floats) = phi(x), x (D floats). */
    void (*forward)(const struct tn_feature_map *map, float *phi, const float *x);

    /* dx (D floats) = J(x)^T dphi (C floats). */
    void (*backward)(const struct tn_feature_map *map, float *dx, const float *dphi,
                     const float *x);

    /* The same for n rows, ld floats apart, where phi(x) is at hand for backward, and dx may go
     * past the cache if it `streams`. NULL: row by row. */
    void (*forward_rows)(const struct tn_feature_map *map, float *phi, ptrdiff_t ldphi,
                         const float *x, ptrdiff_t ldx, size_t n);
    void (*backward_rows)(const struct tn_feature_map *map, float *dx, ptrdiff_t lddx,
                          const float *dphi, ptrdiff_t lddphi, const float *x, ptrdiff_t ldx,
                          const float *phi, ptrdiff_t ldphi, size_t n, bool streams);
};

extern const struct tn_feature_row tn_map_elu, tn_map_relu, tn_map_square, tn_map_fourier,
    tn_map_positive, tn_map_identity;
extern const struct tn_table tn_feature_maps;

/* Reads a spec, checks it against D and fills everything but the draws. */
tarn_status tn_feature_map_init(struct tn_feature_map *map, const char *spec, size_t D,
                                const struct tn_kernels *kernels, tarn_error *err);

void tn_feature_map_forward(const struct tn_feature_map *map, float *phi, ptrdiff_t ldphi,
                            const float *x, ptrdiff_t ldx, size_t n);
void tn_feature_map_backward(const struct tn_feature_map *map, float *dx, ptrdiff_t lddx,
                             const float *dphi, ptrdiff_t lddphi, const float *x, ptrdiff_t ldx,
                             const float *phi, ptrdiff_t ldphi, size_t n, bool streams);

/* Floats of draws, 0 for a map without. */
size_t tn_feature_map_draws(const struct tn_feature_map *map);
void tn_feature_map_draw(const struct tn_feature_map *map, struct tn_random *random);

#endif
