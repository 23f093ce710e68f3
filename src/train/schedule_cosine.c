/* SPDX-License-Identifier: MIT */
/* schedule_cosine.c - linear warm-up, then cosine decay (Loshchilov and Hutter 2017).
 *
 *   rate_t = rate t / warmup                                          t <= warmup
 *   rate_t = rate (final + (1 - final) (1 + cos(pi p)) / 2)           t > warmup
 *   p      = (t - warmup) / (total - warmup), not above 1
 *
 * Without a total of its own the decay ends with the run. */
#include <math.h>

#include "train/schedule.h"

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

static tarn_status check(const struct tn_schedule *schedule, tarn_error *err)
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

static double rate(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t)
{
    const double final = schedule->options.value[FINAL], rise = warmup(schedule);

    (void)state;
    if (t <= rise)
        return schedule->rate * t / rise;
    const double p = fmin(1.0, (t - rise) / (total(schedule) - rise));

    return schedule->rate * (final + (1.0 - final) * 0.5 * (1.0 + cos(pi * p)));
}

const struct tn_schedule_row tn_schedule_cosine = {
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
    .check = check,
    .rate = rate,
    .end = total,
};
