/* SPDX-License-Identifier: MIT */
/* sampling.h - one of n symbols, drawn by their logits: log-probabilities less any constant. */
#ifndef TN_SAMPLING_H
#define TN_SAMPLING_H

#include "base/base.h"

struct tn_sampling {
    double temperature; /* logits are divided by it; 0: greedy */
    size_t top_k;       /* only the k most likely; 0: all */
    double top_p;       /* only the fewest most likely whose probabilities reach p; 1: all */
    bool greedy;        /* the most likely, whatever the rest says */
};

/* A temperature that is finite and not negative, a top_p above 0 and up to 1. */
tarn_status tn_sampling_check(const struct tn_sampling *sampling, tarn_error *err);

/* A symbol in 0 .. n-1, n from 1 to 2^31 - 1. `scratch` is n words. Takes one number from
 * `random`. If greedy, neither is used, and both may be NULL.
 *
 * Of equal logits the symbol that comes first counts as the more likely one. A logit that is no
 * number counts as -inf, which is never chosen, unless nothing else is there: then it is symbol
 * 0. If some logits are +inf, the choice is among them. */
int32_t tn_sample(const struct tn_sampling *sampling, const float *logits, size_t n,
                  uint64_t *scratch, struct tn_random *random);

#endif
