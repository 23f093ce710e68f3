/* SPDX-License-Identifier: MIT */
/* cmd_eval.c - tarn eval: loss and metric of a model on validation data. */
#include <stdio.h>

#include "files.h"
#include "hardware.h"
#include "json_line.h"
#include "progress.h"
#include "ranks.h"
#include "words.h"

struct options {
    const char *model;
    const char *data, *length, *batch, *batches, *validation, *seed;
    const char *cache, *strict; /* NULL: not given */
    const char *precision;
    tarn_host host;
    size_t beam, skipped;
    bool best, json;
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, MODEL_HELP},
    {"data", "PATH", ARGS_FIELD, NULL, AT(data), 0, 0,
     "validation data; a training folder has its own, and some tasks generate theirs"},
    {"validation", "X", ARGS_FIELD, NULL, AT(validation), 0, 0,
     "fraction of the data to evaluate on, taken from its end; 1: all [as in training, or "
     "0.1]"},
    {"length", "N", ARGS_FIELD, NULL, AT(length), 0, 0,
     "sequence length; not for speech [as in training, or the task's default]"},
    {"batch", "B", ARGS_FIELD, NULL, AT(batch), 0, 0,
     "batch size [as in training, or the task's default]"},
    {"eval-batches", "N", ARGS_FIELD, NULL, AT(batches), 0, 0,
     "maximum number of batches; 0: all, or 16 if the data is generated [as in training, or "
     "0]"},
    {"seed", "S", ARGS_FIELD, NULL, AT(seed), 0, 0,
     "random seed of generated data [as in training]"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights, as in tarn generate"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"beam", "W", ARGS_COUNT, "0", AT(beam), 0, 100000,
     "speech: beam width of the CTC decoder; 0: greedy decoding"},
    {"strict", NULL, ARGS_FIELD, NULL, AT(strict), 0, 0,
     "speech: fail on an utterance that cannot be used instead of skipping it"},
    {"cache", "DIR", ARGS_FIELD, NULL, AT(cache), 0, 0,
     "speech: folder that caches the features [as in training, or none]"},
    {"threads", "N", ARGS_HOST, "0", AT(host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0, "print one JSON object"},
    {0},
};

/* ---- Settings ----------------------------------------------------------- */

static void set(void *settings, const char *field, const char *text)
{
    must(tarn_settings_set(settings, field, text, &failure));
}

/* Those of a training folder, to repeat its validation; otherwise the task's defaults. */
static tarn_settings settings_of(const struct options *o, const tarn_config *config)
{
    tarn_config of_folder;
    tarn_settings settings;

    if (!*config->task)
        refuse("%s: the model has no task to evaluate; import it with --task", o->model);
    if (o->length && config->frames > 0)
        refuse("--length cannot be used with a speech model: every utterance has its own");
    const tarn_status status =
        is_folder(o->model) ? tarn_train_settings(&of_folder, &settings, o->model, &failure)
                            : TARN_EUNKNOWN;

    if (status == TARN_EUNKNOWN) {
        must(tarn_settings_start(&settings, config->task, &failure));
        settings.eval_batches = 0;
    } else if (status != TARN_OK) {
        fail("%s", failure.text);
    }
    args_set_fields(rows, o, set, &settings);
    return settings;
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

static void print_json(const struct options *o, const tarn_settings *settings,
                       const tarn_validation *v, double seconds)
{
    json_t *const object = json_object();

    json_put_text(object, "model", o->model);
    json_put_text(object, "task", settings->task);
    json_put_text(object, "data", *settings->data ? settings->data : NULL);
    json_put_text(object, "precision", o->precision);
    json_put_number(object, "loss", v->loss);
    json_put_text(object, "metric", v->name);
    json_put_number(object, v->name, v->metric);
    if (v->sums.labels > 0.0) { /* sequences */
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
    if (v->sums.labels > 0.0) { /* sequences */
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
    progress_skipped(skipped);
}

static void scored(void *context, size_t done, size_t batches)
{
    const double speed = (double)done / progress_seconds();
    char left[32];

    (void)context;
    if (!progress_is_due())
        return;
    words_time(left, sizeof left, (double)(batches - done) / speed);
    progress_part(0, "batch %zu/%zu", done, batches);
    progress_part(2, "%.3g batches/s", speed);
    progress_part(1, "%s left", left);
    progress_show();
}

static void run(void *values)
{
    struct options *const o = values;
    tarn_model *const model = model_open(o->model, o->best);
    const tarn_settings settings = settings_of(o, tarn_model_config(model));
    tarn_evaluate_desc desc = {.beam = o->beam,
                               .skipped = skipped,
                               .scored = scored,
                               .context = o,
                               .precision = o->precision};
    tarn_validation validation;

    desc.comm = ranks_open(&o->host);
    desc.host = o->host;
    if (!ranks_prints()) {
        desc.skipped = NULL;
        desc.scored = NULL;
    }
    progress_begin();
    ranks_lost();
    must(ranks_found(tarn_evaluate(&validation, model, &settings, &desc, &failure)));
    const double seconds = progress_seconds();

    progress_erase();
    if (ranks_prints() && o->json)
        print_json(o, &settings, &validation, seconds);
    else if (ranks_prints())
        print_lines(o, &validation, seconds);
    tarn_model_free(model);
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
