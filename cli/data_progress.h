/* SPDX-License-Identifier: MIT */
/* data_progress.h - what fetching tells as it goes, on standard error. */
#ifndef DATA_PROGRESS_H
#define DATA_PROGRESS_H

#include "tarn/data.h"

struct data_progress {
    const char *folder; /* of all sets */
    bool on_terminal, line_open;
    const tarn_data_file *file; /* the last that was told of */
    uint64_t from;              /* its bytes that were there before */
    double begin, shown;        /* seconds */
};

struct data_progress data_progress_in(const char *folder);

/* The context is the progress. */
tarn_data_events data_progress_events(struct data_progress *progress);

/* Ends a line that is being rewritten. */
void data_progress_end_line(struct data_progress *progress);

#endif
