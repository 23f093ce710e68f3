/* SPDX-License-Identifier: MIT */
/* train_curve.h - the loss curve of a run, across all its resumes, from the log in its folder.
 */
#ifndef TRAIN_CURVE_H
#define TRAIN_CURVE_H

#include "train_options.h"

/* Writes DIR/loss.csv and, with gnuplot, DIR/loss.svg. False after a message. */
bool train_curve_write(const struct train_options *options);

#endif
