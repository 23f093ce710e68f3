/* SPDX-License-Identifier: MIT */
/* model.c - a model's life, its first weights, and what is asked of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model_data.h"

/* ---- Memory ------------------------------------------------------------- */

static void name_tensor(void *arg, const struct tn_tensor *tensor)
{
    tarn_model *const model = arg;
    struct tn_named_tensor *const named = &model->tensors[model->tensor_count++];

    snprintf(named->name, sizeof named->name, "%s", tensor->name);
    named->rows = tensor->rows;
    named->columns = tensor->columns;
    named->from = (size_t)(*tensor->at - model->values);
}

/* The model, its list, its pointers and its floats are one block. */
static tarn_model *lay_out(const struct tn_arch *arch, size_t floats, size_t tensors,
                           struct tn_arena *arena)
{
    tarn_model *const model = tn_arena_alloc(arena, 1, sizeof *model);
    struct tn_block_weights *const blocks =
        tn_arena_alloc(arena, arch->config.layers, sizeof *blocks);
    struct tn_named_tensor *const list = tn_arena_alloc(arena, tensors, sizeof *list);
    float *const values = tn_arena_floats(arena, floats);

    if (model)
        *model = (tarn_model){.arch = *arch,
                              .weights = {.blocks = blocks},
                              .values = values,
                              .count = floats,
                              .tensors = list};
    return model;
}

tarn_status tn_model_allocate(tarn_model **model, const tarn_config *config,
                              const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_arch arch;
    struct tn_arena measure = tn_arena_over(NULL);
    size_t tensors;
    tarn_status status;

    *model = NULL;
    if ((status = tn_allocator_check(allocator, err)) != TARN_OK ||
        (status = tn_arch_init(&arch, config, err)) != TARN_OK)
        return status;
    const size_t floats = tn_weights_count(&arch, &tensors);

    lay_out(&arch, floats, tensors, &measure);
    const size_t bytes = tn_arena_bytes(&measure);
    void *const memory = floats < SIZE_MAX ? tn_allocate(allocator, bytes) : NULL;

    if (!memory)
        return tn_fail(err, TARN_ENOMEM,
                       "not enough memory for a model of %zu layers and width %zu",
                       config->layers, config->width);
    struct tn_arena arena = tn_arena_over(memory);

    *model = lay_out(&arch, floats, tensors, &arena);
    (*model)->memory = memory;
    if (allocator)
        (*model)->allocator = *allocator;
    tn_weights_carve(&(*model)->weights, &arch, (*model)->values);
    tn_weights_visit(&(*model)->weights, &arch, name_tensor, *model);
    return TARN_OK;
}

void tarn_model_free(tarn_model *model)
{
    if (!model)
        return;
    const tarn_allocator allocator = model->allocator;

    tn_release(&allocator, model->note);
    tn_release(&allocator, model->memory);
}

tarn_status tn_model_note(tarn_model *model, const char *note, tarn_error *err)
{
    const size_t size = note ? strlen(note) + 1 : 0;
    if (size > TN_NOTE_MOST)
        return tn_fail(err, TARN_EINVAL, "note has %zu bytes; it must have at most %d",
                       size - 1, TN_NOTE_MOST - 1);
    char *const copy = note ? tn_allocate(&model->allocator, size) : NULL;

    if (note && !copy)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a note of %zu bytes", size);
    if (copy)
        memcpy(copy, note, size);
    tn_release(&model->allocator, model->note);
    model->note = copy;
    return TARN_OK;
}

/* ---- First weights ------------------------------------------------------ */

static float first_value(const struct tn_tensor *tensor, struct tn_random *random)
{
    switch (tensor->start) {
    case TN_START_UNIFORM: /* as PyTorch's linear layer */
        return (float)((2.0 * tn_random_uniform(random) - 1.0) / sqrt(tensor->by));
    case TN_START_NORMAL:
        return (float)tn_random_normal(random);
    case TN_START_VALUE:
        break;
    }
    return (float)tensor->by;
}

static void start(void *arg, const struct tn_tensor *tensor)
{
    const size_t count = tn_tensor_count(tensor);

    for (size_t i = 0; i < count; i++)
        (*tensor->at)[i] = first_value(tensor, arg);
}

tarn_status tarn_model_create(tarn_model **model, const tarn_config *config,
                              const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_random random;

    if (!model || !config)
        return tn_fail(err, TARN_EINVAL, "model and config must not be NULL");
    const tarn_status status = tn_model_allocate(model, config, allocator, err);

    if (status != TARN_OK)
        return status;
    tn_random_seed(&random, config->seed);
    tn_weights_visit(&(*model)->weights, &(*model)->arch, start, &random);
    return TARN_OK;
}

/* ---- Questions ---------------------------------------------------------- */

const tarn_config *tarn_model_config(const tarn_model *model)
{
    return &model->arch.config;
}

size_t tarn_model_parameters(const tarn_model *model)
{
    return model->count;
}

size_t tarn_model_outputs(const tarn_model *model)
{
    return model->arch.head.outputs;
}

bool tarn_model_tensor(const tarn_model *model, size_t index, tarn_tensor *tensor)
{
    if (index >= model->tensor_count)
        return false;
    const struct tn_named_tensor *const named = &model->tensors[index];

    *tensor =
        (tarn_tensor){named->name, named->rows, named->columns, model->values + named->from};
    return true;
}

/* Four hashes side by side, so that a hundred million weights take a moment. */
static uint64_t hash_bytes(uint64_t seed, const void *data, size_t bytes)
{
    const uint64_t prime = 0x9e3779b97f4a7c15;
    uint64_t part[4] = {seed, seed ^ 1, seed ^ 2, seed ^ 3}, hash = bytes;

    for (size_t at = 0, i = 0; at < bytes; at += 8, i++) {
        uint64_t word = 0;

        memcpy(&word, (const char *)data + at, tn_min(8, bytes - at));
        part[i % 4] = (part[i % 4] ^ word) * prime;
        part[i % 4] ^= part[i % 4] >> 29;
    }
    for (size_t i = 0; i < 4; i++) {
        hash = (hash ^ part[i]) * prime;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Counts have 64 bits here even where size_t has 32: states move between machines. */
static uint64_t hash_field(uint64_t hash, const struct tn_field *field,
                           const tarn_config *config)
{
    const char *const at = (const char *)config + field->offset;
    size_t count = 0;

    if (field->type != TN_FIELD_COUNT)
        return hash_bytes(hash, at, tn_field_bytes(field));
    memcpy(&count, at, sizeof count);
    return hash_bytes(hash, &(uint64_t){count}, sizeof(uint64_t));
}

uint64_t tarn_model_fingerprint(const tarn_model *model)
{
    uint64_t hash = 0;

    for (const struct tn_field *field = tn_config_fields; field->about.name; field++)
        hash = hash_field(hash, field, &model->arch.config);
    return hash_bytes(hash, model->values, model->count * sizeof(float));
}
