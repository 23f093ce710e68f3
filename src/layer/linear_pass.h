/* SPDX-License-Identifier: MIT */
/* linear_pass.h - the passes of linear attention over a group of heads. */
#ifndef TN_LINEAR_PASS_H
#define TN_LINEAR_PASS_H

#include "layer/linear_tile.h"

/* Positions of queries and of keys. */
struct tn_linear_span {
    size_t q_from, q_to, k_from, k_to;
};

void tn_linear_clear(const struct tn_linear_group *a);

/* Adds a span's keys to S and z; its keys to St; its queries to Rt, leaving the slopes of the
 * denominators. */
void tn_linear_sum(const struct tn_linear_group *a, struct tn_linear_span span);
void tn_linear_sum_keys(const struct tn_linear_group *a, struct tn_linear_span span);
void tn_linear_sum_queries(const struct tn_linear_group *a, struct tn_linear_span span);

/* (8)-(12). Causal, S and z advance with the positions. */
void tn_linear_forward(const struct tn_linear_group *a, struct tn_linear_span span);

/* (13). Causal, St advances. `summed`: tn_linear_sum_queries() was here before; if it was not
 * and the plan is not causal, Rt is summed on the way. */
void tn_linear_query_gradients(const struct tn_linear_group *a, struct tn_linear_span span,
                               bool summed);

/* (14), (15), after the slopes are there. Causal, Rt advances from the last position to the
 * first. */
void tn_linear_key_gradients(const struct tn_linear_group *a, struct tn_linear_span span);

/* Of one head: from the sum over each of n segments, whose states lie `stride` apart, to what
 * each starts from: causal, over the segments before it (Rt: behind it); otherwise over all. */
enum { TN_LINEAR_SEGMENTS = 32 }; /* at most */

void tn_linear_scan_forward(const tarn_attention *plan, const struct tn_linear_state *states,
                            size_t n, size_t stride);
void tn_linear_scan_backward(const tarn_attention *plan, const struct tn_linear_state *states,
                             size_t n, size_t stride);

#endif
