/* SPDX-License-Identifier: MIT */
#include "train/schedule.h"
#include "tarn/train.h"

#include <assert.h>

/* ---- constant ----------------------------------------------------------- */

static double constant_rate(const struct tn_schedule *schedule,
                            const struct tn_schedule_state *state, double t)
{
    (void)state;
    (void)t;
    return schedule->rate;
}

static const struct tn_schedule_row constant = {
    .about = {"constant", "constant learning rate", tn_no_options},
    .rate = constant_rate,
};

/* ---- step --------------------------------------------------------------- */

/* The copy task of the paper: 1e-3, and 1e-4 after 3000 updates. */
enum { AT, FACTOR };

static double step_rate(const struct tn_schedule *schedule,
                        const struct tn_schedule_state *state, double t)
{
    const double *const option = schedule->options.value;

    (void)state;
    return t > option[AT] ? option[FACTOR] * schedule->rate : schedule->rate;
}

static const struct tn_schedule_row step = {
    .about = {"step", "reduce the rate once, after a number of updates",
              (const tarn_option_info[]){
                  [AT] = {"at", "number of updates before the reduction", 0.0, 1e12, 3000.0,
                          true, NULL},
                  [FACTOR] = {"factor", "factor by which the rate is reduced", 1e-9, 1.0, 0.1,
                              false, NULL},
                  {0},
              }},
    .rate = step_rate,
};

/* ---- the table ---------------------------------------------------------- */

static const struct tn_schedule_row *const rows[] = {
    &constant,
    &step,
    &tn_schedule_plateau,
    &tn_schedule_cosine,
};

const struct tn_table tn_schedules = {"schedule", tarn_schedule};

const tarn_table_row *tarn_schedule(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

static const double rate_most = 10.0;

tarn_status tn_schedule_init(struct tn_schedule *schedule, const char *spec, double rate,
                             size_t steps, tarn_error *err)
{
    tarn_status status;

    *schedule = (struct tn_schedule){.rate = rate, .steps = steps};
    schedule->row = tn_table_find(&tn_schedules, &schedule->options, spec, &status, err);
    if (!schedule->row)
        return status;
    if (!(rate > 0.0 && rate <= rate_most)) /* NaN too */
        return tn_fail(err, TARN_EINVAL, "lr is %g; it must be above 0 and at most %g", rate,
                       rate_most);
    return schedule->row->check ? schedule->row->check(schedule, err) : TARN_OK;
}

double tn_schedule_rate(const struct tn_schedule *schedule,
                        const struct tn_schedule_state *state, uint64_t t)
{
    assert(t > 0);
    return schedule->row->rate(schedule, state, tn_schedule_point(state, t));
}

double tn_schedule_point(const struct tn_schedule_state *state, uint64_t t)
{
    if (state->stretch == 0.0)
        return (double)t;
    return state->point + state->stretch * ((double)t - (double)state->since);
}

void tn_schedule_stretch(struct tn_schedule_state *state, uint64_t t, double end, uint64_t last)
{
    const double point = tn_schedule_point(state, t);

    assert(last > t && end > point);
    state->since = t;
    state->point = point;
    state->stretch = (end - point) / (double)(last - t);
}

double tn_schedule_end(const struct tn_schedule *schedule)
{
    return schedule->row->end ? schedule->row->end(schedule) : 0.0;
}

void tn_schedule_observe(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                         double metric)
{
    if (schedule->row->observe)
        schedule->row->observe(schedule, state, metric);
}
