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
#define NAME(name, limit, ...) TN_FIELD_NAME(tarn_settings, name, NULL, limit, __VA_ARGS__)

enum { PROGRESS_FIELDS = 5 };

/* ---- Names -------------------------------------------------------------- */

static tarn_status check_precision(const char *value, tarn_error *err)
{
    enum tn_element element;

    if (strcmp(value, "auto") == 0 ||
        tn_element_named(&element, value, TN_INT8, NULL) == TARN_OK)
        return TARN_OK;
    return tn_fail(err, TARN_EUNKNOWN,
                   "precision: unknown name '%.40s'; available: f32, bf16, auto", value);
}

/* ---- The table ---------------------------------------------------------- */

const struct tn_field tn_training_fields[] = {
    NAME(task, .table = &tn_tasks, "task to train on", "SPEC"),
    FIELD(PATH, data, 0, 0, "file or folder of training data", "PATH"),
    FIELD(NUMBER, validation, 0.0001, 1.0, "fraction of the data kept for validation",
          "FRACTION"),
    FIELD(COUNT, length, 0, 1 << 30, "sequence length; 0: taken from the data", "N"),
    FIELD(COUNT, batch, 1, 1 << 24, "sequences per batch", "B"),
    FIELD(COUNT, accumulate, 1, 1 << 20, "batches per update", "N"),
    FIELD_RENAMED(COUNT, steps, 1, TN_FIELD_MOST, "updates", "total number of updates", "N"),
    NAME(optimizer, .table = &tn_optimizers, "optimizer", "SPEC"),
    NAME(schedule, .table = &tn_schedules, "learning-rate schedule", "SPEC"),
    NAME(clip, .table = &tn_clips, "gradient clipping", "SPEC"),
    NAME(precision, .check = check_precision,
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
    FIELD_SINCE(
        COUNT, micro_batches, 0, 1 << 20, "1",
        "equal parts of each batch, a power of two, whose gradients are summed in a "
        "fixed order: any number of ranks up to N gives the same bits as one; 0: up to 8, of "
        "at least 1,024 positions each, but at least one per rank",
        "N"),
    FIELD_SINCE(FLAG, bf16_gradients, 0, 0, "false",
                "round the gradients of micro-batches and their sums to bf16: ranks send half "
                "as much"),
    FIELD_SINCE(FLAG, shard_optimizer, 0, 0, "false",
                "each rank keeps the optimizer state of some tensors only: less memory"),
    FIELD_SINCE(
        COUNT, sequence_parallel, 0, 1 << 20, "1",
        "ranks that share each sequence, a power of two, each with an equal part of its "
        "positions; groups of S ranks share the batch; 0: 1",
        "S"),
    FIELD_SINCE(
        COUNT, sequence_chunks, 0, 1 << 20, "0",
        "equal parts of each sequence, a power of two, whose gradients are summed in a "
        "fixed order: any --sequence-parallel up to N gives the same bits; 0: sequences "
        "are not cut, or with --sequence-parallel into 8 if that divides the length",
        "N"),
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

/* What a run keeps beside its settings has no help. */
static bool is_setting(const char *name)
{
    const struct tn_field *const field = tn_fields_find(tn_training_fields, name);

    return field && *field->about.help;
}

tarn_status tarn_settings_set(tarn_settings *settings, const char *name, const char *value,
                              tarn_error *err)
{
    if (!settings || !name || !value)
        return tn_fail(err, TARN_EINVAL, "settings, name and value must not be NULL");
    return is_setting(name) ? tn_fields_set(tn_training_fields, settings, name, value, err)
                            : tn_fail(err, TARN_EUNKNOWN, "unknown setting '%.40s'", name);
}

tarn_status tarn_settings_text(const tarn_settings *settings, char *text, size_t size,
                               const char *name, tarn_error *err)
{
    if (!settings || !text || !name)
        return tn_fail(err, TARN_EINVAL, "settings, text and name must not be NULL");
    return is_setting(name)
               ? tn_fields_text(tn_training_fields, settings, text, size, name, err)
               : tn_fail(err, TARN_EUNKNOWN, "unknown setting '%.40s'", name);
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

tarn_status tarn_settings_preset(tarn_settings *settings, const char *preset, tarn_error *err)
{
    if (!settings || !preset)
        return tn_fail(err, TARN_EINVAL, "settings and preset must not be NULL");
    return tn_preset_apply(preset, tn_training_fields, settings, err);
}

/* ---- Agreement ---------------------------------------------------------- */

tarn_status tn_settings_agree(const struct tn_training *now, const struct tn_training *before,
                              const char *path, tarn_error *err)
{
    /* They change how long a run is and what is kept of it, and the last ones are not settings.
     * `validation` and the like are not here: plateau looks at the validation. */
    static const char *const except[] = {"steps",
                                         "save_every",
                                         "keep",
                                         "recompute",
                                         "skip_nonfinite",
                                         "cache",
                                         "strict",
                                         "best",
                                         "best_update",
                                         "schedule_end",
                                         "validations",
                                         "due",
                                         "shard_optimizer",
                                         "sequence_parallel",
                                         NULL};

    return tn_fields_agree(tn_training_fields, now, before, except, path, err);
}
