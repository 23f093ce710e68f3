/* SPDX-License-Identifier: MIT */
/* batches_public.c - the batches of a task, for training loops of others. */
#include <stdlib.h>

#include "model/model_data.h"
#include "train/loader.h"
#include "train/settings.h"

struct tarn_batches {
    struct tn_loader loader;
    size_t B;
};

static tarn_status open_loader(tarn_batches *batches, tarn_settings *settings,
                               const tarn_batches_desc *desc, tarn_error *err)
{
    const tarn_model *const model = desc->model;
    const struct tn_loader_desc data = {
        .note = model ? model->note : NULL,
        .stack = model ? model->arch.config.stack : desc->stack,
        .threads = desc->threads,
        .skipped = desc->skipped,
        .context = desc->context,
    };
    struct tn_training state = {.settings = *settings};
    tarn_status status;

    state.settings.accumulate = 1; /* one batch at a time */
    if ((status = tn_fields_check(tn_training_fields, &state, err)) != TARN_OK ||
        (status = tn_loader_open(&batches->loader, &state.settings, &data, err)) != TARN_OK)
        return status;
    state.settings.accumulate = settings->accumulate;
    *settings = state.settings;
    batches->B = settings->batch;
    return TARN_OK;
}

tarn_status tarn_batches_open(tarn_batches **batches, tarn_settings *settings,
                              const tarn_batches_desc *desc, tarn_error *err)
{
    if (!batches)
        return tn_fail(err, TARN_EINVAL, "batches must not be NULL");
    *batches = NULL;
    if (!settings || !desc)
        return tn_fail(err, TARN_EINVAL, "settings and desc must not be NULL");
    tarn_batches *const made = calloc(1, sizeof *made);

    if (!made)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for batches");
    const tarn_status status = open_loader(made, settings, desc, err);

    if (status == TARN_OK)
        *batches = made;
    else
        free(made);
    return status;
}

void tarn_batches_free(tarn_batches *batches)
{
    if (batches)
        tn_loader_close(&batches->loader);
    free(batches);
}

static enum tn_split split_of(bool validation)
{
    return validation ? TN_VALIDATION : TN_TRAINING;
}

size_t tarn_batches_count(const tarn_batches *batches, bool validation)
{
    return batches ? tn_task_batches(batches->loader.task, split_of(validation), batches->B)
                   : 0;
}

/* The training part of data that is opened to evaluate is empty. */
static tarn_status check_part(const tarn_batches *batches, bool validation, uint64_t index,
                              tarn_error *err)
{
    const size_t count = tarn_batches_count(batches, validation);
    const bool endless = !batches->loader.task->row->reads_data;

    if (endless || (count > 0 && (!validation || index < count)))
        return TARN_OK;
    if (count == 0)
        return tn_fail(err, TARN_EINVAL, "the data has no %s part",
                       validation ? "validation" : "training");
    return tn_fail(err, TARN_EINVAL, "index is %llu; it must be less than %zu",
                   (unsigned long long)index, count);
}

tarn_status tarn_batches_fill(tarn_batches *batches, tarn_batch *batch, bool validation,
                              uint64_t index, tarn_error *err)
{
    tarn_status status;

    if (!batches || !batch)
        return tn_fail(err, TARN_EINVAL, "batches and batch must not be NULL");
    *batch = (tarn_batch){0};
    if ((status = check_part(batches, validation, index, err)) != TARN_OK ||
        (status = tn_loader_fill(&batches->loader, 0, split_of(validation), index, err)) !=
            TARN_OK)
        return status;
    *batch = batches->loader.views[0];
    return TARN_OK;
}
