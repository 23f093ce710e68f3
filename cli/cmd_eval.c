/* SPDX-License-Identifier: MIT */
/* cmd_eval.c - tarn eval: loss and metric of a model on validation data. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "model_open.h"
#include "progress_line.h"
#include "skipped.h"
#include "stopwatch.h"
#include "words.h"

#define AT(field) offsetof(struct options, field)

struct options {
    const char *model;
    const char *data, *length, *batch, *batches, *validation, *seed; /* NULL: not given */
    const char *cache;
    tarn_host host;
    size_t beam, skipped;
    bool best, json, strict;
    struct progress_line line;
    double begin; /* seconds */
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, MODEL_HELP},
    {"data", "PATH", ARGS_TEXT, NULL, AT(data), 0, 0,
     "validation data; a training folder has its own, and some tasks generate theirs"},
    {"validation", "X", ARGS_TEXT, NULL, AT(validation), 0, 0,
     "fraction of the data to evaluate on, taken from its end; 1: all [as in training, or "
     "0.1]"},
    {"length", "N", ARGS_TEXT, NULL, AT(length), 0, 0,
     "sequence length; not for speech [as in training, or the task's default]"},
    {"batch", "B", ARGS_TEXT, NULL, AT(batch), 0, 0,
     "batch size [as in training, or the task's default]"},
    {"eval-batches", "N", ARGS_TEXT, NULL, AT(batches), 0, 0,
     "maximum number of batches; 0: all, or 16 if the data is generated [as in training, or "
     "0]"},
    {"seed", "S", ARGS_TEXT, NULL, AT(seed), 0, 0,
     "random seed of generated data [as in training]"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"beam", "W", ARGS_COUNT, "0", AT(beam), 0, 100000,
     "speech: beam width of the CTC decoder; 0: greedy decoding"},
    {"strict", NULL, ARGS_FLAG, NULL, AT(strict), 0, 0,
     "speech: fail on an utterance that cannot be used instead of skipping it"},
    {"cache", "DIR", ARGS_TEXT, NULL, AT(cache), 0, 0,
     "speech: folder that caches the features [as in training, or none]"},
    {"threads", "N", ARGS_HOST, "0", AT(host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0, "print one JSON object"},
    {0},
};

/* ---- Settings ----------------------------------------------------------- */

static tarn_status apply(tarn_settings *settings, const struct options *o, tarn_error *err)
{
    const struct {
        const char *name, *value;
    } given[] = {
        {"data", o->data},
        {"length", o->length},
        {"batch", o->batch},
        {"eval_batches", o->batches},
        {"validation", o->validation},
        {"seed", o->seed},
        {"cache", o->cache},
        {"strict", o->strict ? "true" : NULL},
    };
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < sizeof given / sizeof given[0] && status == TARN_OK; i++)
        if (given[i].value)
            status = tarn_settings_set(settings, given[i].name, given[i].value, err);
    return status;
}

/* The settings of a training folder, to repeat its validation; otherwise the task's defaults.
 */
static tarn_status read_settings(tarn_settings *settings, const struct options *o,
                                 const tarn_config *config, tarn_error *err)
{
    tarn_config of_folder;
    tarn_status status;

    if (!*config->task) {
        snprintf(err->text, sizeof err->text,
                 "%.160s: the model has no task to evaluate; import it with --task", o->model);
        return err->status = TARN_EINVAL;
    }
    if (o->length && config->frames > 0) {
        snprintf(err->text, sizeof err->text,
                 "--length cannot be used with a speech model: every utterance has its own");
        return err->status = TARN_EINVAL;
    }
    if (!model_is_folder(o->model) ||
        tarn_train_settings(&of_folder, settings, o->model, NULL) != TARN_OK) {
        if ((status = tarn_settings_start(settings, config->task, err)) != TARN_OK)
            return status;
        settings->eval_batches = 0;
    }
    return apply(settings, o, err);
}

/* ---- Results ------------------------------------------------------------ */

/* Counts for models that output sequences of labels. */
static const struct {
    const char *name;
    size_t offset;
} counts[] = {
    {"labels", offsetof(tarn_score, labels)},
    {"substitutions", offsetof(tarn_score, substitutions)},
    {"insertions", offsetof(tarn_score, insertions)},
    {"deletions", offsetof(tarn_score, deletions)},
};

enum { COUNTS = sizeof counts / sizeof counts[0] };

static double count_of(const tarn_validation *v, size_t i)
{
    return *(const double *)(const void *)((const char *)&v->sums + counts[i].offset);
}

static bool of_sequences(const tarn_validation *v)
{
    return v->sums.labels > 0.0;
}

static void print_json(const struct options *o, const tarn_settings *settings,
                       const tarn_validation *v, double seconds)
{
    json_t *const object = json_object();

    json_put_text(object, "model", o->model);
    json_put_text(object, "task", settings->task);
    json_put_text(object, "data", *settings->data ? settings->data : NULL);
    json_put_number(object, "loss", v->loss);
    json_put_text(object, "metric", v->name);
    json_put_number(object, v->name, v->metric);
    if (of_sequences(v)) {
        json_put_count(object, "utterances", (size_t)v->positions);
        json_put_count(object, "skipped", o->skipped);
        for (size_t i = 0; i < COUNTS; i++)
            json_put_count(object, counts[i].name, (size_t)count_of(v, i));
    } else {
        json_put_count(object, "positions", (size_t)v->positions);
        json_put_number(object, "positions_per_s", v->positions / seconds);
    }
    json_put_number(object, "seconds", seconds);
    json_print_line(object);
}

static void print_lines(const struct options *o, const tarn_validation *v, double seconds)
{
    printf("%-16s %.6g nats\n", "loss", v->loss);
    printf("%-16s %.6g\n", v->name, v->metric);
    if (of_sequences(v)) {
        printf("%-16s %.0f\n", "utterances", v->positions);
        if (o->skipped > 0)
            printf("%-16s %zu\n", "skipped", o->skipped);
        for (size_t i = 0; i < COUNTS; i++)
            printf("%-16s %.0f\n", counts[i].name, count_of(v, i));
    } else {
        printf("%-16s %.0f\n", "positions", v->positions);
        printf("%-16s %.0f\n", "positions/s", v->positions / seconds);
    }
}

static void skipped(void *context, const tarn_skipped *skipped)
{
    struct options *const o = context;

    o->skipped++;
    progress_line_erase(&o->line);
    skipped_tell(skipped);
}

static void scored(void *context, size_t done, size_t batches)
{
    struct options *const o = context;
    const double now = stopwatch_seconds(), speed = (double)done / (now - o->begin);
    struct progress_parts parts = {0};
    char left[32];

    if (!progress_line_is_due(&o->line, now))
        return;
    words_time(left, sizeof left, (double)(batches - done) / speed);
    progress_part(&parts, 0, "batch %zu/%zu", done, batches);
    progress_part(&parts, 2, "%.3g batches/s", speed);
    progress_part(&parts, 1, "%s left", left);
    progress_line_show(&o->line, &parts, now);
}

static int evaluate(struct options *o, const tarn_model *model)
{
    const tarn_evaluate_desc desc = {
        .host = o->host, .beam = o->beam, .skipped = skipped, .scored = scored, .context = o};
    tarn_settings settings;
    tarn_validation validation;
    tarn_error err;

    if (read_settings(&settings, o, tarn_model_config(model), &err) != TARN_OK)
        return command_error(&cmd_eval, &err);
    o->begin = stopwatch_seconds();
    o->line = progress_line_of(o->begin);
    const tarn_status status = tarn_evaluate(&validation, model, &settings, &desc, &err);
    const double seconds = stopwatch_seconds() - o->begin;

    progress_line_erase(&o->line);
    if (status != TARN_OK)
        return command_error(&cmd_eval, &err);

    if (o->json)
        print_json(o, &settings, &validation, seconds);
    else
        print_lines(o, &validation, seconds);
    return EXIT_DONE;
}

static int run(void *values)
{
    struct options *const o = values;
    tarn_model *const model = model_open(&cmd_eval, o->model, o->best);
    const int code = model ? evaluate(o, model) : EXIT_FAILED;

    tarn_model_free(model);
    return code;
}

const struct command cmd_eval = {
    .name = "tarn eval",
    .summary = "compute the loss and accuracy of a model on validation data",
    .help = "Compute the loss and the metric of a model on validation data: accuracy, bits per "
            "byte, bits per dimension or error rate, depending on its task. For a training "
            "folder, the validation of the training is repeated.",
    .options = rows,
    .examples = "tarn eval runs/book\n"
                "tarn eval runs/book --best --json\n"
                "tarn eval models/mnist.safetensors --data data/mnist --validation 1\n",
    .values = sizeof(struct options),
    .run = run,
};
