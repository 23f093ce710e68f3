/* SPDX-License-Identifier: MIT */
/* pace.h - how many updates fit into a given time.
 *
 * Arithmetic only: the caller reads the clock. All times are seconds since the run, or the part
 * of it since it was resumed, began.
 *
 * The speed is that of the updates since the last plan, so that a machine which gets busy, or
 * free, changes the next plan. Plans are close together at the beginning, when little is known,
 * and at the end, when a late change could not be made up for. One is made at once when updates
 * are twice as fast as planned: a moment that was slow, as when code is compiled for a new
 * size, would otherwise end a run long before its time. */
#ifndef TN_PACE_H
#define TN_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_pace {
    double total;                  /* seconds to train; 0: no limit, nothing is planned */
    double next;                   /* not before that is planned again */
    double since;                  /* the last plan, or the end of the first update */
    uint64_t updates;              /* done by then */
    double elsewhere;              /* seconds since then in validations and checkpoints */
    double validation, checkpoint; /* seconds that the last one took; 0: none so far */
    uint64_t planned;              /* updates in all, by the last plan; 0: there is none */
};

/* The first update of a run is slower than the others: the speed is measured from its end. */
void tn_pace_begin(struct tn_pace *pace, double now, uint64_t updates);

void tn_pace_validated(struct tn_pace *pace, double seconds);
void tn_pace_saved(struct tn_pace *pace, double seconds);

/* Whether it is time for a plan, after `updates`; and whether no time is left for another
 * update, as a validation follows the last. */
bool tn_pace_is_due(const struct tn_pace *pace, double now, uint64_t updates);
bool tn_pace_is_over(const struct tn_pace *pace, double now);

/* The number of updates, those done included, that end with the time if `validations` are still
 * to come: at least one more. */
uint64_t tn_pace_plan(struct tn_pace *pace, double now, uint64_t updates, size_t validations);

#endif
