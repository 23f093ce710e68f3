/* SPDX-License-Identifier: MIT */
/* curve.h - the loss of a training run, from what it left in its folder. */
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
    double smooth; /* mean of the losses around it */
};

struct curve {
    char metric[TARN_NAME_SIZE]; /* its name; "": no validation gave one */
    struct curve_point *points;
    size_t count, room;
    size_t losses, validations; /* points that have one */
    double least, most;         /* of the smoothed losses */
    double updates;             /* the last one with a loss */
};

/* Reads a training folder, its log.jsonl or its loss.csv, as far as it has updates. False,
 * after a warning, if it cannot be opened. */
bool curve_read(struct curve *curve, const char *path);
void curve_free(struct curve *curve);

/* A block of data for gnuplot: $NAMEi has the values of a column, thinned out. */
#define CURVE_COLUMN(field) offsetof(struct curve_point, field)
void curve_put_data(FILE *gnuplot, const char *name, size_t i, const struct curve *curve,
                    size_t column);

/* The axes of losses between these values, up to some update. */
void curve_put_axes(FILE *gnuplot, double updates, double least, double most);

/* ",VALUE" of a CSV; only the comma where it is not a number. */
void curve_put_number(FILE *csv, double value);

#endif
