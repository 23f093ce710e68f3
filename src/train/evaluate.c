/* SPDX-License-Identifier: MIT */
/* evaluate.c - a model on the validation part of its data. */
#include <math.h>

#include "train/batch_loss.h"
#include "train/loader.h"
#include "train/settings.h"

enum { ENDLESS = 16 }; /* batches of a validation that has no end */

static size_t batch_count(const struct tn_loader *loader, const tarn_settings *settings)
{
    const size_t all = tn_task_batches(loader->task, TN_VALIDATION, settings->batch);
    const size_t asked = settings->eval_batches;

    if (asked == 0)
        return all ? all : ENDLESS;
    return all ? tn_min(all, asked) : asked;
}

tarn_status tn_validate(const struct tn_loader *loader, tarn_validation *validation,
                        const tarn_settings *settings, tarn_run *longest,
                        const struct tn_sequence_score *sequences, tarn_error *err)
{
    const struct tn_metric *const metric = tn_task_metric(loader->task);
    const size_t batches = batch_count(loader, settings);
    tarn_score score = {0};
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < batches && status == TARN_OK; i++) {
        status = tn_loader_fill(loader, 0, TN_VALIDATION, i, err);
        if (status == TARN_OK)
            status = tn_batch_score(longest, sequences, &score, &loader->views[0], err);
        if (status == TARN_OK && loader->scored)
            loader->scored(loader->context, i + 1, batches);
    }
    validation->loss = score.loss / score.weight;
    validation->metric = metric->value(&score);
    validation->name = metric->name;
    validation->positions = score.weight;
    validation->sums = score;
    return status;
}

/* ---- A model alone ------------------------------------------------------ */

static tarn_status evaluate(tarn_validation *validation, const tarn_model *model,
                            const struct tn_loader *loader, const tarn_settings *settings,
                            const tarn_evaluate_desc *how, const struct tn_host *host,
                            tarn_error *err)
{
    struct tn_run_desc desc = {
        .B = settings->batch, .N = settings->length, .varies = model->arch.config.frames > 0};
    struct tn_sequence_score sequences;
    tarn_run *run;
    tarn_status status = tn_element_named(&desc.elements, how->precision, TN_ELEMENTS, err);

    if (status != TARN_OK)
        return status;
    desc.packed = desc.elements != TN_F32; /* the products of generation */
    status = tn_run_create(&run, model, &desc, host, err);

    if (status != TARN_OK)
        return status;
    if ((status = tn_sequence_score_create(&sequences, run, how->beam, err)) == TARN_OK)
        status = tn_validate(loader, validation, settings, run, &sequences, err);
    tn_sequence_score_free(&sequences);
    tarn_run_free(run);
    return status;
}

static tarn_status check_beam(const tarn_task *task, const tarn_evaluate_desc *desc,
                              tarn_error *err)
{
    if (desc->beam == 0 || task->row->sequences)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "beam is %zu; it must be 0, because task '%s' has no sequences to decode",
                   desc->beam, task->spec);
}

tarn_status tarn_evaluate(tarn_validation *validation, const tarn_model *model,
                          const tarn_settings *settings, const tarn_evaluate_desc *desc,
                          tarn_error *err)
{
    struct tn_loader loader;
    struct tn_host host;
    tarn_status status;

    if (!validation || !model || !settings || !desc)
        return tn_fail(err, TARN_EINVAL,
                       "validation, model, settings and desc must not be NULL");
    *validation = (tarn_validation){0};
    if ((status = tn_host_init(&host, &desc->host, err)) != TARN_OK)
        return status;
    const struct tn_loader_desc data = {.note = model->note,
                                        .stack = model->arch.config.stack,
                                        .threads = host.threads,
                                        .skipped = desc->skipped,
                                        .scored = desc->scored,
                                        .context = desc->context};
    struct tn_training state = {.settings = *settings};

    state.settings.accumulate = 1; /* one batch at a time is enough here */
    state.settings.carry = false;  /* only training continues from batch to batch */
    if ((status = tn_fields_check(tn_training_fields, &state, err)) != TARN_OK ||
        (status = tn_loader_open(&loader, &state.settings, &data, err)) != TARN_OK)
        return status;
    if ((status = tn_task_fits(loader.task, &model->arch.config, err)) == TARN_OK &&
        (status = check_beam(loader.task, desc, err)) == TARN_OK)
        status = evaluate(validation, model, &loader, &state.settings, desc, &host, err);
    if (status == TARN_OK && !isfinite(validation->loss))
        status = tn_fail(err, TARN_ENUMBER,
                         "the loss is %g: the outputs of the model are not finite, because its "
                         "weights are too large",
                         validation->loss);
    tn_loader_close(&loader);
    return status;
}
