/* SPDX-License-Identifier: MIT */
/* head_categorical.c - one output per symbol, probabilities by softmax.
 *
 *     loss = log(sum exp x) - x[target]       dx = weight scale (softmax(x) - onehot(target))
 *
 * The largest x is subtracted first, so that no exp overflows. Losses are summed in double over
 * a block of rows, then over blocks in order. */
#include <math.h>
#include <string.h>

#include "layer/head.h"

struct work {
    const struct tn_head_call *call;
    struct tn_loss *of_blocks;
    float *rows; /* one per thread, for exps where no gradient is wanted */
};

static struct work lay_out(const struct tn_head *head, const struct tn_rows *r,
                           struct tn_arena *arena)
{
    struct work work = {0};

    work.of_blocks =
        tn_arena_alloc(arena, tn_blocks(r->rows, tn_rows_sum_block(r)), sizeof(struct tn_loss));
    work.rows =
        tn_arena_alloc(arena, r->threads, tn_rows_sum_width(head->outputs) * sizeof(float));
    return work;
}

static void work_size(const struct tn_head *head, const struct tn_rows *r, size_t B,
                      struct tn_arena *arena)
{
    (void)B;
    lay_out(head, r, arena);
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

static void run_block(void *arg, size_t index, size_t thread)
{
    const struct work *const work = arg;
    const struct tn_head_call *const call = work->call;
    const size_t O = call->head->outputs, block = tn_rows_sum_block(call->rows);
    const size_t from = index * block, to = tn_min(call->rows->rows, from + block);
    struct tn_loss loss = {0};

    for (size_t i = from; i < to; i++) {
        const float weight = call->weights ? call->weights[i] : 1.0f;
        float *const exps = call->doutputs ? call->doutputs + i * O
                                           : work->rows + thread * tn_rows_sum_width(O);

        if (weight != 0.0f)
            run_row(call, &loss, exps, i, weight);
        else if (call->doutputs)
            memset(exps, 0, O * sizeof *exps);
    }
    work->of_blocks[index] = loss;
}

static void loss_of(const struct tn_head_call *call, struct tn_loss *loss)
{
    const struct tn_rows *const r = call->rows;
    const size_t blocks = tn_blocks(r->rows, tn_rows_sum_block(r));
    struct tn_arena arena = tn_arena_over(call->scratch);
    struct work work = lay_out(call->head, r, &arena);

    work.call = call;
    tn_parallel(r->threads, blocks, run_block, &work);
    *loss = tn_loss_sum(work.of_blocks, blocks);
}

/* ---- the row ------------------------------------------------------------ */

const struct tn_head_row tn_head_categorical = {
    .about = {"categorical", "softmax over the symbols, one output each", tn_no_options},
    .least = 1,
    .most = INT32_MAX,
    .work = work_size,
    .loss = loss_of,
};
