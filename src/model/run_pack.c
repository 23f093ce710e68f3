/* SPDX-License-Identifier: MIT */
/* run_pack.c - packed weights, once in a process for all runs that can share them. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "model/body.h"

struct tn_packed_weights {
    struct tn_weights weights; /* matrices in this memory, all else the model's */
    size_t bytes;

    /* Whose they are, and how packed. */
    const tarn_model *model;
    const struct tn_kernels *kernels;
    enum tn_element elements;

    size_t users; /* runs */
    struct tn_packed_weights *next;
    void *memory; /* as allocated */
};

static struct tn_packed_weights *all; /* of the process */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Twice: see tn_arena. */
static struct tn_packed_weights *lay_out(const tarn_run *run, struct tn_arena *arena)
{
    const tarn_model *const model = run->model;
    struct tn_packed_weights *const packed = tn_arena_alloc(arena, 1, sizeof *packed);
    struct tn_weights weights = model->weights;

    weights.blocks = tn_arena_alloc(arena, model->arch.config.layers, sizeof *weights.blocks);
    weights.predictor = tn_dense_pack(&run->predictor, weights.predictor, arena);
    if (weights.frames)
        weights.frames = tn_dense_pack(&run->projection, weights.frames, arena);
    model->arch.body->pack(run, weights.blocks, arena);
    if (packed)
        *packed = (struct tn_packed_weights){
            .weights = weights,
            .model = model,
            .kernels = run->host.kernels,
            .elements = run->predictor.desc.elements,
        };
    return packed;
}

static struct tn_packed_weights *find(const tarn_run *run)
{
    struct tn_packed_weights *packed = all;

    while (packed && (packed->model != run->model || packed->kernels != run->host.kernels ||
                      packed->elements != run->predictor.desc.elements))
        packed = packed->next;
    return packed;
}

static struct tn_packed_weights *make(const tarn_run *run)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(run, &arena);
    const size_t bytes = tn_arena_bytes(&arena);
    void *const memory = tn_allocate(&run->model->allocator, bytes);

    if (!memory)
        return NULL;
    arena = tn_arena_over(memory);
    struct tn_packed_weights *const packed = lay_out(run, &arena);

    packed->bytes = bytes;
    packed->memory = memory;
    packed->next = all;
    all = packed;
    return packed;
}

tarn_status tn_run_pack(tarn_run *run, tarn_error *err)
{
    pthread_mutex_lock(&lock);
    struct tn_packed_weights *const found = find(run), *const packed =
                                                           found ? found : make(run);

    if (packed)
        packed->users++;
    pthread_mutex_unlock(&lock);
    if (!packed)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a copy of the weights");
    run->packed = packed;
    run->weights = &packed->weights;
    return TARN_OK;
}

void tn_run_unpack(tarn_run *run)
{
    struct tn_packed_weights *const packed = run->packed, **at = &all;

    if (!packed)
        return;
    pthread_mutex_lock(&lock);
    while (*at != packed)
        at = &(*at)->next;
    if (--packed->users == 0) {
        *at = packed->next;
        tn_release(&packed->model->allocator, packed->memory);
    }
    pthread_mutex_unlock(&lock);
}

size_t tn_run_packed_bytes(const tarn_run *run)
{
    return run->packed->bytes;
}
