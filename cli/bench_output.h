/* SPDX-License-Identifier: MIT */
/* bench_output.h - where the results of a benchmark go: to standard output as they come, to a
 * CSV and a plot when all are there. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include "bench.h"

enum { BENCH_PATH = TARN_PATH_SIZE };

struct bench_output {
    const struct bench_run *run;
    struct bench_record *records;
    size_t count, room;
    FILE *csv;                      /* NULL: none */
    char path[BENCH_PATH];          /* of the CSV */
    char temporary[BENCH_PATH + 8]; /* that becomes it; "": it is written itself */
    bool failed;                    /* not enough memory for the records */
};

/* The names of files. ARGS_GO_ON, or an exit code after a message. */
int bench_output_check(struct bench_output *output);

/* Opens the CSV and tries the plot, so that a wrong folder is reported before hours of work;
 * false after a message. */
bool bench_output_open(struct bench_output *output);

void bench_output_put(struct bench_output *output, const struct bench_record *record);

/* Files with all records; fails if all were skipped. The exit code. */
int bench_output_finish(struct bench_output *output);

/* Without bench_output_finish(), files are as before. */
void bench_output_free(struct bench_output *output);

#endif
