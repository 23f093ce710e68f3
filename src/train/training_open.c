/* SPDX-License-Identifier: MIT */
/* training_open.c - what a run of training begins with: data, model and trainer. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file/fields_json.h"
#include "kernel/matmul.h"
#include "model/body.h"
#include "train/training.h"

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

static tarn_status open_model(struct tn_training_run *t, const tarn_config *config,
                              tarn_error *err)
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

/* What the schedule is made for: of a run that was fitted to a time, the steps it began with.
 */
static tarn_status schedule_steps(size_t *steps, const struct tn_training_run *t,
                                  tarn_error *err)
{
    struct tn_training before = {0};
    const tarn_status status =
        t->desc->resume ? tn_training_read_last(&before, NULL, t->desc->out, err) : TARN_OK;

    *steps = before.schedule_end > 0.0 ? (size_t)before.schedule_end : t->state.settings.steps;
    return status;
}

static tarn_status open_trainer(struct tn_training_run *t, const tarn_config *config,
                                tarn_error *err)
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
        .sequence_chunks = s->sequence_chunks,
        .sequence_parallel = s->sequence_parallel,
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

static tarn_status check_schedule(const struct tn_training_run *t, tarn_error *err)
{
    const bool timed = t->desc->minutes != 0.0 && t->desc->validations > 0;

    if (!t->trainer->schedule.row->observe || t->desc->resume || timed ||
        t->state.settings.eval_every > 0)
        return TARN_OK;
    return tn_fail(
        err, TARN_EINVAL,
        "eval_every is 0; it must be at least 1 with schedule '%s', which reduces the "
        "rate after validations",
        t->state.settings.schedule);
}

/* What the data said becomes part of a model that is of the same task. */
static void adopt_task(tarn_config *config, const char *task_before, size_t symbols_before,
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

static tarn_status open_loader(struct tn_training_run *t, tarn_config *config, tarn_error *err)
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
    adopt_task(config, before.task, symbols, t->loader.task);
    return tn_task_fits(t->loader.task, config, err);
}

/* By desc->epochs, of data that has an end. */
static tarn_status count_updates(struct tn_training_run *t, tarn_error *err)
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
static void choose_precision(tarn_settings *settings, const struct tn_body *body,
                             const struct tn_host *host)
{
    const bool narrow = tn_host_has_bf16(host) && body && body->takes_bf16;

    if (strcmp(settings->precision, "auto") == 0)
        tarn_settings_set(settings, "precision", narrow ? "bf16" : "f32", NULL);
}

enum { USUAL_PARTS = 8, LEAST_POSITIONS = 1024 };

/* A part of so many positions takes the time of its share of the batch; a smaller one takes
 * longer. */
static bool can_halve(const tarn_settings *settings, size_t parts)
{
    const size_t sequences = settings->batch / parts;

    return parts < USUAL_PARTS && sequences % 2 == 0 &&
           sequences / 2 * settings->length >= LEAST_POSITIONS;
}

/* The same for any number of ranks, as far as the batch goes: so are the bits. Bodies with a
 * product per sequence, the LSTM, are slower with every cut. A run keeps its number. */
static void choose_micro_batches(tarn_settings *settings, const struct tn_body *body,
                                 const tarn_comm *comm)
{
    const size_t ranks = tn_comm_size(comm) / tn_max(settings->sequence_parallel, 1);
    const bool divisible = body && body->row_per_position;
    size_t parts = 1;

    if (settings->micro_batches > 0)
        return;
    while (parts < ranks || (divisible && can_halve(settings, parts)))
        parts *= 2;
    settings->micro_batches = parts;
}

/* Likewise. */
static void choose_sequence_chunks(tarn_settings *settings)
{
    size_t parts = settings->sequence_parallel;

    if (settings->sequence_chunks > 0 || parts <= 1)
        return;
    while (parts < USUAL_PARTS && settings->length % (2 * parts) == 0)
        parts *= 2;
    settings->sequence_chunks = parts;
}

tarn_status tn_training_open(struct tn_training_run *t, const tarn_config *config,
                             tarn_error *err)
{
    const struct tn_body *const body = /* NULL: refused when the model is made */
        tn_table_find(&tn_bodies, NULL, config->body, NULL, NULL);
    tarn_config filled = *config;
    tarn_status status;

    if ((status = tn_host_init(&t->host, &t->desc->host, err)) != TARN_OK)
        return status;
    choose_precision(&t->state.settings, body, &t->host);
    if ((status = check(config, &t->state.settings, err)) != TARN_OK ||
        (status = open_loader(t, &filled, err)) != TARN_OK ||
        (status = count_updates(t, err)) != TARN_OK)
        return status;
    choose_micro_batches(&t->state.settings, body, t->desc->comm);
    choose_sequence_chunks(&t->state.settings);
    if ((status = open_trainer(t, &filled, err)) != TARN_OK)
        return status;
    return check_schedule(t, err);
}
