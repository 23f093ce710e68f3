/* SPDX-License-Identifier: MIT */
#include "model/slices.h"

#include <string.h>

#include "model/body.h"

/* ---- Planning ----------------------------------------------------------- */

tarn_status tn_slices_check(const tarn_model *model, const struct tn_run_desc *desc,
                            tarn_error *err)
{
    const tarn_config *const config = &model->arch.config;
    const size_t size = tn_comm_size(desc->comm);

    if (config->frames > 0 || model->arch.head.row->sequence)
        return tn_fail(err, TARN_EINVAL,
                       "sequence_chunks and sequence_parallel need a model that predicts a "
                       "symbol at each position");
    if (!model->arch.body->slices)
        return tn_fail(err, TARN_EINVAL,
                       "sequence_chunks and sequence_parallel must be 0 with body '%s'",
                       config->body);
    if (!tn_is_power_of_two(desc->slices) || desc->slices > desc->N)
        return tn_fail(
            err, TARN_EINVAL,
            "sequence_chunks is %zu; it must be a power of two of at most the length, "
            "which is %zu",
            desc->slices, desc->N);
    if (desc->slices >= (size_t)1 << TN_TREE_DEPTH)
        return tn_fail(err, TARN_EINVAL, "sequence_chunks is %zu; it must be at most %zu",
                       desc->slices, (size_t)1 << (TN_TREE_DEPTH - 1));
    if (desc->slices % size != 0)
        return tn_fail(err, TARN_EINVAL,
                       "sequence_parallel is %zu; it must be a power of two that divides "
                       "sequence_chunks, which is %zu",
                       size, desc->slices);
    const size_t positions = desc->slices * tn_blocks(desc->N, desc->slices);

    if (config->positions > 0 && positions > config->positions)
        return tn_fail(err, TARN_EINVAL,
                       "sequence_chunks is %zu, which makes %zu positions of a length of %zu; "
                       "there are %zu learned positions",
                       desc->slices, positions, desc->N, config->positions);
    return TARN_OK;
}

void tn_slices_init(struct tn_slices *slices, const struct tn_run_desc *desc)
{
    const size_t own = desc->slices / tn_comm_size(desc->comm);

    *slices = (struct tn_slices){
        .count = desc->slices,
        .own = own,
        .first = own * tn_comm_rank(desc->comm),
        .comm = desc->comm,
    };
}

void tn_slices_lay_out(tarn_run *run, struct tn_arena *arena)
{
    struct tn_slices *const s = run->slices;

    s->inputs = tn_arena_alloc(arena, run->R, sizeof *s->inputs);
    s->targets = tn_arena_alloc(arena, run->R, sizeof *s->targets);
    s->weights = tn_arena_floats(arena, run->R);
    s->past = tn_arena_alloc(arena, run->B * run->model->arch.context.reach, sizeof *s->past);
    s->counts = tn_arena_alloc(arena, run->B, sizeof *s->counts);
    s->there = tn_arena_alloc(arena, run->B, sizeof *s->there);
    s->losses = tn_arena_alloc(arena, tn_max(s->own, tn_comm_size(s->comm)), sizeof *s->losses);
}

/* ---- A slice ------------------------------------------------------------ */

/* Of the slice under way, those that whole sequences have. */
static size_t positions_there(const tarn_run *run)
{
    const size_t from = tn_slice_from(run, run->slices->at), length = run->slices->length;

    return from < length ? tn_min(run->N, length - from) : 0;
}

/* B x N of B x length elements of 4 bytes; zeros behind them. */
static void copy_slice(const tarn_run *run, void *to, const void *from)
{
    const size_t each = run->N * sizeof(int32_t), all = run->slices->length * sizeof(int32_t);
    const size_t first = tn_slice_from(run, run->slices->at) * sizeof(int32_t);
    const size_t there = positions_there(run) * sizeof(int32_t);

    memset(to, 0, run->B * each);
    for (size_t b = 0; b < run->B && there > 0; b++)
        memcpy((char *)to + b * each, (const char *)from + b * all + first, there);
}

/* What is behind the sequences has no weight. */
static const float *take_weights(const tarn_run *run, const float *weights)
{
    const size_t there = positions_there(run);
    float *const own = run->slices->weights;

    if (weights)
        copy_slice(run, own, weights);
    for (size_t i = 0; !weights && i < run->R; i++)
        own[i] = i % run->N < there ? 1.0f : 0.0f;
    return weights || there < run->N ? own : NULL;
}

/* The last symbols before the slice, as far as there are any. */
static void copy_past(const tarn_run *run)
{
    const struct tn_slices *const s = run->slices;
    const size_t reach = run->model->arch.context.reach, from = tn_slice_from(run, s->at);
    const size_t n = positions_there(run) > 0 ? tn_min(reach, from) : 0;

    memset(s->past, 0, run->B * reach * sizeof *s->past);
    for (size_t b = 0; b < run->B; b++)
        memcpy(s->past + (b + 1) * reach - n, s->symbols + b * s->length + from - n,
               n * sizeof *s->past);
}

void tn_slices_select(tarn_run *run, size_t i)
{
    struct tn_slices *const s = run->slices;
    const size_t from = tn_slice_from(run, i);

    s->at = i;
    for (size_t b = 0; b < run->B; b++) {
        const size_t length = tn_slice_length(run, b);

        s->counts[b] = tn_min(length, from);
        s->there[b] = tn_min(length - s->counts[b], run->N);
    }
    run->lengths = tn_slices_end(run) ? s->there : NULL;
    run->model->arch.body->slices->select(run, i);
}

/* Its symbols, and those before it. */
static void select_symbols(tarn_run *run, size_t i)
{
    tn_slices_select(run, i);
    copy_slice(run, run->slices->inputs, run->slices->symbols);
    copy_past(run);
}

void tn_slices_keep(tarn_run *run, tarn_status status, const tarn_error *err)
{
    struct tn_slices *const s = run->slices;

    if (status == TARN_OK || s->status != TARN_OK)
        return;
    s->status = status;
    s->err = *err;
}

/* ---- The pass ----------------------------------------------------------- */

/* From its last layer to its loss and, with sums, back. */
static void finish(tarn_run *run, size_t i, const tarn_batch *batch, float scale,
                   struct tn_gradient_sums *sums)
{
    struct tn_slices *const s = run->slices;
    const struct tn_body_slices *const body = run->model->arch.body->slices;

    tn_slices_select(run, i);
    copy_slice(run, s->targets, batch->targets);
    body->finish(run);
    tn_run_predict(run);
    tn_run_loss(run, &s->losses[i], NULL, s->targets, NULL, take_weights(run, batch->weights),
                sums ? scale : 0.0f);
    if (!sums)
        return;
    const struct tn_weights *const leaf = tn_gradient_sums_leaf(sums);
    const struct tn_span span = {leaf->norm_gain,
                                 tn_branches_leaf(&sums->branches) + sums->branches.floats};

    tn_gradient_sums_clear(sums, span);
    tn_run_predict_backward(run, leaf);
    body->finish_backward(run, leaf);
    tn_gradient_sums_add(sums, span);
    tn_branches_end_leaf(&sums->branches);
}

static void embed_backward(tarn_run *run, size_t i, struct tn_gradient_sums *sums)
{
    const struct tn_weights *const leaf = tn_gradient_sums_leaf(sums);
    const struct tn_span span = {tn_branches_leaf(&sums->branches), leaf->blocks[0].in[0]};

    select_symbols(run, i);
    tn_gradient_sums_clear(sums, span);
    tn_run_embed_backward(run, leaf, run->slices->inputs);
    tn_gradient_sums_add(sums, span);
    tn_branches_end_leaf(&sums->branches);
}

static void backward(tarn_run *run, struct tn_gradient_sums *sums)
{
    run->model->arch.body->slices->backward(run, sums);
    tn_branches_begin(&sums->branches);
    for (size_t i = 0; i < run->slices->own; i++)
        embed_backward(run, i, sums);
}

static struct tn_loss sum_losses(const struct tn_loss *losses, size_t count)
{
    if (count == 1)
        return losses[0];
    const struct tn_loss left = sum_losses(losses, count / 2);

    return tn_loss_add(left, sum_losses(losses + count / 2, count / 2));
}

/* Without a backward pass, processes behind may have more to do: they attend to more. */
static void share_losses(tarn_run *run, bool trains)
{
    struct tn_slices *const s = run->slices;
    const struct tn_loss own = sum_losses(s->losses, s->own);
    tarn_error err;

    s->losses[tn_comm_rank(s->comm)] = own;
    tn_slices_keep(
        run, tn_comm_gather(s->comm, s->losses, sizeof own, trains ? TN_SHORT : TN_LONG, &err),
        &err);
}

tarn_status tn_slices_run(tarn_run *whole, struct tn_loss *loss, const tarn_batch *batch,
                          float scale, struct tn_gradient_sums *sums, tarn_error *err)
{
    tarn_run *const run = whole->slice;
    struct tn_slices *const s = run->slices;
    tarn_error failure;

    s->symbols = batch->inputs;
    s->lengths = batch->lengths;
    s->status = TARN_OK;
    run->dropout = whole->dropout;
    run->dropout_seed = whole->dropout_seed;
    for (size_t i = 0; i < s->own; i++) {
        select_symbols(run, i);
        tn_run_embed(run, s->inputs);
    }
    run->model->arch.body->slices->forward(run);
    if (sums)
        tn_gradient_sums_begin(sums);
    for (size_t i = 0; i < s->own; i++)
        finish(run, i, batch, scale, sums);
    if (sums) {
        tn_gradient_sums_complete(sums, sums->weights[0].norm_gain);
        backward(run, sums);
    }
    if (s->status == TARN_OK)
        share_losses(run, sums != NULL);
    if (sums && s->status == TARN_OK)
        tn_slices_keep(run, tn_gradient_sums_finish(sums, &failure), &failure);
    *loss = sum_losses(s->losses, tn_comm_size(s->comm));
    return s->status == TARN_OK ? TARN_OK : tn_fail(err, s->status, "%s", s->err.text);
}
