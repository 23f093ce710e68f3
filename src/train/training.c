/* SPDX-License-Identifier: MIT */
/* training.c - a run of training from its first update, or its last checkpoint, to its end. */
#include "train/training.h"

#include <math.h>

#include "train/peers.h"

/* ---- Processes ---------------------------------------------------------- */

static bool is_alone(const struct tn_training_run *t)
{
    return tn_comm_size(t->desc->comm) == 1;
}

static tarn_status check_pending(const struct tn_training_run *t, tarn_error *err)
{
    return t->pending == TARN_OK ? TARN_OK
                                 : tn_fail(err, t->pending, "%s", t->pending_err.text);
}

/* The process that writes the files may take longer than the others. */
tarn_status tn_training_agree(struct tn_training_run *t, tarn_status status, tarn_error *err)
{
    if (status == TARN_OK)
        status = check_pending(t, err);
    return tn_comm_agree(t->desc->comm, status, tn_training_writes(t) ? TN_SHORT : TN_LONG,
                         err);
}

/* The others learn of it with the next update, or when they agree next. */
static tarn_status postpone(struct tn_training_run *t, tarn_status status,
                            const tarn_error *failure, tarn_error *err)
{
    if (status == TARN_OK)
        return TARN_OK;
    if (is_alone(t))
        return tn_fail(err, status, "%s", failure->text);
    t->pending = status;
    t->pending_err = *failure;
    return TARN_OK;
}

/* ---- Validation --------------------------------------------------------- */

/* The best validation has the least of this. */
static double judged(const struct tn_training_run *t, const tarn_validation *now)
{
    return t->loader.task->row->metric.decides ? now->metric : now->loss;
}

/* The best value is remembered after its model was written. */
static tarn_status keep_best(struct tn_training_run *t, const tarn_validation *now,
                             tarn_error *err)
{
    const double value = judged(t, now);

    if (!isfinite(value) || (t->state.best_update > 0 && value >= t->state.best))
        return TARN_OK;
    const tarn_status status = tn_training_agree(
        t, tn_training_writes(t) ? tn_training_save_model(t, "best.safetensors", err) : TARN_OK,
        err);

    if (status == TARN_OK) {
        t->state.best = value;
        t->state.best_update = now->update;
    }
    return status;
}

/* A model that gives such a loss is not worth a checkpoint. */
static tarn_status check_finite(const struct tn_training_run *t, const tarn_validation *now,
                                tarn_error *err)
{
    if (isfinite(now->loss) || now->positions == 0.0 || t->state.settings.skip_nonfinite)
        return TARN_OK;
    return tn_fail(err, TARN_ENUMBER,
                   "validation after update %llu: the loss is not finite; try a lower learning "
                   "rate",
                   (unsigned long long)now->update);
}

/* It is due until all of it is done. Its line comes last: a line that cannot be written now is
 * before the next checkpoint. */
static tarn_status validate(struct tn_training_run *t, tarn_error *err)
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
    if (tn_training_writes(t))
        status = postpone(t, tn_log_validation(&t->log, &now, &failure), &failure, err);
    return status == TARN_OK ? check_finite(t, &now, err) : status;
}

/* ---- The loop ----------------------------------------------------------- */

static bool must_stop(const struct tn_training_run *t)
{
    const tarn_events *const events = &t->desc->events;

    return events->stop && events->stop(events->context);
}

/* Batches are numbered: the next ones follow from the number of updates. */
static tarn_status read_batches(const struct tn_training_run *t, tarn_error *err)
{
    const size_t count = t->state.settings.accumulate;
    const uint64_t first = tarn_trainer_updates(t->trainer) * count;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = tn_loader_fill(&t->loader, i, TN_TRAINING, first + i, err);
    return status;
}

static tarn_status update(struct tn_training_run *t, tarn_report *report, tarn_error *err)
{
    const double begin = tn_seconds();
    tarn_error failure;
    tarn_status status = check_pending(t, err);

    if (status == TARN_OK)
        status = read_batches(t, err);
    t->trainer->wants_stop = !is_alone(t) && must_stop(t);
    status = status == TARN_OK ? tarn_trainer_update(t->trainer, report, t->loader.views,
                                                     t->state.settings.accumulate, err)
                               : tn_trainer_fail(t->trainer, status, err);
    if (status != TARN_OK)
        return status;
    const double seconds = tn_seconds() - begin, tokens = (double)report->tokens;

    t->state.due = tn_training_validates(t, report->update) ? TN_DUE_REGULAR : TN_DUE_NONE;
    if (t->desc->events.update)
        t->desc->events.update(t->desc->events.context, report);
    return tn_training_writes(t)
               ? postpone(t, tn_log_update(&t->log, report, tokens / seconds, &failure),
                          &failure, err)
               : TARN_OK;
}

/* An update, and what is due after it. */
static tarn_status train_one(struct tn_training_run *t, bool *stop, tarn_error *err)
{
    const tarn_settings *const s = &t->state.settings;
    tarn_report report;
    bool planned = false;
    tarn_status status;

    if ((status = update(t, &report, err)) != TARN_OK ||
        (status = tn_training_plan(t, &planned, report.update, err)) != TARN_OK)
        return status;
    const bool last = report.update == s->steps;
    const bool saves = s->save_every > 0 && report.update % s->save_every == 0;

    if (last && (t->state.validations > 0 || s->eval_every > 0))
        t->state.due = tn_max(t->state.due, TN_DUE_LAST);
    if (t->state.due != TN_DUE_NONE && (status = validate(t, err)) != TARN_OK)
        return status;
    *stop = is_alone(t) ? must_stop(t) : t->trainer->stops;
    return *stop || last || planned || saves ? tn_training_save(t, err) : TARN_OK;
}

/* Where data or a validation fail, what was learnt since the last checkpoint is kept. Numbers
 * that ran away began to before they showed: the last checkpoint is the better place then. */
static tarn_status loop(struct tn_training_run *t, tarn_error *err)
{
    tarn_status status = TARN_OK;
    bool stop = false;

    if (t->state.due != TN_DUE_NONE && (status = validate(t, err)) == TARN_OK)
        status = tn_training_save(t, err);
    while (!stop && status == TARN_OK &&
           tarn_trainer_updates(t->trainer) < t->state.settings.steps)
        status = train_one(t, &stop, err);
    if (status != TARN_OK && status != TARN_ENUMBER &&
        tarn_trainer_updates(t->trainer) > t->saved)
        tn_training_save_rest(t, status);
    return status;
}

/* ---- A run -------------------------------------------------------------- */

static tarn_status run(struct tn_training_run *t, const tarn_config *config, tarn_error *err)
{
    const tarn_comm *const comm = t->desc->comm;
    tarn_status status = tn_comm_check(comm, err);

    if (status != TARN_OK)
        return status;
    if ((status = tn_comm_agree(comm, tn_training_open(t, config, err), TN_LONG, err)) !=
            TARN_OK ||
        (status = tn_peers_compare(comm, &t->host, t->model, &t->loader, &t->state.settings,
                                   err)) != TARN_OK ||
        (status = tn_training_open_folder(t, err)) != TARN_OK)
        return status;
    t->trainer->compared = true;
    tn_training_start_plan(t);
    if ((status = tn_training_open_log(t, err)) != TARN_OK)
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
    struct tn_training_run t = {.state = {.settings = *settings}, .desc = desc, .lock = -1};

    t.log.file = -1;
    const tarn_status status = run(&t, config, err);

    tn_log_close(&t.log);
    tn_folder_unlock(t.lock);
    tarn_trainer_free(t.trainer);
    tarn_model_free(t.model);
    tn_loader_close(&t.loader);
    return status;
}
