/* SPDX-License-Identifier: MIT */
/* trainer.c - forward, backward, clip, step. */
#include "train/trainer.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "layer/dropout.h"
#include "model/body.h"

/* ---- Memory ------------------------------------------------------------- */

static void lay_out(tarn_trainer *t, struct tn_arena *arena)
{
    const tarn_model *const model = t->model;
    const size_t tensors = model->tensor_count, floats = model->count;

    t->gradients.blocks =
        tn_arena_take(arena, model->arch.config.layers, sizeof *t->gradients.blocks);
    t->scales = tn_arena_floats(arena, tensors);
    t->scratch = tn_arena_take(arena, tn_clip_scratch(t->tensors, tensors), sizeof(double));
    t->g = tn_arena_floats(arena, floats);
    for (size_t i = 0; i < tn_optimizer_moments(&t->optimizer); i++)
        t->moments[i] = tn_arena_floats(arena, floats);
    if (t->carry.bytes > 0)
        tn_carry_lay_out(&t->carry, arena);
}

static tarn_status allocate(tarn_trainer *t, tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);

    lay_out(t, &measure);
    const size_t bytes = tn_arena_bytes(&measure);

    t->memory = bytes < SIZE_MAX ? tn_allocate(&t->host.allocator, bytes) : NULL;
    if (!t->memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for the gradients and moments of %zu parameters",
                       t->model->count);
    struct tn_arena arena = tn_arena_over(t->memory);

    lay_out(t, &arena);
    t->bytes = bytes + t->run->bytes + t->sequences.bytes;
    for (size_t i = 0; i < tn_optimizer_moments(&t->optimizer); i++)
        memset(t->moments[i], 0, t->model->count * sizeof(float));
    tn_weights_carve(&t->gradients, &t->model->arch, t->g);
    if (t->carry.bytes > 0)
        tn_carry_reset(&t->carry);
    return TARN_OK;
}

/* ---- Life --------------------------------------------------------------- */

static tarn_status read_names(tarn_trainer *t, const tarn_trainer_desc *desc, tarn_error *err)
{
    tarn_status status;

    if ((status = tn_optimizer_init(&t->optimizer, desc->optimizer ? desc->optimizer : "radam",
                                    err)) != TARN_OK ||
        (status = tn_schedule_init(&t->schedule, desc->schedule ? desc->schedule : "constant",
                                   desc->lr != 0.0 ? desc->lr : 1e-3, desc->steps, err)) !=
            TARN_OK)
        return status;
    snprintf(t->progress.optimizer, sizeof t->progress.optimizer, "%s",
             t->optimizer.row->about.name);
    return tn_clip_init(&t->clip, desc->clip ? desc->clip : "tensor:norm=1", err);
}

static tarn_status make_run(tarn_trainer *t, const tarn_trainer_desc *desc, tarn_error *err)
{
    struct tn_run_desc run = {
        .B = desc->batch,
        .N = desc->length,
        .trains = true,
        .recompute = desc->recompute,
        .varies = desc->varies,
    };
    tarn_status status = tn_element_named(&run.elements, desc->precision, TN_INT8, err);

    if (status != TARN_OK ||
        (status = tn_run_create(&t->run, t->model, &run, &t->host, err)) != TARN_OK)
        return status;
    return tn_sequence_score_create(&t->sequences, t->run, 0, err);
}

/* The trainer, and the ranges that its plan is measured with. */
static tarn_trainer *take(const tarn_model *model, const struct tn_host *host)
{
    const size_t bytes = sizeof(tarn_trainer) + model->tensor_count * sizeof(struct tn_range);
    tarn_trainer *const t = tn_allocate(&host->allocator, bytes);

    if (!t)
        return NULL;
    *t = (tarn_trainer){.host = *host, .tensors = (struct tn_range *)(t + 1)};
    for (size_t i = 0; i < model->tensor_count; i++)
        t->tensors[i] =
            (struct tn_range){model->tensors[i].from,
                              model->tensors[i].rows * tn_max(model->tensors[i].columns, 1)};
    return t;
}

tarn_status tarn_trainer_create(tarn_trainer **trainer, tarn_model *model,
                                const tarn_trainer_desc *desc, tarn_error *err)
{
    struct tn_host host;
    tarn_status status;

    if (!trainer || !model || !desc)
        return tn_fail(err, TARN_EINVAL, "trainer, model and desc must not be NULL");
    *trainer = NULL;
    if ((status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    tarn_trainer *const t = take(model, &host);

    if (!t)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a trainer");
    t->model = model;
    t->skip = desc->skip_nonfinite;
    t->progress.seed = desc->seed;
    if ((status = read_names(t, desc, err)) != TARN_OK ||
        (status = make_run(t, desc, err)) != TARN_OK ||
        (desc->carry && (status = tn_carry_init(&t->carry, t->run, err)) != TARN_OK) ||
        (status = allocate(t, err)) != TARN_OK)
        tarn_trainer_free(t);
    else
        *trainer = t;
    return status;
}

void tarn_trainer_free(tarn_trainer *t)
{
    if (!t)
        return;
    const tarn_allocator allocator = t->host.allocator;

    tn_sequence_score_free(&t->sequences);
    tarn_run_free(t->run);
    tn_release(&allocator, t->memory);
    tn_release(&allocator, t);
}

/* ---- Updates ------------------------------------------------------------ */

static tarn_status check_batches(tarn_trainer *t, const tarn_batch *batches, size_t count,
                                 double *weight, tarn_error *err)
{
    tarn_status status = tn_carry_check(&t->carry, batches, count, err);

    *weight = 0.0;
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        double more = 0.0;

        status = tn_batch_check(t->run, &batches[i], &more, err);
        *weight += more;
    }
    if (status == TARN_OK && !(*weight > 0.0))
        status =
            tn_fail(err, TARN_EINVAL,
                    "weights: nothing to learn: all are 0, or their targets are impossible");
    return status;
}

/* Gradients of the mean loss over all batches; sums of the losses. */
static struct tn_loss sum_gradients(tarn_trainer *t, const tarn_batch *batches, size_t count,
                                    double weight)
{
    struct tn_loss total = {0};

    memset(t->g, 0, t->model->count * sizeof *t->g);
    tn_carry_begin(&t->carry);
    for (size_t i = 0; i < count; i++) {
        struct tn_loss loss;
        struct tn_run_states states;
        tarn_run *const run = tn_batch_run(t->run, &batches[i]);

        if (t->carry.bytes > 0) {
            states = tn_carry_next(&t->carry, batches[i].position);
            run->states = &states;
        }

        run->dropout = t->model->arch.config.dropout;
        run->dropout_seed = tn_dropout_seed(t->progress.seed, t->progress.updates, i);
        tn_batch_loss(run, &loss, &batches[i], (float)(1.0 / weight));
        tn_run_backward(run, &t->gradients, batches[i].inputs);
        run->states = NULL;
        total.loss += loss.loss;
        total.weight += loss.weight;
        total.correct += loss.correct;
    }
    return total;
}

tarn_status tarn_trainer_gradients(tarn_trainer *t, tarn_gradients *gradients,
                                   const tarn_batch *batches, size_t count, tarn_error *err)
{
    double weight;
    tarn_status status;

    if (!t || !gradients || !batches || count == 0)
        return tn_fail(err, TARN_EINVAL,
                       "trainer, gradients and batches must not be NULL, and there must be at "
                       "least 1 batch");
    t->weight = 0.0;
    if ((status = check_batches(t, batches, count, &weight, err)) != TARN_OK)
        return status;
    const size_t lost = tn_matmul_lost();
    const struct tn_loss loss = sum_gradients(t, batches, count, weight);

    if ((status = tn_matmul_check(lost, err)) != TARN_OK)
        return status;
    t->weight = weight;
    *gradients = (tarn_gradients){
        .values = t->g,
        .count = t->model->count,
        .weight = weight,
        .loss = loss.loss / weight,
        .accuracy = loss.correct / weight,
    };
    for (size_t i = 0; i < count; i++)
        gradients->tokens += tn_batch_tokens(t->run, &batches[i]);
    return TARN_OK;
}

static void move(tarn_trainer *t, double rate)
{
    struct tn_optimizer_step step = {
        .rate = rate,
        .t = t->progress.updates - t->progress.skipped,
        .w = t->model->values,
        .g = t->g,
        .tensors = t->tensors,
        .count = t->model->tensor_count,
        .scales = t->scales,
        .host = &t->host,
    };

    memcpy(step.moments, t->moments, sizeof step.moments);
    tn_optimizer_update(&t->optimizer, step);
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
    tn_carry_apply(&t->carry);
    t->progress.position = t->carry.position;
    if (report->skipped)
        t->progress.skipped++;
    else
        move(t, report->lr);
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
    return tn_batch_score(t->run, &t->sequences, score, batch, err);
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
    const size_t looked_up = embedded + arch->config.positions * arch->config.width;

    return 6.0 * (double)(t->model->count - looked_up) * (double)t->run->R +
           (arch->body->flops ? arch->body->flops(t->run) : 0.0);
}
