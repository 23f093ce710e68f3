/* SPDX-License-Identifier: MIT */
/* linear_state.h - linear attention as a recurrent network.    Paper (16)-(20)
 *
 *   s_i = s_{i-1} + phi(k_i) v_i^T     z_i = z_{i-1} + phi(k_i)            (18), (19)
 *   y_i = phi(q_i)^T s_i / phi(q_i)^T z_i                                   (20)
 *
 * A sum that is stored, in a state, between tasks or from forward to backward, is s (C x M),
 * then z (C), with rows padded to TN_LINEAR_STATE_PAD floats: whole vectors on every machine,
 * so that a state can move to another one. Padding stays zero.
 *
 * A float that has a sum of a million terms rounds every further one, and rounds equal ones the
 * same way: a sequence that repeats itself was wrong by half a percent after a million steps.
 * So the sums of a state are of two parts, s = near + far: near has the last positions, up to
 * BLOCK of them, and is then added to far. Until then far is zero and not read.
 *
 * The floats of a state are near of every head, then far of every head. Sequences that end
 * before the first block does have no far. */
#ifndef TN_LINEAR_STATE_H
#define TN_LINEAR_STATE_H

#include "layer/linear_tile.h"

enum {
    TN_LINEAR_STATE_PAD = 16,
    TN_LINEAR_BLOCK = 1024 /* positions; a million are about as many blocks */
};

/* As a kind's state, step_work and step. */
size_t tn_linear_state(const tarn_attention *plan);
void tn_linear_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
void tn_linear_step(const struct tn_attention_call *call);

/* Floats of a head's sum, and where near and far of head h are in the floats of a state or of
 * its gradient; NULL if that is NULL, or has no far. */
size_t tn_linear_sum_floats(const tarn_attention *plan);
float *tn_linear_near(const tarn_attention *plan, const float *state, size_t h);
float *tn_linear_far(const tarn_attention *plan, const float *state, size_t h);

/* Stored sums of a group's heads, one head after the other, to and from where passes have them,
 * S with rows S_ld apart and z. Loading NULL gives zeros; adding is to what is stored. */
void tn_linear_sum_load(const struct tn_linear_group *a, float *S, float *z, const float *sum);
void tn_linear_sum_store(const struct tn_linear_group *a, float *sum, const float *S,
                         const float *z);
void tn_linear_sum_add(const struct tn_linear_group *a, float *sum, const float *S,
                       const float *z);

/* The same transposed: St = sum^T, sum = St^T, and St += by sum^T. */
void tn_linear_sum_load_t(const struct tn_linear_group *a, float *St, const float *sum);
void tn_linear_sum_store_t(const struct tn_linear_group *a, float *sum, const float *St);
void tn_linear_sum_add_t(const struct tn_linear_group *a, float *St, const float *sum,
                         float by);

#endif
