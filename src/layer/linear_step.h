/* SPDX-License-Identifier: MIT */
/* linear_step.h - linear attention as a recurrent network.    Paper (16)-(20) */
#ifndef TN_LINEAR_STEP_H
#define TN_LINEAR_STEP_H

#include "layer/attention_kind.h"

/* As a kind's state, step_work, step and parts. */
size_t tn_linear_state(const tarn_attention *plan);
void tn_linear_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
void tn_linear_step(const struct tn_attention_call *call);
void tn_linear_state_parts(const tarn_attention *plan, size_t parts[3]);

#endif
