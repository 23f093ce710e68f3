/* SPDX-License-Identifier: MIT */
/* softmax_parts.c - softmax over keys in parts.    Paper (2)
 *
 * A part leaves y_p and L_p = log sum_j exp(s_j) over its keys, so that
 *
 *   y = sum_p exp(L_p) y_p / sum_p exp(L_p)     L = log sum_p exp(L_p)
 *
 * which is kept in units of exp(m), m being the largest L_p so far. */
#include <math.h>
#include <string.h>

#include "layer/softmax_tile.h"

/* A matrix of weights would be that of one part. */
static void adapt(tarn_attention *part, bool backward)
{
    (void)backward;
    part->options.value[TN_SOFTMAX_STORE] = 0.0;
}

/* Infinity: no key was seen. */
static void join(const tarn_attention *plan, struct tn_part_kept *kept, float *sum,
                 const float *y, float lse)
{
    if (lse == INFINITY)
        return;
    const bool first = kept->sum == 0.0;
    const double most = first ? (double)lse : fmax(kept->most, (double)lse);
    const double before = first ? 0.0 : exp(kept->most - most), by = exp((double)lse - most);

    plan->host.kernels->scale(sum, sum, (float)before, plan->M);
    plan->host.kernels->axpy(sum, (float)by, y, plan->M);
    *kept = (struct tn_part_kept){most, kept->sum * before + by};
}

static void finish(const tarn_attention *plan, float *y, float *lse,
                   const struct tn_part_kept *kept, const float *sum)
{
    const bool none = kept->sum == 0.0;

    plan->host.kernels->scale(y, sum, none ? 0.0f : (float)(1.0 / kept->sum), plan->M);
    *lse = none ? INFINITY : (float)(kept->most + log(kept->sum));
}

const struct tn_attention_parts tn_softmax_parts = {
    .adapt = adapt,
    .join = join,
    .finish = finish,
};
