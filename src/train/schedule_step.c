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
    .about = {"step", "a factor of the rate after some updates",
              (const tarn_option_info[]){
                  [AT] = {"at", "updates before", 0.0, 1e12, 3000.0, true, NULL},
                  [FACTOR] = {"factor", "of the rate, after", 1e-9, 1.0, 0.1, false, NULL},
                  {0},
              }},
    .rate = rate,
};
