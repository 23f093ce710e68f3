/* SPDX-License-Identifier: MIT */
/* bench_plot.h - time and memory per sample against the length, as in Figure 1 of the paper. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_report.h"

/* False if gnuplot could not write the picture. Where there is no gnuplot that is said, and
 * true: the numbers are in the CSV. Skipped rows are left out; one at least was run. */
bool plot_write(const char *path, const struct bench_machine *machine,
                const struct bench_row *rows, size_t count);

#endif
