/* SPDX-License-Identifier: MIT */
/* data_progress.h - progress of a download, on standard error. */
#ifndef DATA_PROGRESS_H
#define DATA_PROGRESS_H

#include "progress_line.h"
#include "tarn/data.h"

struct data_progress {
    const char *folder; /* of all sets */
    struct progress_line line;
    const tarn_data_file *file; /* the last one reported */
    uint64_t from;              /* its bytes that were there before */
    double begin;               /* seconds */
};

struct data_progress data_progress_in(const char *folder);

/* The context is the progress. */
tarn_data_events data_progress_events(struct data_progress *progress);

#endif
