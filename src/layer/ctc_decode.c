/* SPDX-License-Identifier: MIT */
/* ctc_decode.c - the best path, and the choice between it and a beam. */
#include "layer/ctc_decode.h"

#include <math.h>

/* ---- Greedy ------------------------------------------------------------- */

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

/* A symbol ends with the first frame that has another one, so that it is reported one frame
 * late: only then is its confidence known. */
static size_t next_symbol(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *ended,
                          int32_t symbol, double confidence)
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
        count += next_symbol(greedy, symbols + count, symbol, exp(log_probability));
    }
    return count;
}

size_t tn_ctc_greedy_end(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *symbols)
{
    return next_symbol(greedy, symbols, 0, 0.0);
}

/* ---- Either ------------------------------------------------------------- */

size_t tn_ctc_decode_scratch(const struct tn_ctc_frames *frames, size_t beam)
{
    return beam > 0 ? tn_ctc_beam_scratch(frames, beam) : 0;
}

double tn_ctc_decode(const struct tn_ctc_frames *frames, size_t beam,
                     struct tn_ctc_symbol *symbols, size_t *count, const float *x, size_t T,
                     void *scratch)
{
    struct tn_ctc_greedy greedy = {0};

    if (beam > 0)
        return tn_ctc_beam(frames, beam, symbols, count, x, T, scratch);
    *count = tn_ctc_greedy_push(&greedy, symbols, x, T, frames->S);
    *count += tn_ctc_greedy_end(&greedy, symbols + *count);
    return greedy.log_probability;
}
