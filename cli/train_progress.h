/* SPDX-License-Identifier: MIT */
/* train_progress.h - progress of a training run: for people on standard error, for programs as
 * JSON lines on standard output. */
#ifndef TRAIN_PROGRESS_H
#define TRAIN_PROGRESS_H

#include "progress_line.h"
#include "train_options.h"

struct train_progress {
    const struct train_options *options;
    tarn_settings settings; /* of the options, completed from the data */
    struct progress_line line;
    bool started, validated;
    bool fitted;         /* to a time: the settings have the updates planned last */
    bool validating;     /* and the open line says so */
    uint64_t from;       /* updates before this run */
    size_t bytes;        /* planned */
    double begin, mark;  /* seconds: of the start, of the last event */
    double in_updates;   /* seconds, without validations and files */
    double tokens;       /* read in that time */
    double loss, weight; /* moving average, and the sum of its weights */
    tarn_report report;  /* the last */
    tarn_validation validation;
};

struct train_progress train_progress_of(const struct train_options *options);

/* All but `stop`; the context is the progress. */
tarn_events train_progress_events(struct train_progress *progress);

/* Whether --minutes are over, of a run that is not fitted to them. */
bool train_progress_is_over(const struct train_progress *progress);

/* Means over the last updates, and over this run; NAN before there is one. */
double train_progress_loss(const struct train_progress *progress);
double train_progress_speed(const struct train_progress *progress);

#endif
