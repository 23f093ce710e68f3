/* SPDX-License-Identifier: MIT */
/* train_curve.c - the loss of all updates of a run, across its resumes, from the log in its
 * folder: loss.csv and, with gnuplot, loss.svg. Neither is written over files of somebody else.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cmd_train.h"
#include "curve.h"
#include "output.h"
#include "words.h"

enum { PATH = TARN_PATH_SIZE + 32 };

static const char header[] = "update,loss,lr,validation_loss,";

/* A link leads to somebody's file, and so does a second name. */
static bool is_link(const char *path)
{
    struct stat about;

    return lstat(path, &about) == 0 && (!S_ISREG(about.st_mode) || about.st_nlink != 1);
}

static bool warn_unchanged(const char *path)
{
    warn("%s: is a link, or not a file of this run; it was not changed", path);
    return false;
}

/* Whether a file is missing, empty or was written here. False, with errno: cannot be read. */
static bool is_ours(const char *path)
{
    char begin[sizeof header] = "";
    FILE *const file = fopen(path, "rb");

    if (!file)
        return errno == ENOENT;
    errno = 0;
    const size_t got = fread(begin, 1, sizeof header - 1, file);
    const int number = ferror(file) ? errno : 0;

    fclose(file);
    errno = number;
    return !number && (got == 0 || strcmp(begin, header) == 0);
}

/* Says why not. */
static bool is_replaceable(const char *path)
{
    errno = 0;
    if (is_link(path) || (!is_ours(path) && errno == 0))
        return warn_unchanged(path);
    if (errno == 0 || errno == ENOENT)
        return true;
    warn("%s: %s", path, strerror(errno));
    return false;
}

/* Of a folder with a log the library says what it is. */
void train_curve_check(const struct train_options *o)
{
    static const char *const names[] = {"log.jsonl", "loss.csv", "loss.svg"};

    for (size_t i = 0; i < sizeof names / sizeof names[0] && !o->resume; i++) {
        char path[PATH];
        struct stat about;

        snprintf(path, sizeof path, "%s/%s", o->folder, names[i]);
        if (lstat(path, &about) != 0)
            continue;
        if (i == 0)
            return;
        refuse("%s: already exists; choose another folder", path);
    }
}

static bool write_csv(const struct curve *c, const struct train_options *o)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/loss.csv", o->folder);
    if (!is_replaceable(path))
        return false;
    FILE *const file = output_open(path);

    if (file)
        fprintf(file, "%s%s\n", header, tarn_task_metric(o->settings.task));
    for (size_t i = 0; file && i < c->count; i++) {
        fprintf(file, "%" PRIu64, c->points[i].update);
        curve_put_number(file, c->points[i].loss);
        curve_put_number(file, c->points[i].lr);
        curve_put_number(file, c->points[i].validation);
        curve_put_number(file, c->points[i].metric);
        fputc('\n', file);
    }
    if (file && output_close(file))
        return true;
    warn("%s: %s", path, strerror(errno));
    return false;
}

static bool draw(const struct curve *c, const struct train_options *o)
{
    char model[TRAIN_MODEL_SIZE], title[TARN_NAME_SIZE + TRAIN_MODEL_SIZE + 2], path[PATH];

    train_options_model(model, &o->config);
    snprintf(title, sizeof title, "%s: %s", o->settings.task, model);
    snprintf(path, sizeof path, "%s/loss.svg", o->folder);
    return is_link(path) ? warn_unchanged(path) : curve_draw(path, title, c, 1);
}

bool train_curve_write(const struct train_options *o)
{
    struct curve curve;
    bool good = curve_read(&curve, o->folder) && write_csv(&curve, o);

    if (good && curve.losses > 0)
        good = draw(&curve, o);
    curve_free(&curve);
    return good;
}
