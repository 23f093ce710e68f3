/* SPDX-License-Identifier: MIT */
/* curve.h - the loss of a run of training, from what it left in its folder. */
#ifndef CURVE_H
#define CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tarn/tarn.h"

/* An update, and the validation after it; NAN: there was none. */
struct curve_point {
    uint64_t update;
    double loss, lr, validation, metric;
};

struct curve {
    char metric[TARN_NAME_SIZE]; /* its name; "": no validation gave one */
    struct curve_point *points;
    size_t count, room;
};

/* Reads a folder of training, its log.jsonl or its loss.csv, as far as it has updates. False,
 * and said why, if it cannot be opened. */
bool curve_read(struct curve *curve, const char *path);
void curve_free(struct curve *curve);

/* What is drawn: updates whose loss is a number, each mean over its neighbours, and the range
 * of these. */
struct curve_drawing {
    size_t count, validations;
    double *update, *loss, *smooth;
    double least, most;
};

/* False: not enough memory. */
bool curve_draw(struct curve_drawing *drawing, const struct curve *curve);
void curve_drawing_free(struct curve_drawing *drawing);

/* Blocks of data for gnuplot: $NAME has a value for each update, thinned out, or each
 * validation. */
void curve_put_line(FILE *gnuplot, const char *name, const struct curve_drawing *drawing,
                    const double *values);
void curve_put_validations(FILE *gnuplot, const char *name, const struct curve *curve);

/* The axes of losses between these values, up to some update. */
void curve_put_axes(FILE *gnuplot, double updates, double least, double most);

/* ",VALUE" of a CSV; only the comma where it is not a number. */
void curve_put_number(FILE *csv, double value);

#endif
