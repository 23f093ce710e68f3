/* SPDX-License-Identifier: MIT */
/* trainer_create.c - a trainer from its desc: what it shares with other processes, its run, and
 * its memory, allocated once. */
#include <stdio.h>
#include <string.h>

#include "comm/fingerprint.h"
#include "train/trainer.h"

/* ---- Memory ------------------------------------------------------------- */

static void lay_out(tarn_trainer *t, struct tn_arena *arena)
{
    const tarn_model *const model = t->model;
    const size_t tensors = model->tensor_count;

    t->scales = tn_arena_floats(arena, tensors);
    t->scratch = tn_arena_alloc(arena, tn_pieces_count(t->tensors, tensors), sizeof(double));
    tn_gradient_sums_lay_out(&t->sums, &model->arch, arena);
    if (t->run->slice)
        tn_gradient_sums_lay_out(&t->slices, &model->arch, arena);
    t->g = t->sums.branches.sums[0];
    t->records = tn_arena_alloc(arena, tn_trainer_records_size(t), 1);
    for (size_t i = 0; i < tn_optimizer_moments(&t->optimizer); i++)
        t->moments[i] = tn_arena_floats(arena, t->shard.floats);
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
        memset(t->moments[i], 0, t->shard.floats * sizeof(float));
    memset(t->records, 0, tn_trainer_records_size(t));
    memset(t->carry.blocks[0], 0, t->carry.bytes);
    return TARN_OK;
}

/* ---- Life --------------------------------------------------------------- */

/* All that changes what is learnt. */
static uint64_t hash_desc(const tarn_trainer_desc *desc)
{
    const char *const texts[] = {desc->optimizer, desc->schedule, desc->clip, desc->precision};
    const uint64_t words[] = {
        desc->batch,
        desc->length,
        desc->steps,
        desc->varies,
        desc->skip_nonfinite,
        desc->carry,
        desc->seed,
        desc->micro_batches,
        desc->bf16_gradients,
        desc->shard_optimizer,
        desc->recompute,
        desc->sequence_chunks,
        desc->sequence_parallel,
    };
    uint64_t hash = tn_hash(0, words, sizeof words);

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hash = tn_hash_text(hash, texts[i]);
    return tn_hash(hash, &desc->lr, sizeof desc->lr);
}

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

static bool is_shared(const tarn_trainer_desc *desc)
{
    return desc->sequence_parallel > 1;
}

static tarn_status make_run(tarn_trainer *t, const tarn_trainer_desc *desc, tarn_error *err)
{
    struct tn_run_desc run = {
        .B = desc->batch / t->micro_batches,
        .N = desc->length,
        .trains = true,
        .recompute = desc->recompute,
        .varies = desc->varies,
        .slices = desc->sequence_chunks ? desc->sequence_chunks
                  : is_shared(desc)     ? desc->sequence_parallel
                                        : 0,
        .comm = is_shared(desc) ? &t->sequence.comm : NULL,
    };
    tarn_status status = tn_element_named(&run.elements, desc->precision, TN_INT8, err);

    if (status == TARN_OK && run.slices > 0 && desc->carry)
        status = tn_fail(err, TARN_EINVAL, "carry and sequence_chunks cannot be combined");
    if (status != TARN_OK ||
        (status = tn_run_create(&t->run, t->model, &run, &t->host, err)) != TARN_OK)
        return status;
    if (t->run->slice)
        tn_gradient_sums_init(&t->slices, t->run->slice->slices->own, t->model->count,
                              desc->bf16_gradients, t->run->slice->slices->comm, &t->host);
    return tn_sequence_score_create(&t->sequences, t->run, 0, err);
}

/* Moments are spread by tensors: an optimizer may need whole ones. */
static void plan_shard(tarn_trainer *t, bool shards)
{
    const size_t tensors = t->model->tensor_count, size = tn_comm_size(t->comm);

    t->shards = shards && size > 1;
    t->shard = t->shards ? tn_shard_of(t->tensors, tensors, t->comm->rank, size)
                         : (struct tn_shard){.count = tensors, .floats = t->model->count};
    for (size_t i = 0; i < t->shard.count; i++) {
        t->owned[i] = t->tensors[t->shard.first + i];
        t->owned[i].from -= t->shard.from;
    }
}

/* Neighbours share sequences. */
static tarn_status split_processes(tarn_trainer *t, const tarn_trainer_desc *desc,
                                   tarn_error *err)
{
    const size_t size = tn_comm_size(desc->comm), rank = tn_comm_rank(desc->comm);
    const size_t sharing = desc->sequence_parallel;

    t->comm = desc->comm;
    if (!is_shared(desc))
        return TARN_OK;
    if (!tn_is_power_of_two(sharing) || size % sharing != 0)
        return tn_fail(err, TARN_EINVAL,
                       "sequence_parallel is %zu; it must be a power of two that divides the "
                       "number of ranks, which is %zu",
                       sharing, size);
    tn_comm_part_open(&t->sequence, desc->comm, rank / sharing * sharing, 1, sharing);
    tn_comm_part_open(&t->data, desc->comm, rank % sharing, sharing, size / sharing);
    return tn_comm_check(desc->comm, err);
}

static tarn_status check_micro_batches(size_t count, size_t batch, size_t size, tarn_error *err)
{
    if (!tn_is_power_of_two(count) || count >= (size_t)1 << TN_TREE_DEPTH)
        return tn_fail(err, TARN_EINVAL, "micro_batches is %zu; it must be a power of two",
                       count);
    if (batch % count != 0)
        return tn_fail(err, TARN_EINVAL,
                       "micro_batches is %zu; it must divide batch, which is %zu", count,
                       batch);
    if (count % size != 0)
        return tn_fail(err, TARN_EINVAL,
                       "%zu ranks cannot share %zu micro-batches evenly; run a number of ranks "
                       "that divides micro_batches, or set that to a power of two that divides "
                       "batch and is a multiple of the ranks",
                       size, count);
    return TARN_OK;
}

static tarn_status plan_gradients(tarn_trainer *t, const tarn_trainer_desc *desc,
                                  tarn_error *err)
{
    const tarn_comm *const comm = is_shared(desc) ? &t->data.comm : desc->comm;
    tarn_status status = split_processes(t, desc, err);

    if (status != TARN_OK)
        return status;
    plan_shard(t, desc->shard_optimizer);
    t->micro_batches = desc->micro_batches ? desc->micro_batches : 1;
    if ((status = check_micro_batches(t->micro_batches, desc->batch, tn_comm_size(comm),
                                      err)) != TARN_OK)
        return status;
    t->own = t->micro_batches / tn_comm_size(comm);
    t->first = t->own * tn_comm_rank(comm);
    tn_gradient_sums_init(&t->sums, t->own, t->model->count, desc->bf16_gradients, comm,
                          &t->host);
    return tn_comm_check(comm, err);
}

/* The trainer, and the ranges that its plan is measured with. */
static tarn_trainer *take(const tarn_model *model, const struct tn_host *host)
{
    const size_t bytes =
        sizeof(tarn_trainer) + 2 * model->tensor_count * sizeof(struct tn_range);
    tarn_trainer *const t = tn_allocate(&host->allocator, bytes);

    if (!t)
        return NULL;
    *t = (tarn_trainer){.host = *host, .tensors = (struct tn_range *)(t + 1)};
    for (size_t i = 0; i < model->tensor_count; i++)
        t->tensors[i] =
            (struct tn_range){model->tensors[i].from,
                              model->tensors[i].rows * tn_max(model->tensors[i].columns, 1)};
    t->owned = t->tensors + model->tensor_count;
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
    t->described = hash_desc(desc);
    t->progress.seed = desc->seed;
    if ((status = read_names(t, desc, err)) != TARN_OK ||
        (status = plan_gradients(t, desc, err)) != TARN_OK ||
        (status = make_run(t, desc, err)) != TARN_OK ||
        (desc->carry &&
         (status = tn_carry_init(&t->carry, t->run, t->micro_batches, err)) != TARN_OK) ||
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
