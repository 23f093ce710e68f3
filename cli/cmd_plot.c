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
#include "output.h"
#include "plot.h"

enum { PATH = TARN_PATH_SIZE + 8 };

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

/* ---- Reading ------------------------------------------------------------ */

static void read_run(struct curve *run, const char *path)
{
    if (!curve_read(run, path))
        leave(EXIT_FAILED);
    if (run->losses == 0)
        fail("%s has no updates; it must be a training folder, or its log.jsonl or loss.csv",
             path);
}

/* The metric of all runs. Losses of different tasks are of different things: nats of a byte, or
 * of a whole utterance. */
static const char *common_metric(const struct curve *runs, size_t count)
{
    const struct curve *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!*runs[i].metric)
            continue;
        if (!first)
            first = &runs[i];
        if (strcmp(first->metric, runs[i].metric) != 0)
            refuse("%s is measured in %s and %s in %s; plot runs of different tasks "
                   "separately",
                   first->name, first->metric, runs[i].name, runs[i].metric);
    }
    return first ? first->metric : "metric";
}

/* ---- CSV ---------------------------------------------------------------- */

static void put_run(FILE *file, const struct curve *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct curve_point *const point = &run->points[i];

        fprintf(file, "\"%s\",%" PRIu64, run->name, point->update);
        curve_put_number(file, point->loss);
        curve_put_number(file, point->smooth);
        curve_put_number(file, point->validation);
        curve_put_number(file, point->metric);
        fputc('\n', file);
    }
}

/* The numbers of "loss.svg" go to "loss.csv". */
static void write_csv(const char *picture, const struct curve *runs, size_t count,
                      const char *metric)
{
    char path[PATH];

    snprintf(path, sizeof path, "%.*s.csv", (int)strlen(picture) - 4, picture);
    FILE *const file = output_begin(path);

    fprintf(file, "run,update,loss,smoothed_loss,validation_loss,%s\n", metric);
    for (size_t i = 0; i < count; i++)
        put_run(file, &runs[i]);
    output_end(file);
}

/* ---- Table -------------------------------------------------------------- */

static void print_number(double value)
{
    if (isfinite(value))
        printf("  %12.4f", value);
    else
        printf("  %12s", "-");
}

/* The best validation has the least loss. */
static void print_run(const struct curve *run, int width)
{
    const double none = (double)NAN;
    struct curve_point last = {0, none, none, none, none, none};
    double best = none;

    for (size_t i = 0; i < run->count; i++) {
        const struct curve_point *const point = &run->points[i];

        if (isfinite(point->loss))
            last.smooth = point->smooth;
        best = fmin(best, point->validation);
        if (isfinite(point->validation)) {
            last.validation = point->validation;
            last.metric = point->metric;
        }
    }
    printf("%-*s  %8.0f", width, run->name, run->updates);
    print_number(last.smooth);
    print_number(last.validation);
    print_number(best);
    print_number(last.metric);
    printf("\n");
}

static void print_table(const struct curve *runs, size_t count, const char *metric)
{
    int width = 3;

    for (size_t i = 0; i < count; i++)
        width = (int)larger(strlen(runs[i].name), (size_t)width);
    printf("%-*s  %8s  %12s  %12s  %12s  %12s\n", width, "run", "updates", "loss", "validation",
           "best", metric);
    for (size_t i = 0; i < count; i++)
        print_run(&runs[i], width);
}

/* ---- All of it ---------------------------------------------------------- */

static void run(void *values)
{
    const struct options *const o = values;
    const size_t count = o->runs.count;

    if (!plot_name_is_fit(o->picture) || strlen(o->picture) >= TARN_PATH_SIZE)
        refuse("-o is '%.80s'; it must end in .svg or .png", o->picture);
    struct curve *const runs = allocate(count, sizeof *runs, "%zu runs", count);

    for (size_t i = 0; i < count; i++)
        read_run(&runs[i], o->runs.words[i]);
    const char *const metric = common_metric(runs, count);

    print_table(runs, count, metric);
    write_csv(o->picture, runs, count, metric);
    if (!curve_draw(o->picture, runs[0].name, runs, count))
        leave(EXIT_FAILED);
    for (size_t i = 0; i < count; i++)
        curve_free(&runs[i]);
    free(runs);
}

const struct command cmd_plot = {
    .name = "tarn plot",
    .summary = "draw the loss curves of training runs in one picture",
    .help = "Draw the loss curves of training runs in one picture: a line for the smoothed "
            "training loss of each run and points for its validations; of a single run also "
            "every update. Also print the final and best losses.",
    .options = rows,
    .examples = "tarn plot runs/*\n"
                "tarn plot runs/linear runs/softmax -o compare.png\n",
    .values = sizeof(struct options),
    .run = run,
};
