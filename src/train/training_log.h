/* SPDX-License-Identifier: MIT */
/* training_log.h - one JSON object per line: every update and every validation. */
#ifndef TN_TRAINING_LOG_H
#define TN_TRAINING_LOG_H

#include "base/base.h"
#include "tarn/train.h"

struct tn_log {
    int file; /* -1: closed */
    char *path;
    char *waiting;           /* lines that could not be written yet */
    size_t waits;            /* bytes of them */
    bool lost;               /* a line that there was no memory for */
    double start, cpu_start; /* seconds of the clock and of the processors when it was opened */
};

/* A new file, or for a run that is resumed the one that is there: it continues after the last
 * line of an update up to `updates`, and what follows, from updates after the checkpoint, is
 * removed. What is not a log of a run, or a link, is refused and stays as it is. */
tarn_status tn_log_open(struct tn_log *log, const char *path, bool resumes, uint64_t updates,
                        tarn_error *err);

/* A line that cannot be written waits for the next call: a failure is reported, and nothing is
 * lost if it does not last. */
tarn_status tn_log_update(struct tn_log *log, const tarn_report *report, double tokens_per_s,
                          tarn_error *err);
tarn_status tn_log_validation(struct tn_log *log, const tarn_validation *validation,
                              tarn_error *err);

/* All lines are on the disk. */
tarn_status tn_log_sync(struct tn_log *log, tarn_error *err);

void tn_log_close(struct tn_log *log); /* accepts one that is closed */

#endif
