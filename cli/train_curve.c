/* SPDX-License-Identifier: MIT */
/* train_curve.c - the loss curve of a run, across all its resumes, from the log in its folder.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "curve.h"
#include "files.h"
#include "plot.h"
#include "cmd_train.h"

enum { PATH = TARN_PATH_SIZE + 32 };

static bool write_csv(const struct curve *c, const struct train_options *o)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/loss.csv", o->folder);
    FILE *const file = fopen(path, "w");

    if (file)
        fprintf(file, "update,loss,lr,validation_loss,%s\n",
                tarn_task_metric(o->settings.task));
    for (size_t i = 0; file && i < c->count; i++) {
        fprintf(file, "%" PRIu64, c->points[i].update);
        curve_put_number(file, c->points[i].loss);
        curve_put_number(file, c->points[i].lr);
        curve_put_number(file, c->points[i].validation);
        curve_put_number(file, c->points[i].metric);
        fputc('\n', file);
    }
    if (file && close_written(file))
        return true;
    warn("%s: %s", path, strerror(errno));
    return false;
}

static void put_script(FILE *gnuplot, const struct curve *c, const struct train_options *o)
{
    char model[TRAIN_MODEL_SIZE], title[TARN_NAME_SIZE + TRAIN_MODEL_SIZE + 2];

    train_options_model(model, &o->config);
    snprintf(title, sizeof title, "%s: %s", o->settings.task, model);
    curve_put_data(gnuplot, "raw", 0, c, CURVE_COLUMN(loss));
    curve_put_data(gnuplot, "smooth", 0, c, CURVE_COLUMN(smooth));
    curve_put_data(gnuplot, "validation", 0, c, CURVE_COLUMN(validation));
    fprintf(gnuplot, "set title ");
    plot_quoted(gnuplot, title);
    fprintf(gnuplot, "\n");
    curve_put_axes(gnuplot, c->updates, c->least, c->most);
    fprintf(gnuplot, "plot $raw0 with points pt 7 ps 0.3 lc rgb '#8fbcdc' title 'each update', "
                     "$smooth0 with lines lw 2 lc rgb '#0072b2' title 'smoothed'");
    if (c->validations > 0)
        fprintf(gnuplot, ", $validation0 with points pt 7 ps 0.9 lc rgb '#d55e00' "
                         "title 'validation'");
    fprintf(gnuplot, "\n");
}

static bool draw(const struct curve *c, const struct train_options *o)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/loss.svg", o->folder);
    FILE *const gnuplot = c->losses > 0 ? plot_open(path, 800, 480) : NULL;

    if (!gnuplot)
        return true;
    put_script(gnuplot, c, o);
    return plot_close(gnuplot, path);
}

bool train_curve_write(const struct train_options *options)
{
    struct curve curve;
    const bool good = curve_read(&curve, options->folder) && write_csv(&curve, options) &&
                      draw(&curve, options);

    curve_free(&curve);
    return good;
}
