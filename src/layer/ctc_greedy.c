/* SPDX-License-Identifier: MIT */
/* ctc_greedy.c - the best path. A symbol ends with the first frame that has another one, so
 * that it is told one frame late: only then is its confidence known. */
#include <math.h>

#include "layer/ctc_decode.h"

/* The first of the greatest, and log of its probability. */
static int32_t best_symbol(double *log_probability, const float *x, size_t S)
{
    size_t best = 0;
    double sum = 0.0;

    for (size_t k = 1; k < S; k++)
        best = x[k] > x[best] || isnan(x[best]) ? k : best;
    for (size_t k = 0; k < S; k++)
        sum += x[k] == x[best] ? 1.0 : exp((double)x[k] - (double)x[best]);
    *log_probability = -log(sum);
    return isnan(x[best]) ? 0 : (int32_t)best;
}

static size_t turn_to(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *ended, int32_t symbol,
                      double confidence)
{
    const struct tn_ctc_symbol was = greedy->open;

    if (symbol == was.symbol) {
        greedy->open.confidence = fmax(was.confidence, confidence);
        return 0;
    }
    greedy->open = (struct tn_ctc_symbol){symbol, greedy->frame, confidence};
    if (was.symbol == 0)
        return 0;
    *ended = was;
    return 1;
}

size_t tn_ctc_greedy_push(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *symbols,
                          const float *x, size_t n, size_t S)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++, greedy->frame++) {
        double log_probability;
        const int32_t symbol = best_symbol(&log_probability, x + i * S, S);

        greedy->log_probability += log_probability;
        count += turn_to(greedy, symbols + count, symbol, exp(log_probability));
    }
    return count;
}

size_t tn_ctc_greedy_end(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *symbols)
{
    return turn_to(greedy, symbols, 0, 0.0);
}
