/* SPDX-License-Identifier: MIT */
/* bench_row.h - one measurement of one attention at one length: what to run, what came out. */
#ifndef BENCH_ROW_H
#define BENCH_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/tarn.h"

struct bench_row {
    /* what to run */
    const char *label; /* "lsh-4" */
    tarn_attention_desc desc;
    bool forward_only, heads_first; /* heads_first: arrays are (B, H, N, D) */
    size_t repeat;                  /* 0: as often as the noise asks for */

    /* what came out */
    const char *skipped;          /* why it was not run; NULL: it was */
    double forward_s, backward_s; /* best run; NAN if it was not run */
    double flops;                 /* of both; 0: no count is agreed */
    size_t array_bytes;           /* inputs, y and their gradients */
    size_t extra_bytes;           /* saved and workspace: all that a call needs besides */
};

/* ---- bench_row.c -------------------------------------------------------- */

/* Bytes of the arrays, or SIZE_MAX if they cannot be counted. Needs no plan. */
size_t bench_row_array_bytes(const struct bench_row *row);

/* Fills flops and bytes from a plan, without running it. */
tarn_status bench_row_measure_sizes(struct bench_row *row, tarn_error *err);

/* Runs forward and backward on random arrays; the seconds become those of the best run, of this
 * call and those before. */
tarn_status bench_row_run(struct bench_row *row, tarn_error *err);

/* Seconds per forward and backward; NAN if it was not run. */
double bench_row_seconds(const struct bench_row *row);
double bench_row_gflops(const struct bench_row *row); /* NAN: not run, or no count is agreed */
double bench_row_us_per_token(const struct bench_row *row);
double bench_row_seconds_per_sample(const struct bench_row *row);
size_t bench_row_peak_bytes(const struct bench_row *row);
double bench_row_bytes_per_sample(const struct bench_row *row);

#endif
