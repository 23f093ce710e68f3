/* SPDX-License-Identifier: MIT */
#include "train/settings.h"

#include <string.h>

#include "kernel/matmul.h"
#include "model/config.h"
#include "task/task.h"
#include "train/clip.h"
#include "train/optimizer.h"
#include "train/schedule.h"

#define FIELD(kind, name, least, most, ...)                                                    \
    TN_FIELD(tarn_settings, kind, name, least, most, __VA_ARGS__)
#define FIELD_SINCE(kind, name, least, most, before, ...)                                      \
    TN_FIELD_SINCE(tarn_settings, kind, name, least, most, before, __VA_ARGS__)
#define FIELD_RENAMED(kind, name, least, most, was, ...)                                       \
    TN_FIELD_RENAMED(tarn_settings, kind, name, least, most, was, __VA_ARGS__)
#define PROGRESS(kind, name, least, most)                                                      \
    TN_FIELD(struct tn_training, kind, name, least, most, "")
#define PROGRESS_SINCE(kind, name, least, most, before)                                        \
    TN_FIELD_SINCE(struct tn_training, kind, name, least, most, before, "")
#define NAME(name, ...) TN_FIELD_NAME(tarn_settings, name, NULL, check_##name, __VA_ARGS__)

enum { PROGRESS_FIELDS = 5 };

/* ---- Names -------------------------------------------------------------- */

static tarn_status check_task(const char *value, tarn_error *err)
{
    return tn_table_check(&tn_tasks, value, err);
}

static tarn_status check_optimizer(const char *value, tarn_error *err)
{
    return tn_table_check(&tn_optimizers, value, err);
}

static tarn_status check_schedule(const char *value, tarn_error *err)
{
    return tn_table_check(&tn_schedules, value, err);
}

static tarn_status check_clip(const char *value, tarn_error *err)
{
    struct tn_clip clip;

    return tn_clip_init(&clip, value, err);
}

static tarn_status check_precision(const char *value, tarn_error *err)
{
    enum tn_element element;

    if (strcmp(value, "auto") == 0 || tn_element_named(&element, value, NULL) == TARN_OK)
        return TARN_OK;
    return tn_fail(err, TARN_EUNKNOWN,
                   "precision: unknown name '%.40s'; available: f32, bf16, auto", value);
}

/* ---- The table ---------------------------------------------------------- */

const struct tn_field tn_training_fields[] = {
    NAME(task, "task to train on", "SPEC"),
    FIELD(PATH, data, 0, 0, "file or folder of training data", "PATH"),
    FIELD(NUMBER, validation, 0.0001, 1.0, "fraction of the data kept for validation",
          "FRACTION"),
    FIELD(COUNT, length, 0, 1 << 30, "sequence length; 0: taken from the data", "N"),
    FIELD(COUNT, batch, 1, 1 << 24, "sequences per batch", "B"),
    FIELD(COUNT, accumulate, 1, 1 << 20, "batches per update", "N"),
    FIELD_RENAMED(COUNT, steps, 1, TN_FIELD_MOST, "updates", "total number of updates", "N"),
    NAME(optimizer, "optimizer", "SPEC"),
    NAME(schedule, "learning-rate schedule", "SPEC"),
    NAME(clip, "gradient clipping", "SPEC"),
    NAME(precision,
         "precision of matrix products: f32, bf16, or auto: bf16 where it is faster "
         "on this processor",
         "f32|bf16|auto"),
    FIELD_RENAMED(NUMBER, lr, 1e-12, 10.0, "rate", "learning rate", "RATE"),
    FIELD(FLAG, recompute, 0, 0,
          "recompute activations in the backward pass: less memory, more time"),
    FIELD_RENAMED(FLAG, skip_nonfinite, 0, 0, "skip",
                  "skip updates whose loss or gradient is not finite, instead of stopping"),
    FIELD_RENAMED(COUNT, eval_every, 0, TN_FIELD_MOST, "score_every",
                  "updates between validations; 0: none", "N"),
    FIELD_RENAMED(COUNT, eval_batches, 0, TN_FIELD_MOST, "score_batches",
                  "batches per validation; 0: all of the data, or 16 where it is endless", "N"),
    FIELD(COUNT, save_every, 0, TN_FIELD_MOST,
          "updates between checkpoints; 0: only at the end", "N"),
    FIELD(COUNT, keep, 1, 1 << 20, "number of checkpoints to keep", "N"),
    FIELD(SEED, seed, 0, TN_FIELD_MOST, /* tarn train sets the model's with it */
          "random seed of data, dropout, initial weights, random features and hashes", "S"),
    FIELD_SINCE(PATH, cache, 0, 0, "",
                "folder for cached features, for tasks that compute them", "DIR"),
    FIELD_SINCE(FLAG, strict, 0, 0, "false", "stop at bad data instead of skipping it"),
    FIELD_SINCE(FLAG, carry, 0, 0, "false",
                "truncated backpropagation through time: each sequence of a batch continues "
                "where the batch before ended, from the state that it left"),
    PROGRESS(NUMBER, best, -1e300, 1e300),
    PROGRESS(SEED, best_update, 0, TN_FIELD_MOST),
    PROGRESS_SINCE(NUMBER, schedule_end, 0, TN_FIELD_MOST, "0"),
    PROGRESS_SINCE(COUNT, validations, 0, TN_FIELD_MOST, "0"),
    PROGRESS_SINCE(COUNT, due, TN_DUE_NONE, TN_DUE_REGULAR, "0"),
    {.about = {.name = NULL}},
};

const tarn_field *tarn_settings_field(size_t index)
{
    const size_t all = sizeof tn_training_fields / sizeof tn_training_fields[0] - 1;

    return index < all - PROGRESS_FIELDS ? &tn_training_fields[index].about : NULL;
}

tarn_status tarn_settings_set(tarn_settings *settings, const char *name, const char *value,
                              tarn_error *err)
{
    if (!settings || !name || !value)
        return tn_fail(err, TARN_EINVAL, "settings, name and value must not be NULL");
    for (size_t i = 0; tarn_settings_field(i); i++)
        if (strcmp(tarn_settings_field(i)->name, name) == 0)
            return tn_fields_set(&tn_training_fields[i], settings, name, value, err);
    return tn_fail(err, TARN_EUNKNOWN, "unknown setting '%.40s'", name);
}

tarn_status tarn_settings_text(const tarn_settings *settings, char *text, size_t size,
                               const char *name, tarn_error *err)
{
    if (!settings || !text || !name)
        return tn_fail(err, TARN_EINVAL, "settings, text and name must not be NULL");
    for (size_t i = 0; tarn_settings_field(i); i++)
        if (strcmp(tarn_settings_field(i)->name, name) == 0)
            return tn_fields_text(&tn_training_fields[i], settings, text, size, name, err);
    return tn_fail(err, TARN_EUNKNOWN, "unknown setting '%.40s'", name);
}

/* ---- A start ------------------------------------------------------------ */

static const struct tn_task_setting usual[] = {
    {"validation", "0.1"},
    {"accumulate", "1"},
    {"clip", "tensor:norm=1"},
    {"schedule", "constant"},
    {"precision", "f32"},
    {"eval_every", "500"},
    {"save_every", "1000"},
    {"keep", "2"},
    {"seed", "1"},
    {0},
};

static tarn_status set_all(tarn_settings *settings, const struct tn_task_setting *pairs,
                           tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (; pairs->name && status == TARN_OK; pairs++)
        status = tarn_settings_set(settings, pairs->name, pairs->value, err);
    return status;
}

tarn_status tarn_settings_start(tarn_settings *settings, const char *task, tarn_error *err)
{
    tarn_status status;

    if (!settings || !task)
        return tn_fail(err, TARN_EINVAL, "settings and task must not be NULL");
    const struct tn_task_row *const row = tn_table_find(&tn_tasks, NULL, task, &status, err);

    *settings = (tarn_settings){0};
    if (!row || (status = tarn_settings_set(settings, "task", task, err)) != TARN_OK ||
        (status = set_all(settings, usual, err)) != TARN_OK)
        return status;
    return set_all(settings, row->settings, err);
}

static bool is_setting(const char *name)
{
    for (size_t i = 0; tarn_settings_field(i); i++)
        if (strcmp(tarn_settings_field(i)->name, name) == 0)
            return true;
    return false;
}

/* The other words are fields of the model's configuration. */
static tarn_status set_setting(void *settings, const char *field, const char *value,
                               tarn_error *err)
{
    return is_setting(field) ? tarn_settings_set(settings, field, value, err) : TARN_OK;
}

tarn_status tarn_settings_preset(tarn_settings *settings, const char *preset, tarn_error *err)
{
    if (!settings || !preset)
        return tn_fail(err, TARN_EINVAL, "settings and preset must not be NULL");
    return tn_preset_apply(preset, set_setting, settings, err);
}

/* ---- Agreement ---------------------------------------------------------- */

/* They change how long a run is and what is kept of it. `validation` and the like are not here:
 * plateau looks at the validation. */
static bool is_free(const char *name)
{
    static const char *const names[] = {"steps",          "save_every", "keep",  "recompute",
                                        "skip_nonfinite", "cache",      "strict"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

tarn_status tn_settings_agree(const tarn_settings *now, const tarn_settings *before,
                              const char *path, tarn_error *err)
{
    for (size_t i = 0; tarn_settings_field(i); i++) {
        const struct tn_field *const field = &tn_training_fields[i];
        char a[TARN_PATH_SIZE], b[TARN_PATH_SIZE];

        tn_field_text(field, now, a, sizeof a);
        tn_field_text(field, before, b, sizeof b);
        if (!is_free(field->about.name) && strcmp(a, b) != 0)
            return tn_fail(err, TARN_EINVAL,
                           "%s is '%.50s'; it must be '%.50s', as when %s was started",
                           field->about.name, a, b, path);
    }
    return TARN_OK;
}
