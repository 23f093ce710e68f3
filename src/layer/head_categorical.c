/* SPDX-License-Identifier: MIT */
/* head_categorical.c - one output per symbol, probabilities by softmax.
 *
 *     loss = log(sum exp x) - x[target]       dx = weight scale (softmax(x) - onehot(target))
 *
 * The largest x is subtracted first, so that no exp overflows. Losses are summed in double. */
#include <math.h>
#include <string.h>

#include "layer/head.h"

static void work_size(const struct tn_head *head, const struct tn_rows *r, size_t B,
                      struct tn_arena *arena)
{
    (void)B;
    tn_head_blocks_size(r, head->outputs, arena);
}

/* The target is the first of the largest. */
static bool is_correct(const float *x, float most, size_t target)
{
    if (!(x[target] == most))
        return false;
    for (size_t j = 0; j < target; j++)
        if (x[j] == most)
            return false;
    return true;
}

/* The gradient, if there is one, may take the place of x. */
static void run_row(const struct tn_head_call *call, struct tn_loss *loss, float *exps,
                    size_t i, float weight)
{
    const struct tn_kernels *const kernels = call->rows->kernels;
    const size_t O = call->head->outputs, target = (size_t)call->targets[i];
    const float *const x = call->outputs + i * O;
    const float most = kernels->max(x, O), at_target = x[target];
    const double w = (double)weight;

    loss->correct += is_correct(x, most, target) ? w : 0.0;
    const float sum = kernels->exp_sum(exps, x, most, O);

    loss->loss += w * (log((double)sum) + ((double)most - (double)at_target));
    loss->weight += w;
    if (call->doutputs) {
        const float by = weight * call->scale;

        kernels->scale(exps, exps, by / sum, O);
        exps[target] -= by;
    }
}

/* Without gradients, exps go to `work`. */
static void run_rows(const struct tn_head_call *call, struct tn_loss *loss, float *work,
                     size_t from, size_t to)
{
    const size_t O = call->head->outputs;

    for (size_t i = from; i < to; i++) {
        const float weight = call->weights ? call->weights[i] : 1.0f;
        float *const exps = call->doutputs ? call->doutputs + i * O : work;

        if (weight != 0.0f)
            run_row(call, loss, exps, i, weight);
        else if (call->doutputs)
            memset(exps, 0, O * sizeof *exps);
    }
}

static void loss_of(const struct tn_head_call *call, struct tn_loss *loss)
{
    tn_head_blocks_run(call, loss, call->head->outputs, run_rows);
}

/* ---- the row ------------------------------------------------------------ */

const struct tn_head_row tn_head_categorical = {
    .about = {"categorical", "softmax over the symbols, one output each", tn_no_options},
    .least = 1,
    .most = INT32_MAX,
    .work = work_size,
    .loss = loss_of,
};
