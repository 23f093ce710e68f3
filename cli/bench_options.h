/* SPDX-License-Identifier: MIT */
/* bench_options.h - what tarn bench attention was asked to do. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_methods.h"
#include "command.h"

enum { LENGTHS_MAX = 64, PATH_MAX_CHARS = 1024 };

struct bench_options {
    /* as written */
    const char *attention, *feature_map, *range, *layout, *csv, *plot;
    bool causal, forward_only, json, demo;
    size_t length, batch, heads, head_width, value_width, threads, memory_limit, repeat, rounds,
        seed;
    double time_limit;

    /* made of it */
    struct bench_method methods[METHODS_MAX];
    size_t method_count;
    int label_width; /* letters of the longest label */
    size_t lengths[LENGTHS_MAX];
    size_t length_count;
    bool heads_first;
    const char *cpu; /* from TARN_CPU; NULL: best */
    char csv_beside_plot[PATH_MAX_CHARS];
};

/* ARGS_GO_ON or an exit code, as args_read(). */
int bench_options_read(struct bench_options *options);

extern const struct args_option bench_option_rows[];
extern const struct args_table bench_option_tables[];
extern const struct args_group bench_option_groups[];

/* Sequences at this length: those of --batch or, as in the paper's figure, so many that the
 * positions of all of them stay the same. */
size_t bench_options_batch(const struct bench_options *options, size_t length);

/* Prints the library's sentence; the exit code. */
int bench_options_refused(const tarn_error *err);

#endif
