/* SPDX-License-Identifier: MIT */
/* linear_cut.h - how linear attention cuts sequences into segments, by the sizes alone: never
 * by the number of threads, which keeps results equal to the last bit.
 *
 * Causal, segments are for the cache: backward passes over each of them twice. They are no
 * shorter than the sums that are kept for each, which then cost at most a float for each
 * position. Where heads are few, segments are for the threads, and their number is bounded. */
#ifndef TN_LINEAR_CUT_H
#define TN_LINEAR_CUT_H

#include "layer/linear_pass.h"

struct tn_linear_cut {
    size_t segments, q_each, k_each; /* whole tiles of positions, but for the last */
    bool shared;                     /* a segment is a task */
    size_t kept; /* sums of each head that forward leaves for backward: causal, what all
                    segments but the first start from; else the total; 0: backward sums again */
};

struct tn_linear_cut tn_linear_cut_of(const tarn_attention *plan);

struct tn_linear_span tn_linear_span_of(const tarn_attention *plan, struct tn_linear_cut cut,
                                        size_t segment);

#endif
