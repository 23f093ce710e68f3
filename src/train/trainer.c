/* SPDX-License-Identifier: MIT */
/* trainer.c - an update: forward, backward, clip, step. */
#include "train/trainer.h"

#include <math.h>
#include <string.h>

#include "layer/dropout.h"
#include "model/body.h"

/* ---- Updates ------------------------------------------------------------ */

/* Every process checks all of a batch, whose weight and tokens it needs. */
static tarn_status check_batches(tarn_trainer *t, const tarn_batch *batches, size_t count,
                                 double *weight, size_t *tokens, tarn_error *err)
{
    tarn_status status = tn_carry_check(&t->carry, batches, count, err);

    *weight = 0.0;
    *tokens = 0;
    for (size_t i = 0; i < count * t->micro_batches && status == TARN_OK; i++) {
        const tarn_batch part =
            tn_batch_part(t->run, &batches[i / t->micro_batches], i % t->micro_batches);
        double more = 0.0;

        status = tn_batch_check(t->run, &part, &more, err);
        *weight += more;
        *tokens += tn_batch_tokens(t->run, &part);
    }
    if (status == TARN_OK && !(*weight > 0.0))
        status =
            tn_fail(err, TARN_EINVAL,
                    "weights: nothing to learn: all are 0, or their targets are impossible");
    return status;
}

/* Gradients of the last leaf from here on are complete: other processes may have them. */
static void complete(void *arg, const float *from)
{
    tarn_trainer *const t = arg;

    tn_gradient_sums_complete_last(&t->sums, from);
}

static void run_whole(tarn_trainer *t, tarn_run *run, struct tn_loss *loss,
                      const tarn_batch *part, size_t leaf, bool last, float scale)
{
    struct tn_run_states states;

    if (t->carry.bytes > 0) {
        states = tn_carry_next(&t->carry, part->position, leaf);
        run->states = &states;
    }
    run->complete = last && tn_comm_size(t->comm) > 1 ? complete : NULL;
    run->complete_arg = t;
    tn_batch_loss(run, loss, part, scale);
    tn_run_backward(run, tn_gradient_sums_leaf(&t->sums), part->inputs);
    run->states = NULL;
}

/* Of micro-batch `leaf` of batch i; last: no more are added to these gradients. */
static tarn_status add_gradients(tarn_trainer *t, struct tn_loss *total,
                                 const tarn_batch *batches, size_t i, size_t leaf, bool last,
                                 double weight, tarn_error *err)
{
    const tarn_batch part = tn_batch_part(t->run, &batches[i], leaf);
    const uint64_t place = i * t->micro_batches + leaf;
    const float scale = (float)(1.0 / weight);
    tarn_run *const run = tn_batch_run(t->run, &part);
    struct tn_loss loss;
    tarn_status status = TARN_OK;

    run->dropout = t->model->arch.config.dropout;
    run->dropout_seed = tn_dropout_seed(t->progress.seed, t->progress.updates, place);
    if (run->slice) {
        status = tn_slices_run(run, &loss, &part, scale, &t->slices, err);
        tn_tree_add(&t->host, tn_branches_leaf(&t->sums.branches), t->slices.branches.sums[0],
                    t->model->count, false);
    } else
        run_whole(t, run, &loss, &part, leaf, last, scale);
    *total = tn_loss_add(*total, loss);
    return status;
}

/* Gradients of the mean loss over all batches, of the micro-batches of this process: each over
 * all batches, then their sum. */
static tarn_status sum_gradients(tarn_trainer *t, struct tn_loss *losses,
                                 const tarn_batch *batches, size_t count, double weight,
                                 tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t k = 0; k < t->own && status == TARN_OK; k++) {
        tn_gradient_sums_begin_leaf(&t->sums);
        tn_carry_begin(&t->carry);
        losses[k] = (struct tn_loss){0};
        for (size_t i = 0; i < count && status == TARN_OK; i++)
            status = add_gradients(t, &losses[k], batches, i, t->first + k,
                                   i + 1 == count && tn_gradient_sums_is_last(&t->sums), weight,
                                   err);
        if (status == TARN_OK)
            tn_gradient_sums_end_leaf(&t->sums);
    }
    return status;
}

tarn_status tarn_trainer_gradients(tarn_trainer *t, tarn_gradients *gradients,
                                   const tarn_batch *batches, size_t count, tarn_error *err)
{
    double weight;
    size_t tokens;
    struct tn_loss total;
    tarn_status status;

    if (!t || !gradients || !batches || count == 0)
        return tn_fail(err, TARN_EINVAL,
                       "trainer, gradients and batches must not be NULL, and there must be at "
                       "least 1 batch");
    t->weight = 0.0;
    if ((status = tn_trainer_compare(t, err)) != TARN_OK)
        return status;
    tn_gradient_sums_begin(&t->sums);
    status = check_batches(t, batches, count, &weight, &tokens, err);
    if (tn_slices_sharing(t->run) > 1 && (status = tn_trainer_agree(t, status, err)) != TARN_OK)
        return status;
    if (status == TARN_OK)
        status = sum_gradients(t, tn_trainer_losses(t), batches, count, weight, err);
    if (status == TARN_ERANK)
        return status;
    if ((status = tn_trainer_exchange(t, &total, batches, count, status, err)) != TARN_OK)
        return status;
    t->weight = weight;
    *gradients = (tarn_gradients){
        .values = t->g,
        .count = t->model->count,
        .weight = weight,
        .loss = total.loss / weight,
        .accuracy = total.correct / weight,
        .tokens = tokens,
    };
    return TARN_OK;
}

static tarn_status move(tarn_trainer *t, double rate, tarn_error *err)
{
    struct tn_optimizer_step step = {
        .rate = rate,
        .t = t->progress.updates - t->progress.skipped,
        .w = t->model->values + t->shard.from,
        .g = t->g + t->shard.from,
        .tensors = t->owned,
        .count = t->shard.count,
        .scales = t->scales + t->shard.first,
        .host = &t->host,
    };

    memcpy(step.moments, t->moments, sizeof step.moments);
    if (t->shard.count > 0)
        tn_optimizer_update(&t->optimizer, step);
    return t->shards ? tn_shards_spread(t->comm, t->model->values, t->tensors,
                                        t->model->tensor_count, err)
                     : TARN_OK;
}

static tarn_status refuse(const tarn_trainer *t, const tarn_report *report, size_t wrong,
                          tarn_error *err)
{
    if (!isfinite(report->loss))
        return tn_fail(err, TARN_ENUMBER,
                       "update %llu: the loss is %g; try a lower learning rate",
                       (unsigned long long)report->update, report->loss);
    return tn_fail(err, TARN_ENUMBER,
                   "update %llu: the gradient of %s is not finite; try a lower learning rate",
                   (unsigned long long)report->update, t->model->tensors[wrong].name);
}

tarn_status tarn_trainer_apply(tarn_trainer *t, tarn_report *report,
                               const tarn_gradients *gradients, tarn_error *err)
{
    if (!t || !report || !gradients)
        return tn_fail(err, TARN_EINVAL, "trainer, report and gradients must not be NULL");
    if (!(t->weight > 0.0) || gradients->values != t->g || gradients->count != t->model->count)
        return tn_fail(err, TARN_EINVAL,
                       "gradients must be those of the last tarn_trainer_gradients() of this "
                       "trainer, and can be applied only once");
    const struct tn_clip_result clipped = tn_clip_scales(
        &t->clip, t->scales, t->scratch, t->g, t->tensors, t->model->tensor_count, &t->host);

    t->weight = 0.0;
    *report = (tarn_report){
        .update = t->progress.updates + 1,
        .loss = gradients->loss,
        .accuracy = gradients->accuracy,
        .lr = tn_schedule_rate(&t->schedule, &t->progress.schedule, t->progress.updates + 1),
        .norm = clipped.norm,
        .tokens = gradients->tokens,
        .skipped = !isfinite(gradients->loss) || clipped.wrong < t->model->tensor_count,
    };
    if (report->skipped && !t->skip)
        return refuse(t, report, clipped.wrong, err);
    t->progress.updates++;
    if (!isfinite(report->loss))
        tn_carry_clear(&t->carry, t->run);
    tn_carry_apply(&t->carry);
    t->progress.position = t->carry.position;
    if (!report->skipped)
        return move(t, report->lr, err);
    t->progress.skipped++;
    return TARN_OK;
}

tarn_status tarn_trainer_update(tarn_trainer *t, tarn_report *report, const tarn_batch *batches,
                                size_t count, tarn_error *err)
{
    tarn_gradients gradients;

    if (!t || !report || !batches || count == 0)
        return tn_fail(
            err, TARN_EINVAL,
            "trainer, report and batches must not be NULL, and there must be at least 1 batch");
    const tarn_status status = tarn_trainer_gradients(t, &gradients, batches, count, err);

    return status == TARN_OK ? tarn_trainer_apply(t, report, &gradients, err) : status;
}

tarn_status tarn_trainer_score(tarn_trainer *t, tarn_score *score, const tarn_batch *batch,
                               tarn_error *err)
{
    if (!t || !score || !batch)
        return tn_fail(err, TARN_EINVAL, "trainer, score and batch must not be NULL");
    const tarn_status status =
        tn_trainer_agree(t, tn_batch_check_parts(t->run, batch, t->micro_batches, err), err);

    return status == TARN_OK
               ? tn_batch_score(t->run, &t->sequences, score, batch, t->micro_batches, err)
               : status;
}

void tarn_trainer_observe(tarn_trainer *t, double loss)
{
    tn_schedule_observe(&t->schedule, &t->progress.schedule, loss);
}

/* ---- Questions ---------------------------------------------------------- */

uint64_t tarn_trainer_updates(const tarn_trainer *t)
{
    return t->progress.updates;
}

size_t tarn_trainer_bytes(const tarn_trainer *t)
{
    return t->bytes;
}

/* The embedding and the positions are looked up, not multiplied. */
double tarn_trainer_flops(const tarn_trainer *t)
{
    const struct tn_arch *const arch = &t->model->arch;
    const size_t embedded = arch->config.frames > 0
                                ? 0
                                : (arch->config.symbols + tn_context_rows(&arch->context)) *
                                      arch->position.embedding;
    const size_t slices = t->run->slice ? t->run->slice->slices->count : 1;
    const size_t looked_up = embedded + arch->config.positions * arch->config.width;

    return (double)t->micro_batches *
           (6.0 * (double)(t->model->count - looked_up) * (double)t->run->R +
            (arch->body->flops ? (double)slices * arch->body->flops(t->run) : 0.0));
}
