/* SPDX-License-Identifier: MIT */
#include "train_curve.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "curve.h"
#include "plot.h"

enum { PATH = TARN_PATH_SIZE + 32 };

static bool complain(const char *path)
{
    fprintf(stderr, "tarn: %s: %s\n", path, strerror(errno));
    return false;
}

/* ---- CSV ---------------------------------------------------------------- */

static bool write_csv(const struct curve *c, const struct train_options *o)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/loss.csv", o->folder);
    FILE *const file = fopen(path, "w");

    if (!file)
        return complain(path);
    fprintf(file, "update,loss,lr,validation_loss,%s\n", tarn_task_metric(o->settings.task));
    for (size_t i = 0; i < c->count; i++) {
        const struct curve_point *const point = &c->points[i];

        fprintf(file, "%" PRIu64, point->update);
        curve_put_number(file, point->loss);
        curve_put_number(file, point->lr);
        curve_put_number(file, point->validation);
        curve_put_number(file, point->metric);
        fputc('\n', file);
    }
    const bool failed = ferror(file) != 0;

    return fclose(file) == 0 && !failed ? true : complain(path);
}

/* ---- Picture ------------------------------------------------------------ */

static void put_title(FILE *gnuplot, const struct train_options *o)
{
    char model[TRAIN_MODEL_SIZE], title[TARN_NAME_SIZE + TRAIN_MODEL_SIZE + 2];

    train_options_model(model, &o->config);
    snprintf(title, sizeof title, "%s: %s", o->settings.task, model);
    fprintf(gnuplot, "set title ");
    plot_quoted(gnuplot, title);
    fprintf(gnuplot, "\n");
}

static void put_script(FILE *gnuplot, const struct curve *c, const struct curve_drawing *d,
                       const struct train_options *o)
{
    curve_put_line(gnuplot, "raw", d, d->loss);
    curve_put_line(gnuplot, "smooth", d, d->smooth);
    curve_put_validations(gnuplot, "validation", c);
    put_title(gnuplot, o);
    curve_put_axes(gnuplot, d->update[d->count - 1], d->least, d->most);
    fprintf(gnuplot, "plot $raw with points pt 7 ps 0.3 lc rgb '#8fbcdc' title 'each update', "
                     "$smooth with lines lw 2 lc rgb '#0072b2' title 'smoothed'");
    if (d->validations > 0)
        fprintf(gnuplot, ", $validation with points pt 7 ps 0.9 lc rgb '#d55e00' "
                         "title 'validation'");
    fprintf(gnuplot, "\n");
}

static bool draw(const struct curve *c, const struct train_options *o)
{
    char path[PATH];
    struct curve_drawing drawing;
    bool good = curve_draw(&drawing, c);

    snprintf(path, sizeof path, "%s/loss.svg", o->folder);
    if (good && drawing.count > 0) {
        FILE *const gnuplot = plot_open(path, 800, 480);

        if (gnuplot) {
            put_script(gnuplot, c, &drawing, o);
            good = plot_close(gnuplot, path);
        }
    }
    curve_drawing_free(&drawing);
    return good;
}

bool train_curve_write(const struct train_options *options)
{
    struct curve curve;

    if (!curve_read(&curve, options->folder))
        return false;
    const bool good = write_csv(&curve, options) && draw(&curve, options);

    curve_free(&curve);
    return good;
}
