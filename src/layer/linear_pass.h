/* SPDX-License-Identifier: MIT */
/* linear_pass.h - the passes of linear attention over a group of heads. */
#ifndef TN_LINEAR_PASS_H
#define TN_LINEAR_PASS_H

#include "layer/linear_tile.h"

/* Positions of queries and of keys. */
struct tn_linear_span {
    size_t q_from, q_to, k_from, k_to;
};

/* Adds a span's keys to St. */
void tn_linear_sum_keys(const struct tn_linear_group *a, struct tn_linear_span span);

/* (8)-(12). Causal, S and z advance with the positions. */
void tn_linear_forward(const struct tn_linear_group *a, struct tn_linear_span span);

/* The far sums added to outputs that a forward left in numerators and denominators. */
void tn_linear_add_far(const struct tn_linear_group *a, struct tn_linear_span span);

/* (13). Causal, St advances, and the slopes of the denominators stay. `sums`: adds the queries
 * to Rt. */
void tn_linear_query_gradients(const struct tn_linear_group *a, struct tn_linear_span span,
                               bool sums);

/* (14), (15). Causal, the slopes are there, and Rt advances from the last position to the
 * first. */
void tn_linear_key_gradients(const struct tn_linear_group *a, struct tn_linear_span span);

#endif
