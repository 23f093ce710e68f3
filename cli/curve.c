/* SPDX-License-Identifier: MIT */
#include "curve.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"

enum { PATH = TARN_PATH_SIZE + 32, DOTS = 2000 };

/* ---- Points ------------------------------------------------------------- */

/* The point of an update: the last one, or a new one. NULL: not enough memory. */
static struct curve_point *point_at(struct curve *c, uint64_t update)
{
    if (c->count > 0 && c->points[c->count - 1].update == update)
        return &c->points[c->count - 1];
    if (c->count == c->room) {
        const size_t room = 2 * c->room + 1024;
        struct curve_point *const more = realloc(c->points, room * sizeof *more);

        if (!more)
            return NULL;
        c->points = more;
        c->room = room;
    }
    const double none = (double)NAN;

    c->points[c->count] = (struct curve_point){update, none, none, none, none};
    return &c->points[c->count++];
}

void curve_free(struct curve *c)
{
    free(c->points);
    *c = (struct curve){0};
}

static void set_metric(struct curve *c, const char *name)
{
    snprintf(c->metric, sizeof c->metric, "%s", name);
}

/* ---- A log -------------------------------------------------------------- */

static double number(const json_t *object, const char *name)
{
    const json_t *const value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The member of a validation that every log does not have. */
static void find_metric(struct curve *c, json_t *validation)
{
    static const char *const others[] = {"update", "validation_loss", "positions", "seconds",
                                         "cpu_seconds"};
    const char *key;
    json_t *value;

    json_object_foreach(validation, key, value)
    {
        bool is_other = false;

        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
            is_other |= strcmp(key, others[i]) == 0;
        if (!is_other) {
            set_metric(c, key);
            return;
        }
    }
}

/* Of a run that was killed the last line may be half a one: what cannot be read is left out. */
static bool take_json(struct curve *c, const char *line)
{
    json_t *const object = json_loads(line, 0, NULL);
    const json_t *const update = json_object_get(object, "update");
    struct curve_point *point = NULL;

    if (json_is_integer(update) &&
        (point = point_at(c, (uint64_t)json_integer_value(update))) != NULL) {
        if (json_object_get(object, "validation_loss")) {
            find_metric(c, object);
            point->validation = number(object, "validation_loss");
            point->metric = number(object, c->metric);
        } else {
            point->loss = number(object, "loss");
            point->lr = number(object, json_object_get(object, "lr") ? "lr" : "rate");
        }
    }
    json_decref(object);
    return point != NULL;
}

/* ---- CSV ---------------------------------------------------------------- */

/* Version 0.1 called the learning rate "rate", here and in logs. */
static const char *const headers[] = {"update,loss,lr,validation_loss,",
                                      "update,loss,rate,validation_loss,"};

static double cell(const char **at)
{
    char *end;
    const double value = strtod(*at, &end);
    const bool is_empty = end == *at;

    *at = end + (*end == ',');
    return is_empty ? (double)NAN : value;
}

static bool take_csv(struct curve *c, const char *line)
{
    const char *at = line;

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        if (strncmp(line, headers[i], strlen(headers[i])) == 0) {
            set_metric(c, line + strlen(headers[i]));
            c->metric[strcspn(c->metric, "\r\n")] = '\0';
            return true;
        }
    const double update = cell(&at);

    if (!(update >= 0.0 && update < 1e15))
        return false;
    struct curve_point *const point = point_at(c, (uint64_t)update);

    if (!point)
        return false;
    point->loss = cell(&at);
    point->lr = cell(&at);
    point->validation = cell(&at);
    point->metric = cell(&at);
    return true;
}

void curve_put_number(FILE *csv, double value)
{
    fputc(',', csv);
    if (isfinite(value))
        fprintf(csv, "%.9g", value);
}

/* ---- Either ------------------------------------------------------------- */

static bool read_lines(struct curve *c, const char *path)
{
    char *line = NULL;
    size_t size = 0;
    FILE *const file = fopen(path, "r");

    if (!file) {
        fprintf(stderr, "tarn: %s: %s\n", path, strerror(errno));
        return false;
    }
    while (getline(&line, &size, file) > 0 &&
           (*line == '{' ? take_json(c, line) : take_csv(c, line)))
        ;
    free(line);
    fclose(file);
    return true;
}

bool curve_read(struct curve *c, const char *path)
{
    struct stat about;
    char log[PATH];
    const bool is_folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);

    *c = (struct curve){0};
    snprintf(log, sizeof log, "%s%s", path, is_folder ? "/log.jsonl" : "");
    return read_lines(c, log);
}

/* ---- Drawing ------------------------------------------------------------ */

void curve_drawing_free(struct curve_drawing *d)
{
    free(d->update);
    free(d->loss);
    free(d->smooth);
    *d = (struct curve_drawing){0};
}

/* Means over neighbours on both sides, so that the line does not lag: as many before as behind,
 * but at the end, where there are only those before. */
static void smoothen(struct curve_drawing *d)
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

bool curve_draw(struct curve_drawing *d, const struct curve *c)
{
    *d = (struct curve_drawing){0};
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
    smoothen(d);
    return true;
}

void curve_put_line(FILE *gnuplot, const char *name, const struct curve_drawing *d,
                    const double *values)
{
    const size_t stride = d->count / DOTS + 1;

    fprintf(gnuplot, "$%s << EOD\n", name);
    for (size_t i = 0; i < d->count; i += stride)
        fprintf(gnuplot, "%.0f %.9g\n", d->update[i], values[i]);
    if (d->count > 0) /* the end is always there */
        fprintf(gnuplot, "%.0f %.9g\n", d->update[d->count - 1], values[d->count - 1]);
    fprintf(gnuplot, "EOD\n");
}

void curve_put_validations(FILE *gnuplot, const char *name, const struct curve *c)
{
    fprintf(gnuplot, "$%s << EOD\n", name);
    for (size_t i = 0; i < c->count; i++)
        if (isfinite(c->points[i].validation))
            fprintf(gnuplot, "%" PRIu64 " %.9g\n", c->points[i].update,
                    c->points[i].validation);
    fprintf(gnuplot, "EOD\n");
}

/* A loss that falls by more than ten times is read on a logarithmic axis. gnuplot finds the
 * range, but for values all alike. */
void curve_put_axes(FILE *gnuplot, double updates, double least, double most)
{
    plot_frame(gnuplot);
    fprintf(gnuplot,
            "set xlabel 'update'\nset ylabel 'loss, nats'\nset format y '%%g'\n"
            "set xrange [0:%.0f]\nset key top right Left reverse\n",
            updates);
    if (least > 0.0 && most > 10.0 * least)
        fprintf(gnuplot, "set logscale y 10\nset mytics 10\n");
    if (most - least < 1e-6 * fabs(most))
        fprintf(gnuplot, "set yrange [%g:%g]\n", 0.9 * least - 1e-6, 1.1 * most + 1e-6);
}
