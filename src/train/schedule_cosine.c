/* SPDX-License-Identifier: MIT */
/* schedule_cosine.c - up in a line, down in half a wave (Loshchilov and Hutter 2017).
 *
 *   rate_t = rate t / warmup                                          t <= warmup
 *   rate_t = rate (final + (1 - final) (1 + cos(pi p)) / 2)           t > warmup
 *   p      = (t - warmup) / (total - warmup), not above 1 */
#include <math.h>

#include "train/schedule.h"

enum { WARMUP, TOTAL, FINAL };

static const double pi = 3.14159265358979323846;

static tarn_status check(const struct tn_schedule *schedule, tarn_error *err)
{
    const double *const option = schedule->options.value;

    if (option[WARMUP] < option[TOTAL])
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "schedule: warmup is %.0f; it must be less than total, %.0f", option[WARMUP],
                   option[TOTAL]);
}

static double rate(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t)
{
    const double *const option = schedule->options.value;

    (void)state;
    if (t <= option[WARMUP])
        return schedule->rate * t / option[WARMUP];
    const double p = fmin(1.0, (t - option[WARMUP]) / (option[TOTAL] - option[WARMUP]));

    return schedule->rate * (option[FINAL] + (1.0 - option[FINAL]) * 0.5 * (1.0 + cos(pi * p)));
}

static double end(const struct tn_schedule *schedule)
{
    return schedule->options.value[TOTAL];
}

extern const struct tn_schedule_row tn_sched_cosine;
const struct tn_schedule_row tn_sched_cosine = {
    .about = {"cosine", "linear warm-up, then cosine decay",
              (const tarn_option_info[]){
                  [WARMUP] = {"warmup", "updates of linear warm-up", 0.0, 1e12, 0.0, true,
                              NULL},
                  [TOTAL] = {"total", "updates until the final rate is reached", 1.0, 1e12,
                             100000.0, true, NULL},
                  [FINAL] = {"final", "final rate, as a fraction of the rate", 0.0, 1.0, 0.0,
                             false, NULL},
                  {0},
              }},
    .check = check,
    .rate = rate,
    .end = end,
};
