/* SPDX-License-Identifier: MIT */
/* cmd_plot.c - tarn plot: the loss curves of several runs in one picture. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "curve.h"
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
    struct curve_drawing drawing;
    const struct curve_point *last, *best; /* validations; NULL: none */
};

/* ---- Reading ------------------------------------------------------------ */

/* The best has the least loss. */
static void find_validations(struct run *run)
{
    for (size_t i = 0; i < run->curve.count; i++) {
        const struct curve_point *const point = &run->curve.points[i];

        if (!isfinite(point->validation))
            continue;
        run->last = point;
        if (!run->best || point->validation < run->best->validation)
            run->best = point;
    }
}

static bool read_run(struct run *run, const char *path)
{
    run->name = path;
    if (!curve_read(&run->curve, path))
        return false;
    if (!curve_draw(&run->drawing, &run->curve))
        command_fail(&cmd_plot, "not enough memory for %s", path);
    else if (run->drawing.count == 0)
        command_fail(&cmd_plot,
                     "%s has no updates; it must be a training folder, or its log.jsonl or "
                     "loss.csv",
                     path);
    else
        find_validations(run);
    return run->drawing.count > 0;
}

/* Losses of different tasks are of different things: nats of a byte, or of a whole utterance.
 */
static bool are_comparable(const struct run *runs, size_t count, const char **metric)
{
    const struct run *first = NULL;

    for (size_t i = 0; i < count; i++) {
        if (!*runs[i].curve.metric)
            continue;
        if (!first)
            first = &runs[i];
        if (strcmp(first->curve.metric, runs[i].curve.metric) != 0) {
            command_refuse(&cmd_plot,
                           "%s is measured in %s and %s in %s; plot runs of different tasks "
                           "separately",
                           first->name, first->curve.metric, runs[i].name,
                           runs[i].curve.metric);
            return false;
        }
    }
    *metric = first ? first->curve.metric : "metric";
    return true;
}

/* ---- CSV ---------------------------------------------------------------- */

/* Updates without a loss have no smoothed one: `drawn` counts those that have. */
static void put_run(FILE *file, const struct run *run)
{
    size_t drawn = 0;

    for (size_t i = 0; i < run->curve.count; i++) {
        const struct curve_point *const point = &run->curve.points[i];
        const bool is_drawn = isfinite(point->loss);

        fprintf(file, "\"%s\",%" PRIu64, run->name, point->update);
        curve_put_number(file, point->loss);
        curve_put_number(file, is_drawn ? run->drawing.smooth[drawn++] : (double)NAN);
        curve_put_number(file, point->validation);
        curve_put_number(file, point->metric);
        fputc('\n', file);
    }
}

static bool write_csv(const char *path, const struct run *runs, size_t count,
                      const char *metric)
{
    FILE *const file = fopen(path, "w");
    bool good = file != NULL;

    if (file) {
        fprintf(file, "run,update,loss,smoothed_loss,validation_loss,%s\n", metric);
        for (size_t i = 0; i < count; i++)
            put_run(file, &runs[i]);
        good = ferror(file) == 0;
        good = fclose(file) == 0 && good;
    }
    if (!good)
        command_fail(&cmd_plot, "%s: %s", path, strerror(errno));
    return good;
}

/* ---- Picture ------------------------------------------------------------ */

/* Ranges of all axes. */
struct ranges {
    double updates, least, most;
};

/* What all runs fall from in their first updates would leave no room for where they differ: the
 * losses from a twentieth of a run on are shown, and those of its validations. */
static struct ranges ranges_of(const struct run *runs, size_t count)
{
    struct ranges r = {0.0, (double)NAN, (double)NAN};

    for (size_t i = 0; i < count; i++) {
        const struct curve_drawing *const d = &runs[i].drawing;
        const struct curve *const c = &runs[i].curve;

        r.updates = fmax(r.updates, d->update[d->count - 1]);
        r.least = fmin(r.least, d->least);
        r.most = fmax(r.most, d->smooth[d->count / 20]);
        for (size_t j = c->count / 20; j < c->count; j++) {
            r.least = fmin(r.least, c->points[j].validation);
            r.most = fmax(r.most, c->points[j].validation);
        }
    }
    return r;
}

static void put_ranges(FILE *gnuplot, const struct ranges *r)
{
    const double margin = 0.05 * (r->most - r->least);

    curve_put_axes(gnuplot, r->updates, r->least, r->most);
    if (margin > 0.0 && r->most <= 10.0 * r->least) /* otherwise the axis is logarithmic */
        fprintf(gnuplot, "set yrange [%g:%g]\n", r->least - margin, r->most + margin);
}

static void put_data(FILE *gnuplot, const struct run *runs, size_t count)
{
    const struct ranges ranges = ranges_of(runs, count);
    char name[32];

    for (size_t i = 0; i < count; i++) {
        const struct curve_drawing *const d = &runs[i].drawing;

        snprintf(name, sizeof name, "line%zu", i);
        curve_put_line(gnuplot, name, d, d->smooth);
        snprintf(name, sizeof name, "points%zu", i);
        curve_put_validations(gnuplot, name, &runs[i].curve);
    }
    put_ranges(gnuplot, &ranges);
}

static void put_plot(FILE *gnuplot, const struct run *runs, size_t count)
{
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

/* True, after a message, if gnuplot is not installed: the numbers are in the CSV. */
static bool write_picture(const char *path, const struct run *runs, size_t count)
{
    FILE *const gnuplot = plot_open(path, WIDTH, HEIGHT);

    if (!gnuplot)
        return true;
    put_data(gnuplot, runs, count);
    put_plot(gnuplot, runs, count);
    return plot_close(gnuplot, path);
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
        const struct curve_drawing *const d = &run->drawing;

        printf("%-*s  %8.0f", width, run->name, d->update[d->count - 1]);
        print_number(d->smooth[d->count - 1]);
        print_number(run->last ? run->last->validation : (double)NAN);
        print_number(run->best ? run->best->validation : (double)NAN);
        print_number(run->last ? run->last->metric : (double)NAN);
        printf("\n");
    }
}

/* ---- All of it ---------------------------------------------------------- */

static bool read_all(struct run *runs, const struct options *o)
{
    bool good = true;

    for (size_t i = 0; i < o->runs.count && good; i++)
        good = read_run(&runs[i], o->runs.words[i]);
    return good;
}

static int plot_all(struct run *runs, const struct options *o)
{
    const size_t count = o->runs.count;
    const char *metric;
    char csv[PATH];

    if (!read_all(runs, o))
        return EXIT_FAILED;
    if (!are_comparable(runs, count, &metric))
        return EXIT_USAGE;
    snprintf(csv, sizeof csv, "%.*s.csv", (int)strlen(o->picture) - 4, o->picture);
    print_table(runs, count, metric);
    return write_csv(csv, runs, count, metric) && write_picture(o->picture, runs, count)
               ? EXIT_DONE
               : EXIT_FAILED;
}

static int run(void *values)
{
    const struct options *const o = values;

    if (!plot_name_is_fit(o->picture) || strlen(o->picture) >= TARN_PATH_SIZE)
        return command_refuse(&cmd_plot, "-o is '%.80s'; it must end in .svg or .png",
                              o->picture);
    struct run *const runs = calloc(o->runs.count, sizeof *runs);

    if (!runs)
        return command_fail(&cmd_plot, "not enough memory for %zu runs", o->runs.count);
    const int code = plot_all(runs, o);

    for (size_t i = 0; i < o->runs.count; i++) {
        curve_drawing_free(&runs[i].drawing);
        curve_free(&runs[i].curve);
    }
    free(runs);
    return code;
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
