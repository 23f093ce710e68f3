/* SPDX-License-Identifier: MIT */
/* schedule_step.c - the rate for the first `at` updates, `factor` of it from then on. The copy
 * task of the paper: 1e-3, and 1e-4 after 3000 updates. */
#include "train/schedule.h"

enum { AT, FACTOR };

static double rate(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t)
{
    const double *const option = schedule->options.value;

    (void)state;
    return t > option[AT] ? option[FACTOR] * schedule->rate : schedule->rate;
}

extern const struct tn_schedule_row tn_sched_step;
const struct tn_schedule_row tn_sched_step = {
    .about = {"step", "reduce the rate once, after a number of updates",
              (const tarn_option_info[]){
                  [AT] = {"at", "number of updates before the reduction", 0.0, 1e12, 3000.0,
                          true, NULL},
                  [FACTOR] = {"factor", "factor by which the rate is reduced", 1e-9, 1.0, 0.1,
                              false, NULL},
                  {0},
              }},
    .rate = rate,
};
