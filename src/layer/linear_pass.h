/* SPDX-License-Identifier: MIT */
/* linear_pass.h - the passes of linear attention over positions from .. to of a group of heads.
 *
 *   forward           o_i  = phi(q_i)^T S_i                    (8)-(12)
 *   query gradients   dphi(q_i) = St_i^T g'_i                  (13)
 *   key gradients     dphi(k_i) = Rt_i^T v'_i                  (14)
 *                     dv_i = R_i^T phi(k_i)                    (15)
 *
 * Causal, the sums advance with the positions, S, z and St to the right, R and Rt to the left;
 * else they are those of all positions and stay. */
#ifndef TN_LINEAR_PASS_H
#define TN_LINEAR_PASS_H

#include "layer/linear_tile.h"

/* S and z += keys and values; Rt += queries and gradients. */
void tn_linear_sum_keys(const struct tn_linear_group *a, size_t from, size_t to);
void tn_linear_sum_queries(const struct tn_linear_group *a, size_t from, size_t to);

void tn_linear_forward(const struct tn_linear_group *a, size_t from, size_t to);

/* The far sums added to outputs that a forward left in numerators and denominators. */
void tn_linear_add_far(const struct tn_linear_group *a, size_t from, size_t to);

/* If not causal, the first adds the queries to Rt, too. */
void tn_linear_query_gradients(const struct tn_linear_group *a, size_t from, size_t to);
void tn_linear_key_gradients(const struct tn_linear_group *a, size_t from, size_t to);

/* St from S and z. */
void tn_linear_transpose_S(const struct tn_linear_group *a);

#endif
