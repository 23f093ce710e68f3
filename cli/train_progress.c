/* SPDX-License-Identifier: MIT */
/* train_progress.c - the progress of a training run. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "hardware.h"
#include "json_line.h"
#include "progress.h"
#include "cmd_train.h"
#include "words.h"

static const double forgetting = 0.95; /* decay of the moving average of the loss */

bool train_progress_is_over(const struct train_progress *p)
{
    return p->options->minutes > 0.0 && (p->options->steps_given || !p->fitted) &&
           progress_seconds() >= 60.0 * p->options->minutes;
}

/* ---- Means -------------------------------------------------------------- */

double train_progress_loss(const struct train_progress *p)
{
    return p->weight > 0.0 ? p->loss / p->weight : (double)NAN;
}

double train_progress_speed(const struct train_progress *p)
{
    return p->in_updates > 0.0 ? p->tokens / p->in_updates : (double)NAN;
}

static void take_in(struct train_progress *p, const tarn_report *report)
{
    p->report = *report;
    p->in_updates += seconds_now() - p->mark;
    p->tokens += (double)report->tokens;
    if (!isfinite(report->loss))
        return;
    p->loss = forgetting * p->loss + (1.0 - forgetting) * report->loss;
    p->weight = forgetting * p->weight + (1.0 - forgetting);
}

/* ---- Lines -------------------------------------------------------------- */

/* Seconds to the end at the speed so far, validations included, or by --minutes. */
static double seconds_left(const struct train_progress *p)
{
    const double done = (double)(p->report.update - p->from);
    const double left = (double)(p->settings.steps - p->report.update);
    const double passed = progress_seconds(), minutes = p->options->minutes;
    const double by_pace = passed / done * left;
    const double by_clock = fmax(0.0, 60.0 * minutes - passed);

    if (minutes == 0.0)
        return by_pace;
    return p->fitted && !p->options->steps_given ? by_clock : fmin(by_pace, by_clock);
}

/* The metric of validations, from the average loss and the last update's accuracy. */
static double metric(const struct train_progress *p)
{
    const tarn_score sums = {
        .loss = train_progress_loss(p), .correct = p->report.accuracy, .weight = 1.0};

    return tarn_task_measure(p->settings.task, &sums);
}

static void show(const struct train_progress *p)
{
    char left[32];

    words_time(left, sizeof left, seconds_left(p));
    progress_part(0, "update %" PRIu64 "/%zu", p->report.update, p->settings.steps);
    progress_part(1, "loss %.4f", train_progress_loss(p));
    if (isfinite(metric(p))) /* some are only known after a validation */
        progress_part(3, "%s %.4f", tarn_task_metric(p->settings.task), metric(p));
    progress_part(4, "%.0f tokens/s", train_progress_speed(p));
    progress_part(2, "%s left", left);
    progress_show();
}

static bool is_due(const struct train_progress *p)
{
    return p->report.update == p->from + 1 || p->report.update == p->settings.steps ||
           progress_is_due();
}

/* ---- JSON --------------------------------------------------------------- */

static void print_update(const tarn_report *report)
{
    json_t *const object = json_object();

    json_put_text(object, "event", "update");
    json_put_count(object, "update", (size_t)report->update);
    json_put_number(object, "loss", report->loss);
    json_put_number(object, "accuracy", report->accuracy);
    json_put_number(object, "lr", report->lr);
    json_put_number(object, "norm", report->norm);
    json_put_bool(object, "skipped", report->skipped);
    json_print_line(object);
}

static void print_validation(const tarn_validation *validation)
{
    json_t *const object = json_object();

    json_put_text(object, "event", "validation");
    json_put_count(object, "update", (size_t)validation->update);
    json_put_number(object, "validation_loss", validation->loss);
    json_put_number(object, validation->name, validation->metric);
    json_put_number(object, "positions", validation->positions);
    json_print_line(object);
}

/* ---- Events ------------------------------------------------------------- */

static void started(void *context, const tarn_settings *s, uint64_t from, size_t bytes)
{
    struct train_progress *const p = context;
    char memory[32], model[TRAIN_MODEL_SIZE];

    p->started = true;
    p->settings = *s;
    p->from = p->report.update = from;
    p->bytes = bytes;
    words_bytes(memory, sizeof memory, (double)bytes);
    train_options_model(model, &p->options->config);
    fprintf(stderr,
            "%s: %s\n"
            "optimizer %s, learning rate %g, schedule %s, clip %s\n"
            "batch size %zu, sequence length %zu, memory %s\n",
            s->task, model, s->optimizer, s->lr, s->schedule, s->clip, s->batch * s->accumulate,
            s->length, memory);
    if (from > 0)
        fprintf(stderr, "resuming after update %" PRIu64 "\n", from);
    progress_begin();
    p->mark = seconds_now();
}

static void updated(void *context, const tarn_report *report)
{
    struct train_progress *const p = context;

    take_in(p, report);
    if (p->options->json)
        print_update(report);
    if (report->skipped) {
        progress_keep();
        fprintf(stderr, "update %" PRIu64 " skipped: not finite\n", report->update);
    } else if (is_due(p)) {
        show(p);
    }
    p->mark = seconds_now();
}

static void scored(void *context, size_t done, size_t batches)
{
    struct train_progress *const p = context;

    if (!progress_is_due())
        return;
    if (!p->validating)
        progress_keep();
    p->validating = true;
    progress_part(1, "update %" PRIu64 "/%zu", p->report.update, p->settings.steps);
    progress_part(0, "validation: batch %zu/%zu", done, batches);
    progress_show();
}

static void validated(void *context, const tarn_validation *validation)
{
    struct train_progress *const p = context;

    p->validation = *validation;
    p->validated = true;
    if (p->options->json)
        print_validation(validation);
    if (p->validating)
        progress_erase();
    progress_keep();
    p->validating = false;
    fprintf(stderr, "validation after update %" PRIu64 ": loss %.4f, %s %.4f\n",
            validation->update, validation->loss, validation->name, validation->metric);
    p->mark = seconds_now();
}

/* The first plan of a run is worth a line; later ones show in the progress. */
static void planned(void *context, const tarn_settings *settings)
{
    struct train_progress *const p = context;

    p->settings.steps = settings->steps;
    if (p->started && !p->fitted) {
        progress_keep();
        fprintf(stderr,
                "about %zu updates fit into %g minute%s; the schedule is fitted to that\n",
                settings->steps, p->options->minutes, p->options->minutes == 1.0 ? "" : "s");
    }
    p->fitted = true;
}

static void saved(void *context, const char *path)
{
    struct train_progress *const p = context;

    (void)path;
    p->mark = seconds_now();
}

/* ---- Data --------------------------------------------------------------- */

static void skipped(void *context, const tarn_skipped *skipped)
{
    const struct train_progress *const p = context;

    progress_skipped(skipped);
    if (!p->options->json)
        return;
    json_t *const object = json_object();

    json_put_text(object, "event", "skipped");
    json_put_text(object, "file", skipped->file);
    json_put_count(object, "line", skipped->line);
    json_put_text(object, "reason", skipped->reason);
    json_print_line(object);
}

tarn_events train_progress_events(struct train_progress *progress)
{
    return (tarn_events){
        .context = progress,
        .skipped = skipped,
        .started = started,
        .update = updated,
        .scored = scored,
        .validation = validated,
        .saved = saved,
        .planned = planned,
    };
}
