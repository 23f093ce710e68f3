/* SPDX-License-Identifier: MIT */
/* schedule_plateau.c - the rate is cut when the validation gets no better. The speech task of
 * the paper: halved.
 *
 *   rate = max(rate factor^cuts, minimum)
 *
 * A metric is better if it is below best - threshold |best|, and finite. After `patience`
 * metrics in a row that are not, there is a cut and the count starts anew. */
#include <math.h>

#include "train/schedule.h"

enum { FACTOR, PATIENCE, THRESHOLD, MINIMUM };

static double rate(const struct tn_schedule *schedule, const struct tn_schedule_state *state,
                   double t)
{
    const double *const option = schedule->options.value;
    const double cut = schedule->rate * pow(option[FACTOR], (double)state->cuts);

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

const struct tn_schedule_row tn_schedule_plateau = {
    .about = {"plateau", "reduce the rate when validation stops improving",
              (const tarn_option_info[]){
                  [FACTOR] = {"factor", "factor by which the rate is reduced", 0.01, 0.999, 0.5,
                              false, NULL},
                  [PATIENCE] = {"patience",
                                "validations without progress before the rate is reduced", 1.0,
                                1e6, 5.0, true, NULL},
                  [THRESHOLD] = {"threshold", "relative improvement that counts as progress",
                                 0.0, 0.5, 1e-4, false, NULL},
                  [MINIMUM] = {"minimum", "lowest learning rate", 0.0, 10.0, 1e-6, false, NULL},
                  {0},
              }},
    .rate = rate,
    .observe = observe,
};
