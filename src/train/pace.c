/* SPDX-License-Identifier: MIT */
#include "train/pace.h"

#include <math.h>

static const double usual_fraction = 0.05;  /* of the time, between two plans at most */
static const double last_fraction = 0.01;   /* and at least, towards the end */
static const double checkpoint_most = 0.04; /* fraction of the time that checkpoints may take */
static const double ahead_least =
    0.02; /* fraction of the updates planned, before that counts */
static const uint64_t updates_least = 3; /* that a speed is measured over */

void tn_pace_begin(struct tn_pace *pace, double now, uint64_t updates)
{
    pace->since = now;
    pace->updates = updates;
    pace->elsewhere = 0.0;
}

void tn_pace_validated(struct tn_pace *pace, double seconds)
{
    pace->validation = seconds;
    pace->elsewhere += seconds;
}

void tn_pace_saved(struct tn_pace *pace, double seconds)
{
    pace->checkpoint = seconds;
    pace->elsewhere += seconds;
}

/* Whether the updates since the last plan took less than half of what it gave them. */
static bool is_ahead(const struct tn_pace *pace, double now, uint64_t updates)
{
    if (pace->planned <= pace->updates)
        return false;
    const double made =
        (double)(updates - pace->updates) / (double)(pace->planned - pace->updates);
    const double taken = (now - pace->since) / (pace->total - pace->since);

    return made > ahead_least && made > 2.0 * taken;
}

bool tn_pace_is_due(const struct tn_pace *pace, double now, uint64_t updates)
{
    return pace->total > 0.0 && updates >= pace->updates + updates_least &&
           (now >= pace->next || is_ahead(pace, now, updates));
}

bool tn_pace_is_over(const struct tn_pace *pace, double now)
{
    return pace->total > 0.0 && now + pace->validation + pace->checkpoint >= pace->total;
}

/* Seconds to the next plan. */
static double interval(const struct tn_pace *pace, double now)
{
    const double early = 2.0 * now, usual = usual_fraction * pace->total;
    const double late = fmax(0.5 * (pace->total - now), last_fraction * pace->total);

    return fmax(fmin(fmin(early, usual), late), pace->checkpoint / checkpoint_most);
}

uint64_t tn_pace_plan(struct tn_pace *pace, double now, uint64_t updates, size_t validations)
{
    const double done = (double)(updates - pace->updates);
    const double each = (now - pace->since - pace->elsewhere) / done;
    const double wait = interval(pace, now);
    const double checkpoints = ceil(fmax(0.0, pace->total - now) / wait);
    const double left = pace->total - now - (double)validations * pace->validation -
                        checkpoints * pace->checkpoint;
    const double more = each > 0.0 ? fmax(1.0, floor(left / each + 0.5)) : 1.0;

    tn_pace_begin(pace, now, updates);
    pace->next = now + wait;
    pace->planned = updates + (uint64_t)fmin(more, 1e15);
    return pace->planned;
}
