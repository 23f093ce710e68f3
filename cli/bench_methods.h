/* SPDX-License-Identifier: MIT */
/* bench_methods.h - which attentions a benchmark compares, and what it calls them. */
#ifndef BENCH_METHODS_H
#define BENCH_METHODS_H

#include <stdbool.h>
#include <stddef.h>

enum { METHODS_MAX = 16, SPEC_MAX = 128 };

struct bench_method {
    char label[SPEC_MAX]; /* "lsh-4" */
    char spec[SPEC_MAX];  /* "lsh:rounds=4" */
    bool has_map;         /* takes --feature-map */
};

/* The methods of Figure 1, as --attention takes them. */
extern const char bench_methods_figure[];

/* Splits "spec;spec;..." into `methods`; false after a message if there are too many. The
 * library checks the specs themselves. */
bool bench_methods_read(struct bench_method *methods, size_t *count, const char *text);

#endif
