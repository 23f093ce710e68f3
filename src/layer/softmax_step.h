/* SPDX-License-Identifier: MIT */
/* softmax_step.h - softmax attention with a growing cache: the paper's stateful softmax. */
#ifndef TN_SOFTMAX_STEP_H
#define TN_SOFTMAX_STEP_H

#include "layer/attention_kind.h"

/* As a kind's step_work and step; its state is a kv_cache. */
void tn_softmax_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
void tn_softmax_step(const struct tn_attention_call *call);

/* A forward with states: what steps give, for all positions at once. */
void tn_softmax_rows(const struct tn_attention_call *call);

#endif
