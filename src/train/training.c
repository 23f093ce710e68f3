/* SPDX-License-Identifier: MIT */
/* training.c - a run of training from its first update, or its last checkpoint, to its end. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "comm/transfer.h"
#include "file/fields_json.h"
#include "file/safetensors.h"
#include "kernel/matmul.h"
#include "model/body.h"
#include "model/model_file.h"
#include "train/loader.h"
#include "train/pace.h"
#include "train/peers.h"
#include "train/settings.h"
#include "train/trainer.h"
#include "train/training_folder.h"
#include "train/training_log.h"

static const char settings_key[] = "tarn_training";

struct training {
    struct tn_training state;
    const tarn_train_desc *desc;
    struct tn_host host;
    tarn_model *model;
    tarn_trainer *trainer;
    struct tn_loader loader;
    struct tn_log log;
    int lock;       /* of the folder */
    uint64_t saved; /* updates that the last checkpoint has */
    struct tn_pace pace;
    double begin; /* of the loop, by the clock */

    tarn_status pending; /* of several processes: what failed here and the others do not know */
    tarn_error pending_err;
};

/* ---- Processes ---------------------------------------------------------- */

static bool is_alone(const struct training *t)
{
    return tn_comm_size(t->desc->comm) == 1;
}

/* Files are written by one process. */
static bool writes(const struct training *t)
{
    return tn_comm_rank(t->desc->comm) == 0;
}

/* What failed in one process, now or before, fails in all. Who writes may take its time. */
static tarn_status agree(struct training *t, tarn_status status, tarn_error *err)
{
    if (status == TARN_OK && t->pending != TARN_OK)
        status = tn_fail(err, t->pending, "%s", t->pending_err.text);
    return tn_comm_agree(t->desc->comm, status, writes(t) ? TN_SHORT : TN_LONG, err);
}

/* The others learn of it with the next update, or when they agree next. */
static tarn_status postpone(struct training *t, tarn_status status, const tarn_error *failure,
                            tarn_error *err)
{
    if (status == TARN_OK)
        return TARN_OK;
    if (is_alone(t))
        return tn_fail(err, status, "%s", failure->text);
    t->pending = status;
    t->pending_err = *failure;
    return TARN_OK;
}

/* ---- Checkpoints -------------------------------------------------------- */

static void report_saved(const struct training *t, const char *path)
{
    if (t->desc->events.saved)
        t->desc->events.saved(t->desc->events.context, path);
}

static tarn_status save_model(const struct training *t, const char *name, tarn_error *err)
{
    char path[TN_FOLDER_PATH];

    tn_folder_path(path, t->desc->out, name);
    return tarn_model_save(t->model, path, err);
}

/* The trainer, and how far the run is. */
static tarn_status write_checkpoint(const struct training *t, const char *path,
                                    const float *moments, tarn_error *err)
{
    char *json;
    tarn_status status = tn_fields_write(&json, tn_training_fields, &t->state, "settings", err);

    if (status == TARN_OK)
        status = tn_checkpoint_write(t->trainer, path, moments,
                                     &(struct tn_safetensors_entry){settings_key, json}, err);
    free(json);
    return status;
}

/* The log first: a checkpoint never knows more than the log does. */
static tarn_status write_files(struct training *t, const float *moments, tarn_error *err)
{
    const double begin = tn_seconds();
    char path[TN_FOLDER_PATH];
    tarn_status status;

    tn_folder_checkpoint(path, t->desc->out, tarn_trainer_updates(t->trainer));
    if ((status = tn_log_sync(&t->log, err)) != TARN_OK ||
        (status = write_checkpoint(t, path, moments, err)) != TARN_OK ||
        (status = save_model(t, "model.safetensors", err)) != TARN_OK)
        return status;
    tn_folder_prune(t->desc->out, t->state.settings.keep);
    report_saved(t, path);
    tn_pace_saved(&t->pace, tn_seconds() - begin);
    return TARN_OK;
}

static tarn_status save(struct training *t, tarn_error *err)
{
    float *moments = NULL;
    tarn_status status = tn_trainer_collect(t->trainer, &moments, err);

    if (status == TARN_OK && writes(t))
        status = write_files(t, moments, err);
    free(moments);
    if ((status = agree(t, status, err)) == TARN_OK)
        t->saved = tarn_trainer_updates(t->trainer);
    return status;
}

static tarn_status read_training(struct tn_training *state, const struct tn_safetensors *file,
                                 const char *path, tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, settings_key);

    if (!json)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: is not a training checkpoint: it has no '%s' metadata", path,
                       settings_key);
    *state = (struct tn_training){0};
    return tn_fields_read(tn_training_fields, state, json, path, "settings", err);
}

/* The last checkpoint before update `below` that is not damaged; *cause is what is wrong with
 * the first one that is. */
static tarn_status open_whole(struct tn_safetensors *file, uint64_t *update, const char *folder,
                              tarn_error *cause, tarn_error *err)
{
    uint64_t below = UINT64_MAX;
    bool found;
    tarn_status status;

    *cause = (tarn_error){0};
    while ((status = tn_folder_last(folder, below, &found, update, err)) == TARN_OK && found) {
        char path[TN_FOLDER_PATH];
        tarn_error wrong;

        tn_folder_checkpoint(path, folder, *update);
        status = tn_safetensors_read(file, path, &wrong);
        if (status == TARN_OK)
            return TARN_OK;
        if (status != TARN_EFORMAT)
            return tn_fail(err, status, "%s", wrong.text);
        if (below == UINT64_MAX)
            *cause = wrong;
        below = *update;
    }
    if (status != TARN_OK)
        return status;
    if (cause->status != TARN_OK)
        return tn_fail(err, TARN_EFORMAT, "%.200s; no other checkpoint is whole", cause->text);
    return tn_fail(err, TARN_EUNKNOWN, "%s: has no checkpoint to resume from", folder);
}

/* The last checkpoint; if it is damaged, one before it is taken only if the caller allows that,
 * and then the damaged ones are set aside: they must not count as those that are kept. */
static tarn_status open_last(struct tn_safetensors *file, char path[TN_FOLDER_PATH],
                             const tarn_train_desc *desc, tarn_error *err)
{
    uint64_t update = 0, later = 0;
    bool found = true;
    tarn_error cause;
    tarn_status status = open_whole(file, &update, desc->out, &cause, err);

    if (status == TARN_OK && cause.status != TARN_OK && !desc->any) {
        tn_safetensors_free(file);
        return tn_fail(err, TARN_EFORMAT,
                       "%.170s; the checkpoint of update %" PRIu64
                       " is whole: add --any to resume from it",
                       cause.text, update);
    }
    while (status == TARN_OK &&
           (status = tn_folder_last(desc->out, UINT64_MAX, &found, &later, err)) == TARN_OK &&
           found && later > update)
        status = tn_folder_set_aside(desc->out, later, err);
    tn_folder_checkpoint(path, desc->out, update);
    return status;
}

static tarn_status read_checkpoint(struct training *t, const struct tn_safetensors *file,
                                   const char *path, tarn_error *err)
{
    const char *const shown = tn_path_shown(path);
    struct tn_training before;
    tarn_status status;

    if ((status = read_training(&before, file, shown, err)) != TARN_OK ||
        (status = tn_settings_agree(&t->state, &before, shown, err)) != TARN_OK ||
        (status = tn_checkpoint_read(t->trainer, file, shown, err)) != TARN_OK)
        return status;
    t->state.best = before.best;
    t->state.best_update = before.best_update;
    t->state.schedule_end = before.schedule_end;
    t->state.validations = before.validations;
    t->state.due = before.due;
    t->saved = tarn_trainer_updates(t->trainer);
    return TARN_OK;
}

/* The model is written again: who was killed between a checkpoint and its model left an older
 * one, and there may be no update left to do. */
static tarn_status resume(struct training *t, tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    tarn_status status = open_last(&file, path, t->desc, err);

    if (status != TARN_OK)
        return status;
    if ((status = read_checkpoint(t, &file, path, err)) == TARN_OK)
        status = save_model(t, "model.safetensors", err);
    tn_safetensors_free(&file);
    return status;
}

/* ---- Validation --------------------------------------------------------- */

/* What less is better of. */
static double judged(const struct training *t, const tarn_validation *now)
{
    return tn_task_metric(t->loader.task)->decides ? now->metric : now->loss;
}

/* What is remembered as the best is in its file. */
static tarn_status keep_best(struct training *t, const tarn_validation *now, tarn_error *err)
{
    const double value = judged(t, now);

    if (!isfinite(value) || (t->state.best_update > 0 && value >= t->state.best))
        return TARN_OK;
    const tarn_status status =
        agree(t, writes(t) ? save_model(t, "best.safetensors", err) : TARN_OK, err);

    if (status == TARN_OK) {
        t->state.best = value;
        t->state.best_update = now->update;
    }
    return status;
}

/* It is due until all of it is done. Its line comes last: a line that cannot be written now is
 * before the next checkpoint. */
static tarn_status validate(struct training *t, tarn_error *err)
{
    const double begin = tn_seconds();
    tarn_validation now = {.update = tarn_trainer_updates(t->trainer)};
    tarn_error failure;
    tarn_status status = tn_validate(&t->loader, &now, &t->state.settings, t->trainer->run,
                                     &t->trainer->sequences, t->desc->comm, err);

    if (status != TARN_OK || (status = keep_best(t, &now, err)) != TARN_OK)
        return status;
    tn_pace_validated(&t->pace, tn_seconds() - begin);
    if (t->state.due == TN_DUE_REGULAR)
        tarn_trainer_observe(t->trainer, judged(t, &now));
    t->state.due = TN_DUE_NONE;
    if (t->desc->events.validation)
        t->desc->events.validation(t->desc->events.context, &now);
    return writes(t) ? postpone(t, tn_log_validation(&t->log, &now, &failure), &failure, err)
                     : TARN_OK;
}

/* ---- Fitting a run to a time -------------------------------------------- */

/* The share of the run that is done after an update, and the validations that belong there. */
static double validations_by(const struct training *t, uint64_t update)
{
    const double point = tn_schedule_point(&t->trainer->progress.schedule, update);

    return floor((double)t->state.validations * point / t->state.schedule_end);
}

static bool validates_by_update(const struct training *t, uint64_t update)
{
    const size_t every = t->state.settings.eval_every;

    if (t->state.validations > 0)
        return validations_by(t, update) > validations_by(t, update - 1);
    return every > 0 && update % every == 0;
}

static size_t validations_left(const struct training *t, uint64_t update)
{
    const tarn_settings *const s = &t->state.settings;

    if (t->state.validations > 0)
        return t->state.validations - (size_t)validations_by(t, update);
    return s->eval_every > 0 ? (s->steps - update) / s->eval_every + 1 : 0;
}

static void report_planned(const struct training *t)
{
    if (t->desc->events.planned)
        t->desc->events.planned(t->desc->events.context, &t->state.settings);
}

/* The clock decides how many updates there are, that of one process for all. Whatever it
 * decides is in a checkpoint before the next update, so that what was done since the last
 * checkpoint is done again, bit for bit, by a run that is resumed. True: there is something to
 * save. */
static bool plan_here(struct training *t, uint64_t update)
{
    tarn_settings *const s = &t->state.settings;
    struct tn_schedule_state *const watched = &t->trainer->progress.schedule;
    const double now = tn_seconds() - t->begin, end = t->state.schedule_end;

    if (end == 0.0 || update >= s->steps)
        return false;
    if (tn_pace_is_over(&t->pace, now)) {
        s->steps = update;
        report_planned(t);
        return true;
    }
    if (t->pace.updates == 0)
        tn_pace_begin(&t->pace, now, update);
    if (!tn_pace_is_due(&t->pace, now, update) || tn_schedule_point(watched, update) >= end)
        return false;
    s->steps = tn_pace_plan(&t->pace, now, update, validations_left(t, update));
    tn_schedule_stretch(watched, update, end, s->steps);
    report_planned(t);
    return true;
}

static tarn_status plan(struct training *t, bool *planned, uint64_t update, tarn_error *err)
{
    struct {
        bool planned;
        size_t steps;
        struct tn_schedule_state schedule;
    } now = {.planned = false};

    if (t->state.schedule_end == 0.0)
        return TARN_OK;
    if (writes(t))
        now.planned = plan_here(t, update);
    now.steps = t->state.settings.steps;
    now.schedule = t->trainer->progress.schedule;
    const tarn_status status = tn_comm_broadcast(t->desc->comm, &now, sizeof now, err);

    *planned = now.planned;
    t->state.settings.steps = now.steps;
    t->trainer->progress.schedule = now.schedule;
    return status;
}

enum { MEASURED = 4 }; /* updates before the first plan */

/* What the schedule and the validations of a run that begins are made for. */
static void start_planning(struct training *t)
{
    tarn_settings *const s = &t->state.settings;
    const double end = tn_schedule_end(&t->trainer->schedule);

    t->pace = tn_pace_of(60.0 * t->desc->minutes);
    t->begin = tn_seconds();
    if (t->desc->resume && t->state.schedule_end > 0.0)
        report_planned(t);
    if (t->desc->resume || t->desc->minutes == 0.0)
        return;
    t->state.schedule_end = end > 0.0 ? end : (double)s->steps;
    t->state.validations = t->desc->validations;
    s->steps = tn_max(s->steps, MEASURED);
}

/* ---- The loop ----------------------------------------------------------- */

static bool must_stop(const struct training *t)
{
    const tarn_events *const events = &t->desc->events;

    return events->stop && events->stop(events->context);
}

/* Batches are numbered: the next ones follow from the number of updates. */
static tarn_status read_batches(const struct training *t, tarn_error *err)
{
    const size_t count = t->state.settings.accumulate;
    const uint64_t first = tarn_trainer_updates(t->trainer) * count;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = tn_loader_fill(&t->loader, i, TN_TRAINING, first + i, err);
    return status;
}

static tarn_status update(struct training *t, tarn_report *report, tarn_error *err)
{
    const double begin = tn_seconds();
    tarn_error failure;
    tarn_status status = t->pending != TARN_OK
                             ? tn_fail(err, t->pending, "%s", t->pending_err.text)
                             : read_batches(t, err);

    t->trainer->wants_stop = !is_alone(t) && must_stop(t);
    status = status == TARN_OK ? tarn_trainer_update(t->trainer, report, t->loader.views,
                                                     t->state.settings.accumulate, err)
                               : tn_trainer_fail(t->trainer, status, err);
    if (status != TARN_OK)
        return status;
    const double seconds = tn_seconds() - begin, tokens = (double)report->tokens;

    t->state.due = validates_by_update(t, report->update) ? TN_DUE_REGULAR : TN_DUE_NONE;
    if (t->desc->events.update)
        t->desc->events.update(t->desc->events.context, report);
    return writes(t) ? postpone(t, tn_log_update(&t->log, report, tokens / seconds, &failure),
                                &failure, err)
                     : TARN_OK;
}

static bool validates_at_all(const struct training *t)
{
    return t->state.validations > 0 || t->state.settings.eval_every > 0;
}

/* An update, and what is due after it. */
static tarn_status train_one(struct training *t, bool *stop, tarn_error *err)
{
    const tarn_settings *const s = &t->state.settings;
    tarn_report report;
    bool planned = false;
    tarn_status status;

    if ((status = update(t, &report, err)) != TARN_OK ||
        (status = plan(t, &planned, report.update, err)) != TARN_OK)
        return status;
    const bool last = report.update == s->steps;
    const bool saves = s->save_every > 0 && report.update % s->save_every == 0;

    if (last && validates_at_all(t))
        t->state.due = tn_max(t->state.due, TN_DUE_LAST);
    if (t->state.due != TN_DUE_NONE && (status = validate(t, err)) != TARN_OK)
        return status;
    *stop = is_alone(t) ? must_stop(t) : t->trainer->stops;
    return *stop || last || planned || saves ? save(t, err) : TARN_OK;
}

/* Process 0 may have all of it without the others, one of which does not answer. */
static void save_the_rest(struct training *t, tarn_status why)
{
    if (why != TARN_ERANK)
        save(t, NULL);
    else if (writes(t) && t->trainer->carry.bytes == 0 && !t->trainer->shards)
        write_files(t, NULL, NULL);
}

/* Where data or a validation fail, what was learnt since the last checkpoint is kept. Numbers
 * that ran away began to before they showed: the last checkpoint is the better place then. */
static tarn_status loop(struct training *t, tarn_error *err)
{
    tarn_status status = TARN_OK;
    bool stop = false;

    if (t->state.due != TN_DUE_NONE && (status = validate(t, err)) == TARN_OK)
        status = save(t, err);
    while (!stop && status == TARN_OK &&
           tarn_trainer_updates(t->trainer) < t->state.settings.steps)
        status = train_one(t, &stop, err);
    if (status != TARN_OK && status != TARN_ENUMBER &&
        tarn_trainer_updates(t->trainer) > t->saved)
        save_the_rest(t, status);
    return status;
}

/* ---- Opening ------------------------------------------------------------ */

static tarn_status check(const tarn_config *config, const tarn_settings *settings,
                         tarn_error *err)
{
    const struct tn_training state = {.settings = *settings};
    tarn_status status;

    char *json; /* as every checkpoint has it */

    if ((status = tn_fields_check(tn_training_fields, &state, err)) != TARN_OK ||
        (status = tn_fields_write(&json, tn_training_fields, &state, "settings", err)) !=
            TARN_OK)
        return status;
    free(json);
    return config->stack > 0 ? TARN_OK
                             : tn_fail(err, TARN_EINVAL, "stack is 0; it must be at least 1");
}

/* All fields of the configuration but these say what is computed with the weights. */
static tarn_status check_start(const tarn_config *config, const tarn_model *start,
                               const char *path, tarn_error *err)
{
    static const char *const except[] = {"task", "dropout", "seed", NULL};

    return tn_fields_agree(tn_config_fields, config, tarn_model_config(start), except,
                           tn_path_shown(path), err);
}

static tarn_status open_model(struct training *t, const tarn_config *config, tarn_error *err)
{
    const char *const path = t->desc->resume ? NULL : t->desc->start;
    tarn_model *start = NULL;
    tarn_status status = tarn_model_create(&t->model, config, t->desc->host.allocator, err);

    if (status == TARN_OK && path &&
        (status = tarn_model_load(&start, path, t->desc->host.allocator, err)) == TARN_OK &&
        (status = check_start(config, start, path, err)) == TARN_OK)
        memcpy(t->model->values, start->values, start->count * sizeof *start->values);
    tarn_model_free(start);
    return status;
}

/* Settings and progress of the last checkpoint that is whole, and its configuration unless that
 * is NULL. */
static tarn_status read_last(struct tn_training *state, tarn_config *config, const char *folder,
                             tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    uint64_t update = 0;
    tarn_error cause;
    tarn_status status = open_whole(&file, &update, folder, &cause, err);

    if (status != TARN_OK)
        return status;
    tn_folder_checkpoint(path, folder, update);
    if ((status = read_training(state, &file, tn_path_shown(path), err)) == TARN_OK && config)
        status = tn_config_from_file(config, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}

/* What the schedule is made for: of a run that was fitted to a time, the steps it began with.
 */
static tarn_status schedule_steps(size_t *steps, const struct training *t, tarn_error *err)
{
    struct tn_training before = {0};
    const tarn_status status =
        t->desc->resume ? read_last(&before, NULL, t->desc->out, err) : TARN_OK;

    *steps = before.schedule_end > 0.0 ? (size_t)before.schedule_end : t->state.settings.steps;
    return status;
}

static tarn_status open_trainer(struct training *t, const tarn_config *config, tarn_error *err)
{
    const tarn_settings *const s = &t->state.settings;
    tarn_trainer_desc desc = {
        .batch = s->batch,
        .length = s->length,
        .optimizer = s->optimizer,
        .schedule = s->schedule,
        .clip = s->clip,
        .lr = s->lr,
        .precision = s->precision,
        .recompute = s->recompute,
        .carry = s->carry,
        .varies = t->loader.task->row->frames > 0,
        .skip_nonfinite = s->skip_nonfinite,
        .seed = s->seed,
        .host = t->desc->host,
        .micro_batches = s->micro_batches,
        .bf16_gradients = s->bf16_gradients,
        .shard_optimizer = s->shard_optimizer,
        .comm = t->desc->comm,
    };
    char *note = NULL;
    tarn_status status;

    if ((status = schedule_steps(&desc.steps, t, err)) == TARN_OK &&
        (status = open_model(t, config, err)) == TARN_OK &&
        (status = tn_task_note(t->loader.task, &note, err)) == TARN_OK &&
        (status = tn_model_note(t->model, note, err)) == TARN_OK)
        status = tarn_trainer_create(&t->trainer, t->model, &desc, err);
    free(note);
    return status;
}

static tarn_status open_folder(struct training *t, tarn_error *err)
{
    tarn_status status;

    if ((status = tn_folder_make(t->desc->out, err)) != TARN_OK ||
        (status = tn_folder_lock(&t->lock, t->desc->out, err)) != TARN_OK)
        return status;
    return t->desc->resume ? resume(t, err) : tn_folder_check_new(t->desc->out, err);
}

/* A run that begins has a checkpoint before anything else is in its folder: whenever it is
 * interrupted, it can be resumed. */
static tarn_status write_first(const struct training *t, const float *moments, tarn_error *err)
{
    char path[TN_FOLDER_PATH];

    tn_folder_checkpoint(path, t->desc->out, 0);
    return write_checkpoint(t, path, moments, err);
}

static tarn_status open_log(struct training *t, tarn_error *err)
{
    float *moments = NULL;
    char path[TN_FOLDER_PATH];
    tarn_status status = tn_trainer_collect(t->trainer, &moments, err);

    if (status == TARN_OK && writes(t) && !t->desc->resume)
        status = write_first(t, moments, err);
    free(moments);
    if (status != TARN_OK || !writes(t))
        return status;
    tn_folder_path(path, t->desc->out, "log.jsonl");
    return tn_log_open(&t->log, path, t->desc->resume, tarn_trainer_updates(t->trainer), err);
}

/* What the data said becomes part of a model that is of the same task. */
static void take_over(tarn_config *config, const char *task_before, size_t symbols_before,
                      const tarn_task *task)
{
    if (strcmp(config->task, task_before) != 0)
        return;
    memcpy(config->task, task->spec, sizeof config->task);
    if (config->symbols == symbols_before)
        config->symbols = tarn_task_symbols(task);
}

/* All of the data is fine for an evaluation. */
static tarn_status check_validation(const tarn_settings *settings, tarn_error *err)
{
    tarn_status status;
    const struct tn_task_row *const row =
        tn_table_find(&tn_tasks, NULL, settings->task, &status, err);

    if (!row)
        return status;
    if (settings->validation < 1.0 || !row->reads_data)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "validation is %g, which leaves no training data; it must be less than 1",
                   settings->validation);
}

static tarn_status open_loader(struct training *t, tarn_config *config, tarn_error *err)
{
    tarn_settings *const settings = &t->state.settings;
    const tarn_settings before = *settings;
    const struct tn_loader_desc desc = {
        .stack = config->stack,
        .threads = t->host.threads,
        .skipped = t->desc->events.skipped,
        .scored = t->desc->events.scored,
        .context = t->desc->events.context,
    };
    size_t symbols;
    tarn_status status;

    if ((status = check_validation(settings, err)) != TARN_OK ||
        (status = tn_task_symbols_of(&symbols, settings->task, err)) != TARN_OK ||
        (status = tn_loader_open(&t->loader, settings, &desc, err)) != TARN_OK)
        return status;
    take_over(config, before.task, symbols, t->loader.task);
    return tn_task_fits(t->loader.task, config, err);
}

/* By desc->epochs, of data that has an end. */
static tarn_status count_updates(struct training *t, tarn_error *err)
{
    tarn_settings *const s = &t->state.settings;
    const double epochs = t->desc->epochs;
    const size_t batches = tn_task_batches(t->loader.task, TN_TRAINING, s->batch);
    const double updates = ceil(epochs * (double)batches / (double)s->accumulate);

    if (epochs == 0.0)
        return TARN_OK;
    if (batches == 0)
        return tn_fail(err, TARN_EINVAL,
                       "epochs: task '%s' generates endless data; give steps instead", s->task);
    if (!(epochs > 0.0 && updates <= TN_FIELD_MOST))
        return tn_fail(err, TARN_EINVAL, "epochs is %g; it must be more than 0", epochs);
    s->steps = (size_t)updates;
    return TARN_OK;
}

/* A run that is resumed elsewhere keeps the precision it began with: it is chosen here, before
 * anything is written. */
static void choose_precision(tarn_settings *settings, const tarn_config *config)
{
    const struct tn_body *const body =
        tn_table_find(&tn_bodies, NULL, config->body, NULL, NULL);
    const bool narrow = tn_matmul_prefers_bf16() && body && body->takes_bf16;

    if (strcmp(settings->precision, "auto") == 0)
        tarn_settings_set(settings, "precision", narrow ? "bf16" : "f32", NULL);
}

enum { USUAL_PARTS = 8 };

/* A run keeps the number it began with; so do its bits. One of several processes can be resumed
 * by up to 8 where the batch allows that. */
static void choose_micro_batches(tarn_settings *settings, const tarn_comm *comm)
{
    const size_t size = tn_comm_size(comm);
    size_t parts = 1;

    if (settings->micro_batches > 0)
        return;
    while (parts < size ||
           (size > 1 && parts < USUAL_PARTS && settings->batch % (2 * parts) == 0))
        parts *= 2;
    settings->micro_batches = parts;
}

/* Model, data and trainer, by every process for itself. */
static tarn_status open_here(struct training *t, const tarn_config *config, tarn_error *err)
{
    tarn_config filled = *config;
    tarn_status status;

    if ((status = tn_host_init(&t->host, &t->desc->host, err)) != TARN_OK ||
        (status = check(config, &t->state.settings, err)) != TARN_OK ||
        (status = open_loader(t, &filled, err)) != TARN_OK ||
        (status = count_updates(t, err)) != TARN_OK)
        return status;
    return open_trainer(t, &filled, err);
}

/* The checkpoint that process 0 has found; it may be that the others would find another. */
static tarn_status read_too(struct training *t, uint64_t updates, tarn_error *err)
{
    struct tn_safetensors file = {0};
    char path[TN_FOLDER_PATH];
    tarn_status status;

    tn_folder_checkpoint(path, t->desc->out, updates);
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    if ((status = read_checkpoint(t, &file, path, err)) == TARN_OK &&
        tarn_trainer_updates(t->trainer) != updates)
        status = tn_fail(err, TARN_EFORMAT, "%s: has another number of updates than its name",
                         tn_path_shown(path));
    tn_safetensors_free(&file);
    return status;
}

/* The run as process 0 has resumed it. */
static tarn_status resume_too(struct training *t, tarn_error *err)
{
    uint64_t updates = tarn_trainer_updates(t->trainer);
    tarn_status status;

    if (!t->desc->resume || is_alone(t))
        return TARN_OK;
    if ((status = tn_comm_broadcast(t->desc->comm, &updates, sizeof updates, err)) == TARN_OK &&
        !writes(t))
        status = read_too(t, updates, err);
    if ((status = tn_comm_agree(t->desc->comm, status, TN_LONG, err)) != TARN_OK)
        return status;
    return tn_peers_compare_resumed(t->desc->comm, t->model, err);
}

static tarn_status run(struct training *t, const tarn_config *config, tarn_error *err)
{
    const tarn_comm *const comm = t->desc->comm;
    tarn_status status = tn_comm_check(comm, err);

    if (status != TARN_OK)
        return status;
    choose_precision(&t->state.settings, config);
    choose_micro_batches(&t->state.settings, comm);
    if ((status = tn_comm_agree(comm, open_here(t, config, err), TN_LONG, err)) != TARN_OK ||
        (status = tn_peers_compare(comm, t->model, &t->loader, &t->state.settings, err)) !=
            TARN_OK ||
        (status = agree(t, writes(t) ? open_folder(t, err) : TARN_OK, err)) != TARN_OK ||
        (status = resume_too(t, err)) != TARN_OK)
        return status;
    start_planning(t);
    if ((status = agree(t, open_log(t, err), err)) != TARN_OK)
        return status;
    if (t->desc->events.started)
        t->desc->events.started(t->desc->events.context, &t->state.settings,
                                tarn_trainer_updates(t->trainer),
                                tarn_trainer_bytes(t->trainer));
    return loop(t, err);
}

tarn_status tarn_train(const tarn_config *config, const tarn_settings *settings,
                       const tarn_train_desc *desc, tarn_error *err)
{
    if (!config || !settings || !desc || !desc->out)
        return tn_fail(err, TARN_EINVAL, "config, settings, desc and its out must not be NULL");
    struct training t = {.state = {.settings = *settings}, .desc = desc, .lock = -1};

    t.log.file = -1;
    const tarn_status status = run(&t, config, err);

    tn_log_close(&t.log);
    tn_folder_unlock(t.lock);
    tarn_trainer_free(t.trainer);
    tarn_model_free(t.model);
    tn_loader_close(&t.loader);
    return status;
}

tarn_status tarn_train_settings(tarn_config *config, tarn_settings *settings,
                                const char *folder, tarn_error *err)
{
    struct tn_training state;

    if (!config || !settings || !folder)
        return tn_fail(err, TARN_EINVAL, "config, settings and folder must not be NULL");
    const tarn_status status = read_last(&state, config, folder, err);

    if (status == TARN_OK)
        *settings = state.settings;
    return status;
}
