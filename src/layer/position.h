/* SPDX-License-Identifier: MIT */
/* position.h - how a row of the model's input learns where it stands.
 *
 * A kind is one file that defines one row, and one line in positions.def. Some kinds have a
 * table with one row per position: a learned one is a parameter, the others' is filled by
 * tn_position_fill(), where a row depends on its position alone. */
#ifndef TN_POSITION_H
#define TN_POSITION_H

#include "base/option.h"
#include "layer/rows.h"

struct tn_position_row;

/* A row of the table for a model of width F. */
struct tn_position {
    const struct tn_position_row *row;
    struct tn_options options;
    size_t F;
    size_t embedding; /* width of the value embedding, the first floats of an input row */
    size_t table;     /* floats of a table's row; 0: no table */
};

struct tn_position_row {
    tarn_table_row about;
    bool learned;   /* the table is a parameter */
    size_t divisor; /* F must be a multiple of it */

    size_t (*embedding)(size_t F);
    size_t (*table)(size_t F);

    /* `n` rows of `table`, for the positions from `from` on. NULL: learned, or no table. */
    void (*fill)(const struct tn_position *position, float *table, size_t from, size_t n);

    /* Row i of y (F floats, ldy apart), whose first floats are the embedding, learns that it
     * stands at row i % n of the table. NULL: it does not. */
    void (*apply)(const struct tn_position *position, const struct tn_rows *r, float *y,
                  size_t ldy, const float *table, size_t n);
};

/* The names in positions.def, ended by NULL. */
extern const tarn_table_row *const tn_position_rows[];

/* Reads a spec, such as "concat", and checks it against F. */
tarn_status tn_position_init(struct tn_position *position, const char *spec, size_t F,
                             tarn_error *err);

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

/* ---- For kinds ---------------------------------------------------------- */

/* pe[p, 2i] = sin(p 10000^(-2i/d)), pe[p, 2i+1] = cos of the same, for d = position->table. */
void tn_position_sinusoid(const struct tn_position *position, float *table, size_t from,
                          size_t n);

/* y += table, the whole width. */
void tn_position_add(const struct tn_position *position, const struct tn_rows *r, float *y,
                     size_t ldy, const float *table, size_t n);

#endif
