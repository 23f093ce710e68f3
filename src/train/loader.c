/* SPDX-License-Identifier: MIT */
#include "train/loader.h"

#include <stdlib.h>
#include <string.h>

static void lay_out(struct tn_loader *loader, const tarn_settings *settings,
                    struct tn_arena *arena)
{
    loader->batches = tn_arena_alloc(arena, settings->accumulate, sizeof *loader->batches);
    loader->views = tn_arena_alloc(arena, settings->accumulate, sizeof *loader->views);
    for (size_t i = 0; i < settings->accumulate; i++) {
        struct tn_batch batch;

        tn_task_lay_out(loader->task, &batch, settings->batch, arena);
        if (loader->batches)
            loader->batches[i] = batch;
    }
}

static void tell_lost(const struct tn_loader *loader, const struct tn_batch *batch,
                      enum tn_split split)
{
    tarn_skipped lost;

    for (size_t b = 0; b < batch->B && loader->desc.skipped; b++)
        if (tn_task_lost(loader->task, batch, split, b, &lost))
            loader->desc.skipped(loader->desc.context, &lost);
}

tarn_status tn_loader_fill(const struct tn_loader *loader, size_t i, enum tn_split split,
                           uint64_t index, tarn_error *err)
{
    struct tn_batch *const batch = &loader->batches[i];
    const tarn_status status = tn_task_fill(loader->task, batch, split, index, err);

    if (status == TARN_OK)
        tell_lost(loader, batch, split);
    loader->views[i] = (tarn_batch){
        .inputs = batch->inputs,
        .targets = batch->targets,
        .weights = batch->weights,
        .frames = batch->frames,
        .lengths = batch->lengths,
        .counts = batch->counts,
        .length = batch->length,
        .position = batch->position,
    };
    return status;
}

static tarn_status open_task(struct tn_loader *loader, tarn_settings *settings, tarn_error *err)
{
    const struct tn_task_desc desc = {
        .data = *settings->data ? settings->data : NULL,
        .length = settings->length,
        .seed = settings->seed,
        .validation = settings->validation,
        .note = loader->desc.note,
        .stack = loader->desc.stack,
        .cache = *settings->cache ? settings->cache : NULL,
        .strict = settings->strict,
        .carry = settings->carry,
        .batch = settings->batch,
        .threads = loader->desc.threads,
    };
    const tarn_status status = tn_task_create(&loader->task, settings->task, &desc, err);

    if (status != TARN_OK)
        return status;
    memcpy(settings->task, loader->task->spec, sizeof settings->task);
    settings->length = loader->task->N;
    return TARN_OK;
}

static tarn_status make_batches(struct tn_loader *loader, const tarn_settings *settings,
                                tarn_error *err)
{
    struct tn_arena measure = tn_arena_over(NULL);
    size_t floats;

    if (!tn_size_product(
            &floats, (size_t[]){settings->batch, settings->length, settings->accumulate, 64},
            4))
        return tn_fail(err, TARN_EINVAL,
                       "batch, length and accumulate do not fit in memory; reduce one of them");
    lay_out(loader, settings, &measure);
    loader->memory = malloc(tn_arena_bytes(&measure));
    if (!loader->memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu batches of %zu",
                       settings->accumulate, settings->batch);
    struct tn_arena arena = tn_arena_over(loader->memory);

    lay_out(loader, settings, &arena);
    return TARN_OK;
}

static void tell_skipped(const struct tn_loader *loader)
{
    tarn_skipped skipped;

    for (size_t i = 0; loader->desc.skipped && tn_task_skipped(loader->task, i, &skipped); i++)
        loader->desc.skipped(loader->desc.context, &skipped);
}

tarn_status tn_loader_open(struct tn_loader *loader, tarn_settings *settings,
                           const struct tn_loader_desc *desc, tarn_error *err)
{
    tarn_status status;

    *loader = (struct tn_loader){.desc = *desc};
    if ((status = open_task(loader, settings, err)) == TARN_OK)
        tell_skipped(loader);
    if (status != TARN_OK || (status = make_batches(loader, settings, err)) != TARN_OK)
        tn_loader_close(loader);
    return status;
}

void tn_loader_close(struct tn_loader *loader)
{
    tarn_task_free(loader->task);
    free(loader->memory);
    *loader = (struct tn_loader){0};
}
