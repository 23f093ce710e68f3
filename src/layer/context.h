/* SPDX-License-Identifier: MIT */
/* context.h - symbols some distances back, embedded beside the current one:
 *
 *   x_n = E[s_n] + sum_j C_j[s_(n - d_j)]
 *
 * Linear attention blurs: with C features it cannot tell hundreds of positions apart, so that a
 * pixel's upper neighbour, a width back, is the hardest thing for it to see and the most
 * telling one. A table per distance d_j gives it to the first layer. Before a sequence begins
 * stands a symbol of its own, the last row of each table.
 *
 * One after the other the tables are one tensor, in which a row is looked up. The state that a
 * step needs is the last d symbols, d the longest distance. */
#ifndef TN_CONTEXT_H
#define TN_CONTEXT_H

#include "layer/rows.h"

enum { TN_CONTEXT_MOST = 24, TN_CONTEXT_FARTHEST = 1 << 16 };

struct tn_context {
    size_t count; /* of distances; 0: no context */
    size_t distance[TN_CONTEXT_MOST];
    size_t reach; /* the longest */
    size_t symbols;
};

/* Reads distances from 1 up, such as "1,27,28"; "" is none. */
tarn_status tn_context_init(struct tn_context *context, const char *spec, size_t symbols,
                            tarn_error *err);

/* Rows of all tables. */
size_t tn_context_rows(const struct tn_context *context);

/* Where B sequences of n symbols stand. */
struct tn_context_place {
    const int32_t *symbols; /* B x n */
    size_t B, n;
    const int32_t *past; /* B x reach symbols, the last ones before these; NULL if from is 0 */
    uint64_t from;       /* position of the first; beyond it the past means nothing */
};

/* rows: count x B n rows of the tables. */
void tn_context_find(const struct tn_context *context, int32_t *rows,
                     const struct tn_context_place *place);

/* past becomes the last symbols before the place's end. */
void tn_context_remember(const struct tn_context *context, int32_t *past,
                         const struct tn_context_place *place);

/* y[i] += the rows found for i, in the order of the distances. */
void tn_context_forward(const struct tn_context *context, const struct tn_rows *r, float *y,
                        size_t ldy, const float *tables, const int32_t *rows);

void tn_context_backward(const struct tn_context *context, const struct tn_rows *r,
                         float *dtables, const float *dy, size_t lddy, const int32_t *rows);

#endif
