/* SPDX-License-Identifier: MIT */
/* schedule_constant.c - the same rate always. */
#include "train/schedule.h"

static double rate(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t)
{
    (void)state;
    (void)t;
    return schedule->rate;
}

extern const struct tn_schedule_row tn_sched_constant;
const struct tn_schedule_row tn_sched_constant = {
    .about = {"constant", "constant learning rate", (const tarn_option_info[]){{0}}},
    .rate = rate,
};
