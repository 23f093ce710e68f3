/* SPDX-License-Identifier: MIT */
/* schedule.h - the learning rate of each update.
 *
 * A rate is a function of the update's number and, for schedules that watch the validation, of
 * a small state. A schedule is one row of the table in schedule.c. */
#ifndef TN_SCHEDULE_H
#define TN_SCHEDULE_H

#include "base/option.h"

struct tn_schedule_row;

struct tn_schedule {
    const struct tn_schedule_row *row;
    struct tn_options options;
    double rate;  /* what a constant schedule gives */
    size_t steps; /* of the run; 0: not known */
};

/* Zeros are the start. No pointers: a checkpoint keeps the numbers. */
struct tn_schedule_state {
    double best;       /* lowest metric so far, if `improved` */
    uint64_t improved; /* observations that were better than all before them */
    uint64_t stale;    /* observations since the last such, or since the last cut */
    uint64_t cuts;     /* times that the rate was cut */

    /* A schedule that is stretched to another number of updates: after update `since` it was at
     * `point`, and every update from there on counts as `stretch` of its own. Zeros: it is
     * not. */
    uint64_t since;
    double point, stretch;
};

struct tn_schedule_row {
    tarn_table_row about;

    /* Refuses options that are in range and do not fit each other. NULL: all fit. */
    tarn_status (*check)(const struct tn_schedule *schedule, tarn_error *err);

    /* The rate of update t, counted from 1; not a whole number where it is stretched. */
    double (*rate)(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t);

    /* The update from which on the rate stays the same. NULL: the schedule does not say. */
    double (*end)(const struct tn_schedule *schedule);

    /* A metric of the validation, of which less is better. NULL: not looked at. */
    void (*observe)(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                    double metric);
};

extern const struct tn_table tn_schedules;

/* Reads a spec such as "step:at=3000,factor=0.1" for a rate from above 0 to 10. */
tarn_status tn_schedule_init(struct tn_schedule *schedule, const char *spec, double rate,
                             size_t steps, tarn_error *err);

double tn_schedule_rate(const struct tn_schedule *schedule,
                        const struct tn_schedule_state *state, uint64_t t);

/* Where update t is on the schedule: t itself, unless it is stretched. */
double tn_schedule_point(const struct tn_schedule_state *state, uint64_t t);

/* After update t: the next ones lead to the point `end` with update `last`. */
void tn_schedule_stretch(struct tn_schedule_state *state, uint64_t t, double end,
                         uint64_t last);

/* 0: the schedule has no end. */
double tn_schedule_end(const struct tn_schedule *schedule);

/* After each validation, whatever the schedule. A metric that is not finite is not better. */
void tn_schedule_observe(const struct tn_schedule *schedule, struct tn_schedule_state *state,
                         double metric);

#endif
