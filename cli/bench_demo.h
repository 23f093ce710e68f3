/* SPDX-License-Identifier: MIT */
/* bench_demo.h - tarn bench attention --demo: the paper's point in one small table. */
#ifndef BENCH_DEMO_H
#define BENCH_DEMO_H

#include "attention_timing.h"
#include "bench.h"

/* As --attention takes them. */
extern const char demo_methods[];

/* Prints a row when the last of the methods at a length is there. */
void demo_put(const struct bench_run *run, const struct attention_timing *timing);

#endif
