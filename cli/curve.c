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

/* ---- A log -------------------------------------------------------------- */

static double number(const json_t *object, const char *name)
{
    const json_t *const value = json_object_get(object, name);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* The member of a validation that every log does not have. */
static void find_metric(struct curve *c, json_t *validation)
{
    const char *key;
    json_t *value;

    json_object_foreach(validation, key, value)
    {
        if (!words_have("update validation_loss positions seconds cpu_seconds", key)) {
            snprintf(c->metric, sizeof c->metric, "%s", key);
            return;
        }
    }
}

/* Of a run that was killed the last line may be half a one: what cannot be read is left out. */
static bool take_json(struct curve *c, const char *line)
{
    json_error_t error;
    json_t *const object = json_loads(line, 0, &error);
    const json_t *const update = json_object_get(object, "update");
    const bool has_update = json_is_integer(update);

    if (!object && json_error_code(&error) == json_error_out_of_memory)
        fail("not enough memory for a line of the log");
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

    if (strncmp(line, "update,loss,", 12) == 0) { /* the metric is the fifth column */
        for (size_t i = 0; i < 4 && at; i++)
            at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL;
        snprintf(c->metric, sizeof c->metric, "%.*s", at ? (int)strcspn(at, "\r\n") : 0,
                 at ? at : "");
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
    bool goes_on = true;
    FILE *const file = fopen(path, "r");

    if (!file) {
        warn("%s: %s", path, strerror(errno));
        return false;
    }
    while (goes_on && getline(&line, &size, file) > 0)
        goes_on = *line == '{' ? take_json(c, line) : take_csv(c, line);
    const bool is_read = !goes_on || feof(file);

    if (!is_read)
        warn("%s: %s", path, strerror(errno));
    free(line);
    fclose(file);
    return is_read;
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

    *c = (struct curve){.name = path, .least = (double)NAN, .most = (double)NAN};
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

#define COLUMN(field) offsetof(struct curve_point, field)

static double value_at(const struct curve *c, size_t i, size_t column)
{
    return *(const double *)(const void *)((const char *)&c->points[i] + column);
}

/* $NAMEi, a block of data: the values of a column, thinned out. */
static void put_data(FILE *gnuplot, const char *name, size_t number, const struct curve *c,
                     size_t column)
{
    const size_t all = column == COLUMN(validation) ? c->validations : c->losses;
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

struct ranges {
    double updates, least, most;
};

/* Of one run, all. What several runs fall from in their first updates would leave no room for
 * where they differ: of these the losses from a twentieth of a run on, and of its validations.
 */
static struct ranges ranges_of(const struct curve *curves, size_t count)
{
    struct ranges r = {0.0, (double)NAN, (double)NAN};

    for (size_t i = 0; i < count; i++) {
        const struct curve *const c = &curves[i];
        size_t losses = 0;

        r.updates = fmax(r.updates, c->updates);
        r.least = fmin(r.least, c->least);
        if (count == 1)
            r.most = c->most;
        for (size_t j = 0; count > 1 && j < c->count; j++) {
            if (isfinite(c->points[j].loss) && losses++ == c->losses / 20)
                r.most = fmax(r.most, c->points[j].smooth);
            if (j >= c->count / 20) {
                r.least = fmin(r.least, c->points[j].validation);
                r.most = fmax(r.most, c->points[j].validation);
            }
        }
    }
    return r;
}

/* A loss that falls by more than ten times is read on a logarithmic axis. gnuplot finds the
 * range of one run, but for values all alike. */
static void put_axes(FILE *gnuplot, const struct ranges *r, bool several)
{
    const double margin = 0.05 * (r->most - r->least);

    plot_frame(gnuplot);
    fprintf(gnuplot,
            "set xlabel 'update'\nset ylabel 'loss, nats'\nset format y '%%g'\n"
            "set xrange [0:%.0f]\nset key top right Left reverse\n",
            r->updates);
    if (r->least > 0.0 && r->most > 10.0 * r->least)
        fprintf(gnuplot, "set logscale y 10\nset mytics 10\n");
    else if (r->most - r->least < 1e-6 * fabs(r->most))
        fprintf(gnuplot, "set yrange [%g:%g]\n", 0.9 * r->least - 1e-6, 1.1 * r->most + 1e-6);
    else if (several)
        fprintf(gnuplot, "set yrange [%g:%g]\n", r->least - margin, r->most + margin);
}

static void put_one(FILE *gnuplot, const struct curve *c)
{
    put_data(gnuplot, "raw", 0, c, COLUMN(loss));
    fprintf(gnuplot, "plot $raw0 with points pt 7 ps 0.3 lc rgb '#8fbcdc' title 'each update', "
                     "$line0 with lines lw 2 lc rgb '#0072b2' title 'smoothed'");
    if (c->validations > 0)
        fprintf(gnuplot, ", $points0 with points pt 7 ps 0.9 lc rgb '#d55e00' "
                         "title 'validation'");
    fprintf(gnuplot, "\n");
}

static void put_several(FILE *gnuplot, const struct curve *curves, size_t count)
{
    plot_styles(gnuplot, count);
    fprintf(gnuplot, "plot");
    for (size_t i = 0; i < count; i++) {
        fprintf(gnuplot, "%s $line%zu with lines lt %zu title ", i ? "," : "", i, i + 1);
        plot_quoted(gnuplot, curves[i].name);
        if (curves[i].validations > 0)
            fprintf(gnuplot, ", $points%zu with points lt %zu pt 7 notitle", i, i + 1);
    }
    fprintf(gnuplot, ", 1/0 with points pt 7 lc rgb '#606060' title 'validation'\n");
}

bool curve_draw(const char *path, const char *title, const struct curve *curves, size_t count)
{
    const struct ranges ranges = ranges_of(curves, count);
    FILE *const gnuplot = plot_open(path, 900, 520);

    if (!gnuplot)
        return true;
    for (size_t i = 0; i < count; i++) {
        put_data(gnuplot, "line", i, &curves[i], COLUMN(smooth));
        put_data(gnuplot, "points", i, &curves[i], COLUMN(validation));
    }
    put_axes(gnuplot, &ranges, count > 1);
    if (count == 1) {
        fprintf(gnuplot, "set title ");
        plot_quoted(gnuplot, title);
        fprintf(gnuplot, "\n");
        put_one(gnuplot, curves);
    } else {
        put_several(gnuplot, curves, count);
    }
    return plot_close(gnuplot, path);
}
