/* SPDX-License-Identifier: MIT */
/* attention_slices.c - attention of a slice of sequences that are cut, by a kind whose state is
 * a sum. */
#include <assert.h>

#include "layer/attention_kind.h"

void tn_attention_sum(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                      const void *saved, float *sums, void *workspace)
{
    const struct tn_attention_sums *const kind = plan->kind->sums;
    tarn_attention_arrays used;
    const struct tn_attention_call call =
        tn_attention_call_of(plan, &used, arrays, saved, workspace);

    (saved ? kind->of_queries : kind->of_keys)(&call, sums);
}

void tn_attention_forward_slice(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                                void *saved, const float *keys, void *workspace)
{
    tarn_attention_arrays used;
    const struct tn_attention_call call =
        tn_attention_call_of(plan, &used, arrays, saved, workspace);

    assert(!plan->causal);
    plan->kind->sums->forward(&call, keys);
}

void tn_attention_backward_slice(const tarn_attention *plan,
                                 const tarn_attention_arrays *arrays, const void *saved,
                                 const float *keys, const float *queries, void *workspace)
{
    tarn_attention_arrays used;
    const struct tn_attention_call call =
        tn_attention_call_of(plan, &used, arrays, saved, workspace);

    assert(!plan->causal);
    plan->kind->sums->backward(&call, keys, queries);
}
