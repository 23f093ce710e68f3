/* SPDX-License-Identifier: MIT */
#include "curve.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "plot.h"

enum { PATH = TARN_PATH_SIZE + 32, DOTS = 2000 };

/* ---- Points ------------------------------------------------------------- */

/* The point of an update: the last one, or a new one. */
static struct curve_point *point_at(struct curve *c, uint64_t update)
{
    const double none = (double)NAN;

    if (c->count > 0 && c->points[c->count - 1].update == update)
        return &c->points[c->count - 1];
    if (c->count == c->room) {
        c->room = 2 * c->room + 1024;
        c->points = realloc(c->points, c->room * sizeof *c->points);
        if (!c->points)
            fail("not enough memory for %zu updates", c->count);
    }
    c->points[c->count] = (struct curve_point){update, none, none, none, none, none};
    return &c->points[c->count++];
}

void curve_free(struct curve *c)
{
    free(c->points);
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
    const bool has_update = json_is_integer(update);

    if (has_update) {
        struct curve_point *const point = point_at(c, (uint64_t)json_integer_value(update));

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
    return has_update;
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
        warn("%s: %s", path, strerror(errno));
        return false;
    }
    while (getline(&line, &size, file) > 0 &&
           (*line == '{' ? take_json(c, line) : take_csv(c, line)))
        ;
    free(line);
    fclose(file);
    return true;
}

/* Means over neighbours on both sides, so that the line does not lag: as many before as after,
 * but at the end, where there are only those before. */
static void smoothen(struct curve *c)
{
    const size_t widest = c->losses / 50 + 1;
    struct curve_point **const with = allocate(c->losses, sizeof *with, "the losses");
    size_t from = 0, to = 0; /* what the sum is of */
    double sum = 0.0;

    for (size_t i = 0, n = 0; i < c->count; i++)
        if (isfinite(c->points[i].loss))
            with[n++] = &c->points[i];
    for (size_t i = 0; i < c->losses; i++) {
        const size_t before = i < widest ? i : widest;
        const size_t end = i + before + 1 < c->losses ? i + before + 1 : c->losses;

        while (to < end)
            sum += with[to++]->loss;
        while (from < i - before)
            sum -= with[from++]->loss;
        with[i]->smooth = sum / (double)(to - from);
        c->least = fmin(c->least, with[i]->smooth);
        c->most = fmax(c->most, with[i]->smooth);
        c->updates = (double)with[i]->update;
    }
    free(with);
}

bool curve_read(struct curve *c, const char *path)
{
    char log[PATH];

    *c = (struct curve){.least = (double)NAN, .most = (double)NAN};
    snprintf(log, sizeof log, "%s%s", path, is_folder(path) ? "/log.jsonl" : "");
    if (!read_lines(c, log))
        return false;
    for (size_t i = 0; i < c->count; i++) {
        c->losses += isfinite(c->points[i].loss) ? 1 : 0;
        c->validations += isfinite(c->points[i].validation) ? 1 : 0;
    }
    smoothen(c);
    return true;
}

/* ---- Drawing ------------------------------------------------------------ */

static double value_at(const struct curve *c, size_t i, size_t column)
{
    return *(const double *)(const void *)((const char *)&c->points[i] + column);
}

void curve_put_data(FILE *gnuplot, const char *name, size_t number, const struct curve *c,
                    size_t column)
{
    const size_t all = column == CURVE_COLUMN(validation) ? c->validations : c->losses;
    size_t nth = 0;

    fprintf(gnuplot, "$%s%zu << EOD\n", name, number);
    for (size_t i = 0; i < c->count; i++) {
        if (!isfinite(value_at(c, i, column)))
            continue;
        if (nth % (all / DOTS + 1) == 0 || nth + 1 == all) /* the end is always there */
            fprintf(gnuplot, "%" PRIu64 " %.9g\n", c->points[i].update, value_at(c, i, column));
        nth++;
    }
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
