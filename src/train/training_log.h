/* SPDX-License-Identifier: MIT */
/* training_log.h - one JSON object per line: every update and every validation. */
#ifndef TN_TRAINING_LOG_H
#define TN_TRAINING_LOG_H

#include <stdio.h>

#include "base/base.h"
#include "tarn/train.h"

struct tn_log {
    FILE *file;
    char *path;
    double start, cpu_start; /* seconds of the clock and of the processors when it was opened */
};

/* Goes on behind the last line of an update up to `updates`; what lies behind it, from updates
 * after the checkpoint that is resumed from, is removed. */
tarn_status tn_log_open(struct tn_log *log, const char *path, uint64_t updates,
                        tarn_error *err);

tarn_status tn_log_update(struct tn_log *log, const tarn_report *report, double tokens_per_s,
                          tarn_error *err);
tarn_status tn_log_validation(struct tn_log *log, const tarn_validation *validation,
                              tarn_error *err);

/* What was written is on the disk. */
tarn_status tn_log_sync(struct tn_log *log, tarn_error *err);

void tn_log_close(struct tn_log *log); /* accepts zeros */

#endif
