/* SPDX-License-Identifier: MIT */
#include "train_curve.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"

enum { PATH = TARN_PATH_SIZE + 32, DOTS = 2000 };

/* An update, and the validation after it; NAN: there was none. */
struct point {
    uint64_t update;
    double loss, rate, validation, metric;
};

struct curve {
    const struct train_options *options;
    const char *metric; /* its name */
    struct point *points;
    size_t count, room;
};

/* ---- The log ------------------------------------------------------------ */

static double number(const json_t *object, const char *name)
{
    const json_t *const value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The point of an update: the last one, or a new one. NULL: no memory. */
static struct point *point_at(struct curve *c, uint64_t update)
{
    if (c->count > 0 && c->points[c->count - 1].update == update)
        return &c->points[c->count - 1];
    if (c->count == c->room) {
        const size_t room = 2 * c->room + 1024;
        struct point *const more = realloc(c->points, room * sizeof *more);

        if (!more)
            return NULL;
        c->points = more;
        c->room = room;
    }
    const double none = (double)NAN;

    c->points[c->count] = (struct point){update, none, none, none, none};
    return &c->points[c->count++];
}

static bool take_line(struct curve *c, const char *line, size_t length)
{
    json_t *const object = json_loadb(line, length, 0, NULL);
    const json_t *const update = json_object_get(object, "update");
    struct point *point = NULL;

    if (json_is_integer(update) &&
        (point = point_at(c, (uint64_t)json_integer_value(update))) != NULL) {
        if (json_object_get(object, "validation_loss")) {
            point->validation = number(object, "validation_loss");
            point->metric = number(object, c->metric);
        } else {
            point->loss = number(object, "loss");
            point->rate = number(object, "rate");
        }
    }
    json_decref(object);
    return point != NULL;
}

static bool complain(const char *path)
{
    fprintf(stderr, "tarn: %s: %s\n", path, strerror(errno));
    return false;
}

static bool read_log(struct curve *c)
{
    char path[PATH], *line = NULL;
    size_t size = 0;
    ssize_t length;

    snprintf(path, sizeof path, "%s/log.jsonl", c->options->folder);
    FILE *const file = fopen(path, "r");

    if (!file)
        return complain(path);
    while ((length = getline(&line, &size, file)) > 0 && take_line(c, line, (size_t)length))
        ;
    free(line);
    fclose(file);
    return true;
}

/* ---- CSV ---------------------------------------------------------------- */

static void put_number(FILE *file, double value)
{
    fputc(',', file);
    if (isfinite(value))
        fprintf(file, "%.9g", value);
}

static bool write_csv(const struct curve *c)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/loss.csv", c->options->folder);
    FILE *const file = fopen(path, "w");

    if (!file)
        return complain(path);
    fprintf(file, "update,loss,rate,validation_loss,%s\n", c->metric);
    for (size_t i = 0; i < c->count; i++) {
        const struct point *const point = &c->points[i];

        fprintf(file, "%" PRIu64, point->update);
        put_number(file, point->loss);
        put_number(file, point->rate);
        put_number(file, point->validation);
        put_number(file, point->metric);
        fputc('\n', file);
    }
    const bool failed = ferror(file) != 0;

    return fclose(file) == 0 && !failed ? true : complain(path);
}

/* ---- Picture ------------------------------------------------------------ */

/* What is drawn: updates whose loss is a number. */
struct drawing {
    size_t count, validations;
    double *update, *loss, *smooth;
    double least, most; /* of the smooth line */
};

static void drawing_free(struct drawing *d)
{
    free(d->update);
    free(d->loss);
    free(d->smooth);
}

static bool drawing_make(struct drawing *d, const struct curve *c)
{
    d->update = calloc(c->count + 1, sizeof *d->update);
    d->loss = calloc(c->count + 1, sizeof *d->loss);
    d->smooth = calloc(c->count + 1, sizeof *d->smooth);
    if (!d->update || !d->loss || !d->smooth)
        return false;
    for (size_t i = 0; i < c->count; i++) {
        d->validations += isfinite(c->points[i].validation) ? 1 : 0;
        if (!isfinite(c->points[i].loss))
            continue;
        d->update[d->count] = (double)c->points[i].update;
        d->loss[d->count++] = c->points[i].loss;
    }
    return true;
}

/* Means over neighbours on both sides, so that the line does not lag: as many before as behind,
 * but at the end, where there are only those before. */
static void smoothen(struct drawing *d)
{
    const size_t widest = d->count / 50 + 1;
    double sum = 0.0;
    size_t from = 0, to = 0; /* what the sum is of */

    for (size_t i = 0; i < d->count; i++) {
        const size_t before = i < widest ? i : widest;
        const size_t end = i + before + 1 < d->count ? i + before + 1 : d->count;

        while (to < end)
            sum += d->loss[to++];
        while (from < i - before)
            sum -= d->loss[from++];
        d->smooth[i] = sum / (double)(to - from);
        d->least = i == 0 ? d->smooth[i] : fmin(d->least, d->smooth[i]);
        d->most = i == 0 ? d->smooth[i] : fmax(d->most, d->smooth[i]);
    }
}

static void put_line(FILE *gnuplot, const char *name, const struct drawing *d,
                     const double *values, size_t most)
{
    const size_t stride = d->count / most + 1;

    fprintf(gnuplot, "$%s << EOD\n", name);
    for (size_t i = 0; i < d->count; i += stride)
        fprintf(gnuplot, "%.0f %.9g\n", d->update[i], values[i]);
    if (d->count > 0) /* the end is always there */
        fprintf(gnuplot, "%.0f %.9g\n", d->update[d->count - 1], values[d->count - 1]);
    fprintf(gnuplot, "EOD\n");
}

static void put_validations(FILE *gnuplot, const struct curve *c)
{
    fprintf(gnuplot, "$validation << EOD\n");
    for (size_t i = 0; i < c->count; i++)
        if (isfinite(c->points[i].validation))
            fprintf(gnuplot, "%" PRIu64 " %.9g\n", c->points[i].update,
                    c->points[i].validation);
    fprintf(gnuplot, "EOD\n");
}

static void put_title(FILE *gnuplot, const struct train_options *o)
{
    char model[TRAIN_MODEL_SIZE], title[TARN_NAME_SIZE + TRAIN_MODEL_SIZE + 2];

    train_options_model(model, &o->config);
    snprintf(title, sizeof title, "%s: %s", o->settings.task, model);
    fprintf(gnuplot, "set title ");
    plot_quoted(gnuplot, title);
    fprintf(gnuplot, "\n");
}

/* A loss that falls by more than ten times is read on a logarithmic axis. gnuplot finds the
 * range, but for values all alike. */
static void put_axes(FILE *gnuplot, const struct drawing *d)
{
    plot_frame(gnuplot);
    fprintf(gnuplot,
            "set xlabel 'update'\nset ylabel 'loss, nats'\nset format y '%%g'\n"
            "set xrange [0:%.0f]\nset key top right Left reverse\n",
            d->update[d->count - 1]);
    if (d->least > 0.0 && d->most > 10.0 * d->least)
        fprintf(gnuplot, "set logscale y 10\nset mytics 10\n");
    if (d->most - d->least < 1e-6 * fabs(d->most))
        fprintf(gnuplot, "set yrange [%g:%g]\n", 0.9 * d->least - 1e-6, 1.1 * d->most + 1e-6);
}

static void put_script(FILE *gnuplot, const struct curve *c, const struct drawing *d)
{
    put_line(gnuplot, "raw", d, d->loss, DOTS);
    put_line(gnuplot, "smooth", d, d->smooth, DOTS);
    put_validations(gnuplot, c);
    put_title(gnuplot, c->options);
    put_axes(gnuplot, d);
    fprintf(gnuplot, "plot $raw with points pt 7 ps 0.3 lc rgb '#8fbcdc' title 'each update', "
                     "$smooth with lines lw 2 lc rgb '#0072b2' title 'smoothed'");
    if (d->validations > 0)
        fprintf(gnuplot, ", $validation with points pt 7 ps 0.9 lc rgb '#d55e00' "
                         "title 'validation'");
    fprintf(gnuplot, "\n");
}

static bool draw(const struct curve *c)
{
    char path[PATH];
    struct drawing drawing = {0};
    bool good = drawing_make(&drawing, c);

    snprintf(path, sizeof path, "%s/loss.svg", c->options->folder);
    if (good && drawing.count > 0) {
        smoothen(&drawing);
        FILE *const gnuplot = plot_open(path, 800, 480);

        if (gnuplot) {
            put_script(gnuplot, c, &drawing);
            good = plot_close(gnuplot, path);
        }
    }
    drawing_free(&drawing);
    return good;
}

bool train_curve_write(const struct train_options *options)
{
    struct curve curve = {.options = options,
                          .metric = tarn_task_metric(options->settings.task)};
    const bool good = read_log(&curve) && write_csv(&curve) && draw(&curve);

    free(curve.points);
    return good;
}
