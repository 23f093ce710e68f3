/* SPDX-License-Identifier: MIT */
/* linear_step.h - linear attention as a recurrent network.    Paper (16)-(20) */
#ifndef TN_LINEAR_STEP_H
#define TN_LINEAR_STEP_H

#include "layer/attn.h"

/* As a kind's state, work, step and advance. */
size_t tn_linear_step_state(const tarn_attention *plan);
void tn_linear_step_work(const tarn_attention *plan, struct tn_arena *arena);
void tn_linear_step(const struct tn_attention_call *call);
void tn_linear_advance(void *state);

#endif
