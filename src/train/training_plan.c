/* SPDX-License-Identifier: MIT */
/* training_plan.c - how many updates a run has that is fitted to a time. */
#include <math.h>

#include "train/training.h"

enum { MEASURED = 4 }; /* updates before the first plan */

/* Validations that belong to the part of the run that is done after an update. */
static double validations_by(const struct tn_training_run *t, uint64_t update)
{
    const double point = tn_schedule_point(&t->trainer->progress.schedule, update);

    return floor((double)t->state.validations * point / t->state.schedule_end);
}

bool tn_training_validates(const struct tn_training_run *t, uint64_t update)
{
    const size_t every = t->state.settings.eval_every;

    if (t->state.validations > 0)
        return validations_by(t, update) > validations_by(t, update - 1);
    return every > 0 && update % every == 0;
}

static size_t validations_left(const struct tn_training_run *t, uint64_t update)
{
    const tarn_settings *const s = &t->state.settings;

    if (t->state.validations > 0)
        return t->state.validations - (size_t)validations_by(t, update);
    return s->eval_every > 0 ? (s->steps - update) / s->eval_every + 1 : 0;
}

static void report(const struct tn_training_run *t)
{
    if (t->desc->events.planned)
        t->desc->events.planned(t->desc->events.context, &t->state.settings);
}

/* The clock decides how many updates there are, that of one process for all. Whatever it
 * decides is in a checkpoint before the next update, so that what was done since the last
 * checkpoint is done again, bit for bit, by a run that is resumed. */
static bool plan_here(struct tn_training_run *t, uint64_t update)
{
    tarn_settings *const s = &t->state.settings;
    struct tn_schedule_state *const watched = &t->trainer->progress.schedule;
    const double now = tn_seconds() - t->begin, end = t->state.schedule_end;

    if (update >= s->steps)
        return false;
    if (tn_pace_is_over(&t->pace, now)) {
        s->steps = update;
        report(t);
        return true;
    }
    if (t->pace.updates == 0)
        tn_pace_begin(&t->pace, now, update);
    if (!tn_pace_is_due(&t->pace, now, update) || tn_schedule_point(watched, update) >= end)
        return false;
    s->steps = tn_pace_plan(&t->pace, now, update, validations_left(t, update));
    tn_schedule_stretch(watched, update, end, s->steps);
    report(t);
    return true;
}

tarn_status tn_training_plan(struct tn_training_run *t, bool *planned, uint64_t update,
                             tarn_error *err)
{
    struct {
        bool planned;
        size_t steps;
        struct tn_schedule_state schedule;
    } now = {.planned = false};

    if (t->state.schedule_end == 0.0)
        return TARN_OK;
    if (tn_training_writes(t))
        now.planned = plan_here(t, update);
    now.steps = t->state.settings.steps;
    now.schedule = t->trainer->progress.schedule;
    const tarn_status status = tn_comm_broadcast(t->desc->comm, &now, sizeof now, err);

    *planned = now.planned;
    t->state.settings.steps = now.steps;
    t->trainer->progress.schedule = now.schedule;
    return status;
}

/* What the schedule and the validations of a run that begins are made for. */
void tn_training_start_plan(struct tn_training_run *t)
{
    tarn_settings *const s = &t->state.settings;
    const double end = tn_schedule_end(&t->trainer->schedule);

    t->pace = (struct tn_pace){.total = 60.0 * t->desc->minutes};
    t->begin = tn_seconds();
    if (t->desc->resume && t->state.schedule_end > 0.0)
        report(t);
    if (t->desc->resume || t->desc->minutes == 0.0)
        return;
    t->state.schedule_end = end > 0.0 ? end : (double)s->steps;
    t->state.validations = t->desc->validations;
    s->steps = tn_max(s->steps, MEASURED);
}
