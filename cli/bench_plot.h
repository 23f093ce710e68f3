/* SPDX-License-Identifier: MIT */
/* bench_plot.h - results against a number, one line per method, as in Figure 1 of the paper. */
#ifndef BENCH_PLOT_H
#define BENCH_PLOT_H

#include "bench_record.h"

struct bench_run;

enum { BENCH_PANELS = 2 };

/* Which cells of the records are drawn. */
struct bench_plot {
    const char *x, *x_label; /* a number */
    const char *series;      /* a text: one line for each */
    struct {
        const char *key, *label;
        double scale;       /* of the axis: label units per unit of the cell */
    } panels[BENCH_PANELS]; /* side by side; a NULL key ends them */
};

/* False if gnuplot could not write the picture. Without gnuplot a message, and true: the
 * numbers are in the CSV. Skipped records are left out; one at least is not. */
bool bench_plot_write(const char *path, const struct bench_run *run,
                      const struct bench_record *records, size_t count);

#endif
