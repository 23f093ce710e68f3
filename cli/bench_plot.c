/* SPDX-License-Identifier: MIT */
/* bench_plot.c - the results of a benchmark as a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "plot.h"

/* What is drawn. */
struct drawing {
    const struct bench_run *run;
    const struct bench_plot *plot;
    const struct bench_record *records;
    size_t count;
};

/* ---- Data --------------------------------------------------------------- */

static double number_at(const struct bench_record *record, const char *key)
{
    const struct bench_cell *const cell = bench_cell(record, key);

    return cell && !record->skipped ? cell->number : (double)NAN;
}

static const char *series_of(const struct drawing *d, size_t i)
{
    return bench_cell(&d->records[i], d->plot->series)->text;
}

static bool is_first_of_series(const struct drawing *d, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (strcmp(series_of(d, j), series_of(d, i)) == 0)
            return false;
    return true;
}

static void put_point(FILE *gnuplot, const struct drawing *d, const struct bench_record *record)
{
    if (record->skipped)
        return;
    fprintf(gnuplot, "%g", number_at(record, d->plot->x));
    for (size_t p = 0; p < BENCH_PANELS && d->plot->panels[p].key; p++)
        fprintf(gnuplot, " %g",
                d->plot->panels[p].scale * number_at(record, d->plot->panels[p].key));
    fputc('\n', gnuplot);
}

/* $m0, $m1, ...: x and the value of every panel. Returns how many. */
static size_t put_data(FILE *gnuplot, const struct drawing *d)
{
    size_t series = 0;

    for (size_t i = 0; i < d->count; i++) {
        if (!is_first_of_series(d, i))
            continue;
        fprintf(gnuplot, "$m%zu << EOD\n", series++);
        for (size_t j = i; j < d->count; j++)
            if (strcmp(series_of(d, j), series_of(d, i)) == 0)
                put_point(gnuplot, d, &d->records[j]);
        fprintf(gnuplot, "EOD\n");
    }
    return series;
}

/* The least and the largest value of a cell. */
struct range {
    double least, most;
};

static struct range range_of(const struct drawing *d, const char *key)
{
    struct range r = {(double)NAN, (double)NAN};

    for (size_t i = 0; i < d->count; i++) {
        r.least = fmin(r.least, number_at(&d->records[i], key));
        r.most = fmax(r.most, number_at(&d->records[i], key));
    }
    return r;
}

/* ---- Looks -------------------------------------------------------------- */

/* The numbers that there are on the axis, each once. */
static void put_axes(FILE *gnuplot, const struct drawing *d)
{
    const struct range x = range_of(d, d->plot->x);
    double before = (double)NAN;

    plot_frame(gnuplot);
    fprintf(gnuplot, "set logscale y 10\nset format y '%%g'\nset mytics 10\nset xlabel ");
    plot_quoted(gnuplot, d->plot->x_label);
    fprintf(gnuplot, "\nset xtics (");
    for (size_t i = 0; i < d->count; i++) {
        const double here = number_at(&d->records[i], d->plot->x);

        if (isfinite(here) && here != before) {
            fprintf(gnuplot, "%s%.0f", isfinite(before) ? ", " : "", here);
            before = here;
        }
    }
    fprintf(gnuplot, ")\n");
    if (x.least > 0.0)
        fprintf(gnuplot, "set logscale x 2\nset xrange [%g:%g]\n", x.least / 1.15,
                x.most * 1.15);
}

static void put_title(FILE *gnuplot, const struct bench_run *run)
{
    char title[480];

    snprintf(title, sizeof title, "%s (%s, %zu thread%s)", run->title, run->processor,
             run->threads, plural(run->threads));
    fprintf(gnuplot, "set multiplot title ");
    plot_quoted(gnuplot, title);
    fprintf(gnuplot, "\nunset key\n");
}

/* Where the next panel is, in fractions of the picture. */
static void put_place(FILE *gnuplot, double left, double right, double bottom, double top)
{
    fprintf(gnuplot, "set lmargin at screen %g\nset rmargin at screen %g\n", left, right);
    fprintf(gnuplot, "set bmargin at screen %g\nset tmargin at screen %g\n", bottom, top);
}

/* gnuplot finds the range, except for values that are all alike, as of a single row. */
static void put_range(FILE *gnuplot, const struct drawing *d, size_t panel)
{
    const struct range y = range_of(d, d->plot->panels[panel].key);
    const double scale = d->plot->panels[panel].scale;

    if (y.most < 1.01 * y.least)
        fprintf(gnuplot, "set yrange [%g:%g]\n", scale * y.least / 2.0, scale * y.most * 2.0);
    else
        fprintf(gnuplot, "set yrange [*:*]\n");
}

static void put_panel(FILE *gnuplot, const struct drawing *d, size_t panel, size_t series)
{
    put_range(gnuplot, d, panel);
    fprintf(gnuplot, "set ylabel '%s' offset 1\nplot", d->plot->panels[panel].label);
    for (size_t i = 0; i < series; i++)
        fprintf(gnuplot, "%s $m%zu using 1:%zu with linespoints lt %zu", i ? "," : "", i,
                panel + 2, i + 1);
    fprintf(gnuplot, "\n");
}

/* A panel of its own, whose lines run outside it: gnuplot fits a legend to the panel it is in,
 * and this one is as wide as the picture. */
static void put_legend(FILE *gnuplot, const struct drawing *d)
{
    size_t series = 0;

    fprintf(gnuplot, "unset logscale\nunset tics\nunset border\nunset grid\nunset xlabel\n"
                     "unset ylabel\nset key center center horizontal Left reverse maxrows 1 "
                     "samplen 2.5\nplot [0:1][0:1]");
    for (size_t i = 0; i < d->count; i++) {
        if (!is_first_of_series(d, i))
            continue;
        fprintf(gnuplot, "%s 2 with linespoints lt %zu title ", i ? "," : "", series + 1);
        plot_quoted(gnuplot, series_of(d, i));
        series++;
    }
    fprintf(gnuplot, "\n");
}

static void put_script(FILE *gnuplot, const struct drawing *d)
{
    const size_t series = put_data(gnuplot, d);

    plot_styles(gnuplot, series);
    put_axes(gnuplot, d);
    put_title(gnuplot, d->run);
    for (size_t p = 0; p < BENCH_PANELS && d->plot->panels[p].key; p++) {
        put_place(gnuplot, p == 0 ? 0.085 : 0.575, p == 0 ? 0.48 : 0.975, 0.23, 0.9);
        put_panel(gnuplot, d, p, series);
    }
    put_place(gnuplot, 0.02, 0.98, 0.01, 0.09);
    put_legend(gnuplot, d);
    fprintf(gnuplot, "unset multiplot\n");
}

void bench_plot_write(const char *path, const struct bench_run *run,
                      const struct bench_record *records, size_t count)
{
    const struct drawing drawing = {run, &run->bench->plot, records, count};
    FILE *const gnuplot = plot_open(path, 1100, 480);

    if (!gnuplot)
        return;
    put_script(gnuplot, &drawing);
    if (!plot_close(gnuplot, path))
        leave(EXIT_FAILED);
}
