/* SPDX-License-Identifier: MIT */
/* attention_check.h - every argument of the public attention calls, distrusted. */
#ifndef TN_ATTENTION_CHECK_H
#define TN_ATTENTION_CHECK_H

#include "layer/attention_kind.h"

tarn_status tn_check_desc(const tarn_attention_desc *desc, tarn_error *err);

/* After the kind and its options are known: what it refuses, and sizes that do not fit. */
tarn_status tn_check_plan(const tarn_attention *plan, tarn_error *err);

tarn_status tn_check_forward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                             const void *workspace, tarn_error *err);
tarn_status tn_check_backward(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                              const void *saved, const void *workspace, tarn_error *err);
tarn_status tn_check_step(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                          void *const *states, size_t n, const void *workspace,
                          tarn_error *err);

/* Bytes for the caller to provide, with room to align; SIZE_MAX if they do not fit. */
size_t tn_saved_bytes(const tarn_attention *plan);
size_t tn_work_bytes(const tarn_attention *plan);
size_t tn_state_bytes(const tarn_attention *plan); /* 0: no recurrent form */

/* Whether a state, with its header, can be one of this plan. */
bool tn_state_fits(const tarn_attention *plan, const void *state);

#endif
