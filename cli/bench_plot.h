/* SPDX-License-Identifier: MIT */
/* bench_plot.h - time and memory per sample against the length, as in Figure 1 of the paper. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_report.h"

/* True for names that end in .svg or .png: gnuplot is told which by the name. */
bool plot_name_is_fit(const char *path);

/* So that a wrong folder is known before the benchmark and not after it. Sets errno. */
bool plot_is_writable(const char *path);

/* False if gnuplot could not write the picture. Where there is no gnuplot that is said, and
 * true: the numbers are in the CSV. Skipped rows are left out; one at least was run. */
bool plot_write(const char *path, const struct bench_machine *machine,
                const struct bench_row *rows, size_t count);

#endif
