/* SPDX-License-Identifier: MIT */
/* attention_timing.h - the time and memory of one attention at one length: what to run, what
 * came out, and the table of tarn bench attention --demo. */
#ifndef ATTENTION_TIMING_H
#define ATTENTION_TIMING_H

#include "bench.h"

struct attention_timing {
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

/* Bytes of the arrays, or SIZE_MAX if they cannot be counted. Needs no plan. */
size_t attention_timing_array_bytes(const struct attention_timing *timing);

/* Fills flops and bytes from a plan, without running it. */
tarn_status attention_timing_plan(struct attention_timing *timing, tarn_error *err);

/* Runs forward and backward on random arrays; the seconds become those of the best run, of this
 * call and those before. */
void attention_timing_run(struct attention_timing *timing);

/* Seconds per forward and backward; NAN if it was not run. */
double attention_timing_seconds(const struct attention_timing *timing);

/* Of arrays and all else; SIZE_MAX: cannot be counted. */
size_t attention_timing_peak_bytes(const struct attention_timing *timing);

/* The paper's point in one small table. The methods as --attention takes them; a row is printed
 * when the last of them at a length is there. */
extern const char demo_methods[];
void demo_put(const struct bench_run *run, const struct attention_timing *timing);

#endif
