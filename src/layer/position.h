/* SPDX-License-Identifier: MIT */
/* position.h - how a row of the model's input gets its position.
 *
 * A kind is a row of the table in position.c. Kinds but "none" have a table with one row per
 * position: a learned one is a parameter, the others' is filled by tn_position_fill(), where a
 * row depends on its position alone. It stands beside the embedding, or is added to it. */
#ifndef TN_POSITION_H
#define TN_POSITION_H

#include "base/option.h"
#include "layer/rows.h"

struct tn_position_row;

/* A row of the table for a model of width F. */
struct tn_position {
    const struct tn_position_row *row;
    size_t F;
    size_t embedding; /* width of the value embedding, the first floats of an input row */
    size_t table;     /* floats of a table's row; 0: no table */
};

struct tn_position_row {
    tarn_table_row about;
    bool learned;   /* the table is a parameter */
    size_t divisor; /* F must be a multiple of it */
    /* F divided by these: width of the embedding, and of the table's rows; 0: no table. */
    size_t embedding, table;
};

extern const struct tn_table tn_positions;

/* Reads a spec, such as "concat", and checks it against F. */
tarn_status tn_position_init(struct tn_position *position, const char *spec, size_t F,
                             tarn_error *err);

/* Whether it has a table, and that is filled. */
bool tn_position_is_sinusoid(const struct tn_position *position);

/* Rows [from, from + n) of a table that is not learned: row p is the same to the last bit
 * whatever `from` and `n` are. Does nothing for a kind without such a table. */
void tn_position_fill(const struct tn_position *position, float *table, size_t from, size_t n);

/* r->rows rows of y, of r->width = F floats, ldy apart: sequences of n positions, one after the
 * other. `table` points at the row of a sequence's first position; NULL if there is no
 * table. */
void tn_position_apply(const struct tn_position *position, const struct tn_rows *r, float *y,
                       size_t ldy, const float *table, size_t n);

/* dtable, n rows, += the sum of dy over sequences, in order. Only for learned tables, otherwise
 * nothing: the gradient of the embedding is the first floats of dy's rows for every kind. */
void tn_position_backward(const struct tn_position *position, const struct tn_rows *r,
                          float *dtable, const float *dy, size_t lddy, size_t n);

#endif
