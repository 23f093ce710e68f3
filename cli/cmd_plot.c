/* SPDX-License-Identifier: MIT */
/* cmd_plot.c - tarn plot: the loss curves of several runs in one picture. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "curve.h"
#include "files.h"
#include "plot.h"

enum { WIDTH = 900, HEIGHT = 520, PATH = TARN_PATH_SIZE + 8 };

#define AT(field) offsetof(struct options, field)

struct options {
    struct args_words runs;
    const char *picture;
};

static const struct args_option rows[] = {
    {"RUN", NULL, ARGS_OPERANDS, NULL, AT(runs), 1, 0,
     "training folder, or its log.jsonl or loss.csv"},
    {"o", "FILE", ARGS_TEXT, "loss.svg", AT(picture), 0, 0,
     "picture to write with gnuplot, .svg or .png; the numbers go to a .csv file of the same "
     "name"},
    {0},
};

struct run {
    const char *name;
    struct curve curve;
    const struct curve_point *end;         /* the last with a loss */
    const struct curve_point *last, *best; /* validations; NULL: none */
};

/* ---- Reading ------------------------------------------------------------ */

/* The best validation has the least loss. */
static void read_run(struct run *run, const char *path)
{
    run->name = path;
    if (!curve_read(&run->curve, path))
        leave(EXIT_FAILED);
    for (size_t i = 0; i < run->curve.count; i++) {
        const struct curve_point *const point = &run->curve.points[i];

        if (isfinite(point->loss))
            run->end = point;
        if (!isfinite(point->validation))
            continue;
        run->last = point;
        if (!run->best || point->validation < run->best->validation)
            run->best = point;
    }
    if (!run->end)
        fail("%s has no updates; it must be a training folder, or its log.jsonl or loss.csv",
             path);
}

/* The metric of all runs. Losses of different tasks are of different things: nats of a byte, or
 * of a whole utterance. */
static const char *common_metric(const struct run *runs, size_t count)
{
    const struct run *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!*runs[i].curve.metric)
            continue;
        if (!first)
            first = &runs[i];
        if (strcmp(first->curve.metric, runs[i].curve.metric) != 0)
            refuse("%s is measured in %s and %s in %s; plot runs of different tasks "
                   "separately",
                   first->name, first->curve.metric, runs[i].name, runs[i].curve.metric);
    }
    return first ? first->curve.metric : "metric";
}

/* ---- CSV ---------------------------------------------------------------- */

static void put_run(FILE *file, const struct run *run)
{
    for (size_t i = 0; i < run->curve.count; i++) {
        const struct curve_point *const point = &run->curve.points[i];

        fprintf(file, "\"%s\",%" PRIu64, run->name, point->update);
        curve_put_number(file, point->loss);
        curve_put_number(file, point->smooth);
        curve_put_number(file, point->validation);
        curve_put_number(file, point->metric);
        fputc('\n', file);
    }
}

/* The numbers of "loss.svg" go to "loss.csv". */
static void write_csv(const char *picture, const struct run *runs, size_t count,
                      const char *metric)
{
    char path[PATH];

    snprintf(path, sizeof path, "%.*s.csv", (int)strlen(picture) - 4, picture);
    FILE *const file = fopen(path, "w");

    if (file)
        fprintf(file, "run,update,loss,smoothed_loss,validation_loss,%s\n", metric);
    for (size_t i = 0; file && i < count; i++)
        put_run(file, &runs[i]);
    if (!file || !close_written(file))
        fail("%s: %s", path, strerror(errno));
}

/* ---- Picture ------------------------------------------------------------ */

/* What all runs fall from in their first updates would leave no room for where they differ: the
 * losses from a twentieth of a run on are shown, and those of its validations. */
static void put_ranges(FILE *gnuplot, const struct run *runs, size_t count)
{
    double updates = 0.0, least = (double)NAN, most = (double)NAN;

    for (size_t i = 0; i < count; i++) {
        const struct curve *const c = &runs[i].curve;
        size_t losses = 0;

        updates = fmax(updates, c->updates);
        least = fmin(least, c->least);
        for (size_t j = 0; j < c->count; j++) {
            if (isfinite(c->points[j].loss) && losses++ == c->losses / 20)
                most = fmax(most, c->points[j].smooth);
            if (j >= c->count / 20) {
                least = fmin(least, c->points[j].validation);
                most = fmax(most, c->points[j].validation);
            }
        }
    }
    const double margin = 0.05 * (most - least);

    curve_put_axes(gnuplot, updates, least, most);
    if (margin > 0.0 && most <= 10.0 * least) /* otherwise the axis is logarithmic */
        fprintf(gnuplot, "set yrange [%g:%g]\n", least - margin, most + margin);
}

static void put_plot(FILE *gnuplot, const struct run *runs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        curve_put_data(gnuplot, "line", i, &runs[i].curve, CURVE_COLUMN(smooth));
        curve_put_data(gnuplot, "points", i, &runs[i].curve, CURVE_COLUMN(validation));
    }
    put_ranges(gnuplot, runs, count);
    plot_styles(gnuplot, count);
    fprintf(gnuplot, "plot");
    for (size_t i = 0; i < count; i++) {
        fprintf(gnuplot, "%s $line%zu with lines lt %zu title ", i ? "," : "", i, i + 1);
        plot_quoted(gnuplot, runs[i].name);
        if (runs[i].last)
            fprintf(gnuplot, ", $points%zu with points lt %zu pt 7 notitle", i, i + 1);
    }
    fprintf(gnuplot, ", 1/0 with points pt 7 lc rgb '#606060' title 'validation'\n");
}

/* ---- Table -------------------------------------------------------------- */

static void print_number(double value)
{
    if (isfinite(value))
        printf("  %12.4f", value);
    else
        printf("  %12s", "-");
}

static void print_table(const struct run *runs, size_t count, const char *metric)
{
    int width = 3;

    for (size_t i = 0; i < count; i++)
        width = (int)strlen(runs[i].name) > width ? (int)strlen(runs[i].name) : width;
    printf("%-*s  %8s  %12s  %12s  %12s  %12s\n", width, "run", "updates", "loss", "validation",
           "best", metric);
    for (size_t i = 0; i < count; i++) {
        const struct run *const run = &runs[i];

        printf("%-*s  %8" PRIu64, width, run->name, run->end->update);
        print_number(run->end->smooth);
        print_number(run->last ? run->last->validation : (double)NAN);
        print_number(run->best ? run->best->validation : (double)NAN);
        print_number(run->last ? run->last->metric : (double)NAN);
        printf("\n");
    }
}

/* ---- All of it ---------------------------------------------------------- */

static void run(void *values)
{
    const struct options *const o = values;
    const size_t count = o->runs.count;

    if (!plot_name_is_fit(o->picture) || strlen(o->picture) >= TARN_PATH_SIZE)
        refuse("-o is '%.80s'; it must end in .svg or .png", o->picture);
    struct run *const runs = allocate(count, sizeof *runs, "%zu runs", count);

    for (size_t i = 0; i < count; i++)
        read_run(&runs[i], o->runs.words[i]);
    const char *const metric = common_metric(runs, count);

    print_table(runs, count, metric);
    write_csv(o->picture, runs, count, metric);
    FILE *const gnuplot = plot_open(o->picture, WIDTH, HEIGHT);

    if (gnuplot) {
        put_plot(gnuplot, runs, count);
        if (!plot_close(gnuplot, o->picture))
            leave(EXIT_FAILED);
    }
    for (size_t i = 0; i < count; i++)
        curve_free(&runs[i].curve);
    free(runs);
}

const struct command cmd_plot = {
    .name = "tarn plot",
    .summary = "draw the loss curves of training runs in one picture",
    .help = "Draw the loss curves of training runs in one picture: a line for the smoothed "
            "training loss of each run and points for its validations. Also print the final "
            "and best losses.",
    .options = rows,
    .examples = "tarn plot runs/*\n"
                "tarn plot runs/linear runs/softmax -o compare.png\n",
    .values = sizeof(struct options),
    .run = run,
};
