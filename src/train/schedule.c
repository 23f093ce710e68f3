/* SPDX-License-Identifier: MIT */
#include "train/schedule.h"
#include "tarn/train.h"

#include <assert.h>
#include <math.h>

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

/* ---- plateau ------------------------------------------------------------ */

/* The rate is cut when the validation gets no better. The speech task of
 * the paper: halved.
 *
 *   rate = max(rate factor^cuts, minimum)
 *
 * A metric is better if it is below best - threshold |best|, and finite. After `patience`
 * metrics in a row that are not, there is a cut and the count starts anew. */
enum { CUT, PATIENCE, THRESHOLD, MINIMUM };

static double plateau_rate(const struct tn_schedule *schedule,
                           const struct tn_schedule_state *state, double t)
{
    const double *const option = schedule->options.value;
    const double cut = schedule->rate * pow(option[CUT], (double)state->cuts);

    (void)t;
    return fmax(cut, fmin(option[MINIMUM], schedule->rate));
}

static bool better(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double metric)
{
    const double margin = schedule->options.value[THRESHOLD] * fabs(state->best);

    return isfinite(metric) && (state->improved == 0 || metric < state->best - margin);
}

static void observe(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                    double metric)
{
    if (better(schedule, state, metric)) {
        state->best = metric;
        state->improved++;
        state->stale = 0;
    } else if ((double)++state->stale >= schedule->options.value[PATIENCE]) {
        state->cuts++;
        state->stale = 0;
    }
}

static const struct tn_schedule_row plateau = {
    .about = {"plateau", "reduce the rate when validation stops improving",
              (const tarn_option_info[]){
                  [CUT] = {"factor", "factor by which the rate is reduced", 0.01, 0.999, 0.5,
                           false, NULL},
                  [PATIENCE] = {"patience",
                                "validations without progress before the rate is reduced", 1.0,
                                1e6, 5.0, true, NULL},
                  [THRESHOLD] = {"threshold", "relative improvement that counts as progress",
                                 0.0, 0.5, 1e-4, false, NULL},
                  [MINIMUM] = {"minimum", "lowest learning rate", 0.0, 10.0, 1e-6, false, NULL},
                  {0},
              }},
    .rate = plateau_rate,
    .observe = observe,
};

/* ---- cosine ------------------------------------------------------------- */

/* Linear warm-up, then cosine decay (Loshchilov and Hutter 2017).
 *
 *   rate_t = rate t / warmup                                          t <= warmup
 *   rate_t = rate (final + (1 - final) (1 + cos(pi p)) / 2)           t > warmup
 *   p      = (t - warmup) / (total - warmup), not above 1
 *
 * Without a total of its own the decay ends with the run. */
enum { WARMUP, TOTAL, FINAL };

static const double pi = 3.14159265358979323846;

/* In updates. */
static double total(const struct tn_schedule *schedule)
{
    const double given = schedule->options.value[TOTAL];

    return given > 0.0 ? given : (double)schedule->steps;
}

static double warmup(const struct tn_schedule *schedule)
{
    const double given = schedule->options.value[WARMUP];

    return given < 1.0 ? given * total(schedule) : given;
}

static tarn_status cosine_check(const struct tn_schedule *schedule, tarn_error *err)
{
    if (total(schedule) == 0.0)
        return tn_fail(err, TARN_EINVAL,
                       "schedule: total is 0, which stands for steps, and steps is 0; give one "
                       "of them");
    if (warmup(schedule) < total(schedule))
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "schedule: warmup is %.0f; it must be less than total, %.0f",
                   warmup(schedule), total(schedule));
}

static double cosine_rate(const struct tn_schedule *schedule,
                          const struct tn_schedule_state *state, double t)
{
    const double final = schedule->options.value[FINAL], rise = warmup(schedule);

    (void)state;
    if (t <= rise)
        return schedule->rate * t / rise;
    const double p = fmin(1.0, (t - rise) / (total(schedule) - rise));

    return schedule->rate * (final + (1.0 - final) * 0.5 * (1.0 + cos(pi * p)));
}

static const struct tn_schedule_row cosine = {
    .about = {"cosine", "linear warm-up, then cosine decay",
              (const tarn_option_info[]){
                  [WARMUP] = {"warmup",
                              "updates of linear warm-up; below 1: a fraction of the total",
                              0.0, 1e12, 0.0, false, NULL},
                  [TOTAL] = {"total",
                             "updates until the final rate is reached; 0: the steps "
                             "of the run",
                             0.0, 1e12, 0.0, true, NULL},
                  [FINAL] = {"final", "final rate, as a fraction of the rate", 0.0, 1.0, 0.0,
                             false, NULL},
                  {0},
              }},
    .check = cosine_check,
    .rate = cosine_rate,
    .end = total,
};

/* ---- the table ---------------------------------------------------------- */

static const struct tn_schedule_row *const rows[] = {
    &constant,
    &step,
    &plateau,
    &cosine,
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
