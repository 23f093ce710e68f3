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
    const char *name;            /* as it was given */
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

/* A picture of one run, with all its updates, or of several, one line each; .svg or .png.
 * Without gnuplot only a warning. False, after a warning, if it could not be written. */
bool curve_draw(const char *path, const char *title, const struct curve *curves, size_t count);

/* ",VALUE" of a CSV; only the comma where it is not a number. */
void curve_put_number(FILE *csv, double value);

#endif
