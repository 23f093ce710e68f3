/* SPDX-License-Identifier: MIT */
#include "bench_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot.h"

/* ---- data --------------------------------------------------------------- */

static double milliseconds(const struct bench_row *row)
{
    return 1e3 * bench_row_seconds_per_sample(row);
}

static double mebibytes(const struct bench_row *row)
{
    return bench_row_bytes_per_sample(row) / 1048576.0;
}

static bool is_first_of_label(const struct bench_row *rows, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(rows[j].label, rows[i].label) == 0)
            return false;
    return true;
}

/* $m0, $m1, ...: length, milliseconds and MiB of one method's rows. Returns how many. */
static size_t put_data(FILE *gnuplot, const struct bench_row *rows, size_t count)
{
    size_t methods = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_first_of_label(rows, i))
            continue;
        fprintf(gnuplot, "$m%zu << EOD\n", methods++);
        for (size_t j = i; j < count; j++)
            if (strcmp(rows[j].label, rows[i].label) == 0 && !rows[j].skipped)
                fprintf(gnuplot, "%zu %g %g\n", rows[j].desc.queries, milliseconds(&rows[j]),
                        mebibytes(&rows[j]));
        fprintf(gnuplot, "EOD\n");
    }
    return methods;
}

/* ---- looks -------------------------------------------------------------- */

static void put_axes(FILE *gnuplot, const struct bench_row *rows, size_t count)
{
    const size_t least = rows[0].desc.queries, most = rows[count - 1].desc.queries;

    plot_frame(gnuplot);
    fprintf(gnuplot,
            "set logscale x 2\nset logscale y 10\n"
            "set format y '%%g'\nset mytics 10\n"
            "set xlabel 'sequence length N'\nset xrange [%g:%g]\nset xtics (",
            (double)least / 1.15, (double)most * 1.15);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || rows[i].desc.queries != rows[i - 1].desc.queries)
            fprintf(gnuplot, "%s%zu", i ? ", " : "", rows[i].desc.queries);
    fprintf(gnuplot, ")\n");
}

static void put_title(FILE *gnuplot, const struct bench_machine *machine,
                      const struct bench_row *row)
{
    char subject[128], title[320];

    report_subject(subject, sizeof subject, row);
    snprintf(title, sizeof title, "Attention, %s (%s, %zu thread%s)", subject,
             machine->processor, machine->threads, machine->threads == 1 ? "" : "s");
    fprintf(gnuplot, "set multiplot title ");
    plot_quoted(gnuplot, title);
    fprintf(gnuplot, "\nunset key\n");
}

/* Where the next panel stands, in fractions of the picture. */
static void put_place(FILE *gnuplot, double left, double right, double bottom, double top)
{
    fprintf(gnuplot, "set lmargin at screen %g\nset rmargin at screen %g\n", left, right);
    fprintf(gnuplot, "set bmargin at screen %g\nset tmargin at screen %g\n", bottom, top);
}

/* gnuplot finds the range, but for values all alike, as of a single row. */
static void put_range(FILE *gnuplot, const struct bench_row *rows, size_t count,
                      double (*value)(const struct bench_row *row))
{
    double least = (double)NAN, largest = (double)NAN;

    for (size_t i = 0; i < count; i++) {
        if (rows[i].skipped)
            continue;
        least = fmin(least, value(&rows[i]));
        largest = fmax(largest, value(&rows[i]));
    }
    if (largest < 1.01 * least)
        fprintf(gnuplot, "set yrange [%g:%g]\n", least / 2.0, largest * 2.0);
    else
        fprintf(gnuplot, "set yrange [*:*]\n");
}

static void put_panel(FILE *gnuplot, size_t methods, int column, const char *label)
{
    fprintf(gnuplot, "set ylabel '%s' offset 1\nplot", label);
    for (size_t i = 0; i < methods; i++)
        fprintf(gnuplot, "%s $m%zu using 1:%d with linespoints lt %zu", i ? "," : "", i, column,
                i + 1);
    fprintf(gnuplot, "\n");
}

/* A panel of its own, whose lines run outside it: gnuplot fits a legend to the panel it is in,
 * and this one is as wide as the picture. */
static void put_legend(FILE *gnuplot, const struct bench_row *rows, size_t count)
{
    size_t methods = 0;

    fprintf(gnuplot, "unset logscale\nunset tics\nunset border\nunset grid\nunset xlabel\n"
                     "unset ylabel\nset key center center horizontal Left reverse maxrows 1 "
                     "samplen 2.5\nplot [0:1][0:1]");
    for (size_t i = 0; i < count; i++) {
        if (!is_first_of_label(rows, i))
            continue;
        fprintf(gnuplot, "%s 2 with linespoints lt %zu title ", i ? "," : "", methods + 1);
        plot_quoted(gnuplot, rows[i].label);
        methods++;
    }
    fprintf(gnuplot, "\n");
}

static void put_script(FILE *gnuplot, const struct bench_machine *machine,
                       const struct bench_row *rows, size_t count)
{
    const size_t methods = put_data(gnuplot, rows, count);

    plot_styles(gnuplot, methods);
    put_axes(gnuplot, rows, count);
    put_title(gnuplot, machine, &rows[0]);
    put_place(gnuplot, 0.085, 0.48, 0.23, 0.9);
    put_range(gnuplot, rows, count, milliseconds);
    put_panel(gnuplot, methods, 2, "time per sample, milliseconds");
    put_place(gnuplot, 0.575, 0.975, 0.23, 0.9);
    put_range(gnuplot, rows, count, mebibytes);
    put_panel(gnuplot, methods, 3, "peak memory per sample, MiB");
    put_place(gnuplot, 0.02, 0.98, 0.01, 0.09);
    put_legend(gnuplot, rows, count);
    fprintf(gnuplot, "unset multiplot\n");
}

bool plot_write(const char *path, const struct bench_machine *machine,
                const struct bench_row *rows, size_t count)
{
    FILE *const gnuplot = plot_open(path, 1100, 480);

    if (!gnuplot)
        return true;
    put_script(gnuplot, machine, rows, count);
    return plot_close(gnuplot, path);
}
