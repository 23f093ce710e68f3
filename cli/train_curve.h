/* SPDX-License-Identifier: MIT */
/* train_curve.h - the loss of a whole run, over all its resumes, from the log in its folder. */
#ifndef TRAIN_CURVE_H
#define TRAIN_CURVE_H

#include "train_options.h"

/* DIR/loss.csv and, with gnuplot, DIR/loss.svg. False, and said, if one could not be
 * written. */
bool train_curve_write(const struct train_options *options);

#endif
