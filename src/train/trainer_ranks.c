/* SPDX-License-Identifier: MIT */
/* trainer_ranks.c - updates of several processes. With its gradients each sends one record: how
 * it fared, what it read, whether it was asked to stop, and the losses of its micro-batches. So
 * all apply the same update, or stop with the same sentence. */
#include <inttypes.h>
#include <stdlib.h>

#include "comm/fingerprint.h"
#include "train/peers.h"

struct header {
    struct tn_outcome outcome; /* first: tn_outcomes_agree() */
    int32_t wants_stop;
    uint64_t data; /* hash of all batches of the update */
};

/* ---- Records ------------------------------------------------------------ */

static size_t record_size(const tarn_trainer *t)
{
    return sizeof(struct header) + t->own * sizeof(struct tn_loss);
}

static struct header *header_of(const tarn_trainer *t, size_t rank)
{
    return (struct header *)(void *)(t->records + rank * record_size(t));
}

static struct tn_loss *losses_of(const tarn_trainer *t, size_t rank)
{
    return (struct tn_loss *)(void *)(header_of(t, rank) + 1);
}

size_t tn_trainer_records_size(const tarn_trainer *t)
{
    return tn_comm_size(t->comm) * record_size(t);
}

struct tn_loss *tn_trainer_losses(const tarn_trainer *t)
{
    return losses_of(t, tn_comm_rank(t->comm));
}

/* ---- Data --------------------------------------------------------------- */

static uint64_t hash_array(uint64_t hash, const void *array, size_t bytes)
{
    return array ? tn_hash(hash, array, bytes) : tn_random_mix(hash);
}

/* Of one micro-batch. */
static uint64_t hash_batch(uint64_t hash, const tarn_trainer *t, const tarn_batch *batch)
{
    const tarn_run *const run = tn_batch_run(t->run, batch);
    const bool sequences = t->model->arch.head.row->sequence;
    const size_t B = run->B, length = batch->length ? batch->length : t->run->T;
    size_t targets = sequences ? 0 : run->R;

    for (size_t b = 0; sequences && batch->counts && b < B; b++)
        targets += batch->counts[b];
    hash = hash_array(hash, batch->inputs, run->B * run->T * sizeof *batch->inputs);
    hash = hash_array(hash, batch->frames,
                      B * length * t->model->arch.config.frames * sizeof *batch->frames);
    hash = hash_array(hash, batch->targets, targets * sizeof *batch->targets);
    hash = hash_array(hash, batch->weights, (sequences ? B : run->R) * sizeof *batch->weights);
    hash = hash_array(hash, batch->lengths, B * sizeof *batch->lengths);
    return hash_array(hash, batch->counts, B * sizeof *batch->counts);
}

static uint64_t hash_batches(const tarn_trainer *t, const tarn_batch *batches, size_t count)
{
    uint64_t hash = count;

    for (size_t i = 0; i < count * t->micro_batches; i++) {
        const tarn_batch part =
            tn_batch_part(t->run, &batches[i / t->micro_batches], i % t->micro_batches);

        hash = hash_batch(hash + part.position, t, &part);
    }
    return hash;
}

static tarn_status compare_data(const tarn_trainer *t, tarn_error *err)
{
    for (size_t i = 1; i < tn_comm_size(t->comm); i++)
        if (header_of(t, i)->data != header_of(t, 0)->data)
            return tn_fail(err, TARN_EINVAL,
                           "rank %zu read other data than rank 0 for update %" PRIu64
                           "; all must have the same files",
                           i, t->progress.updates + 1);
    return TARN_OK;
}

/* ---- An update ---------------------------------------------------------- */

/* Of micro-batches lo .. hi-1, in the order of their gradients. */
static struct tn_loss sum_losses(const tarn_trainer *t, size_t lo, size_t hi)
{
    if (hi - lo == 1)
        return losses_of(t, lo / t->own * tn_slices_sharing(t->run))[lo % t->own];
    const struct tn_loss left = sum_losses(t, lo, lo + (hi - lo) / 2);

    return tn_loss_add(left, sum_losses(t, lo + (hi - lo) / 2, hi));
}

static tarn_status agree(tarn_trainer *t, tarn_error *err)
{
    const tarn_status status = tn_outcomes_agree(t->comm, t->records, record_size(t), err);

    t->stops = false;
    for (size_t i = 0; i < tn_comm_size(t->comm); i++)
        t->stops |= header_of(t, i)->wants_stop != 0;
    return status == TARN_OK ? compare_data(t, err) : status;
}

tarn_status tn_trainer_exchange(tarn_trainer *t, struct tn_loss *total,
                                const tarn_batch *batches, size_t count, tarn_status status,
                                tarn_error *err)
{
    if (tn_comm_size(t->comm) > 1) {
        struct header *const own = header_of(t, t->comm->rank);

        tn_outcome_of(&own->outcome, status, err);
        own->wants_stop = t->wants_stop;
        own->data = status == TARN_OK ? hash_batches(t, batches, count) : 0;
        status = tn_comm_gather_start(t->comm, t->records, record_size(t), err);
        if (status == TARN_OK)
            status = tn_gradient_sums_finish(&t->sums, err);
        if (status == TARN_OK)
            status = tn_comm_wait(t->comm, TN_TAG_RECORDS, TN_SHORT, err);
        if (status == TARN_OK)
            status = agree(t, err);
    }
    if (status == TARN_OK)
        *total = sum_losses(t, 0, t->micro_batches);
    return status;
}

tarn_status tn_trainer_compare(tarn_trainer *t, tarn_error *err)
{
    const tarn_status status =
        t->compared || tn_comm_size(t->comm) == 1 ? TARN_OK : tn_peers_compare_trainers(t, err);

    t->compared |= status == TARN_OK;
    return status;
}

tarn_status tn_trainer_agree(const tarn_trainer *t, tarn_status status, tarn_error *err)
{
    return tn_slices_sharing(t->run) > 1 ? tn_comm_agree(t->comm, status, TN_SHORT, err)
                                         : status;
}

tarn_status tn_trainer_fail(tarn_trainer *t, tarn_status status, tarn_error *err)
{
    struct tn_loss total;
    tarn_error differs;
    const tarn_status compared = tn_trainer_compare(t, &differs);

    if (compared != TARN_OK)
        return tn_fail(err, compared, "%s", differs.text);
    if (tn_comm_size(t->comm) == 1 || tn_slices_sharing(t->run) > 1)
        return tn_trainer_agree(t, status, err);
    tn_gradient_sums_begin(&t->sums);
    return tn_trainer_exchange(t, &total, NULL, 0, status, err);
}

/* ---- Checkpoints -------------------------------------------------------- */

static tarn_status collect_moments(const tarn_trainer *t, float *all, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < tn_optimizer_moments(&t->optimizer) && status == TARN_OK; i++)
        status = tn_shards_collect(t->comm, all ? all + i * t->model->count : NULL,
                                   t->moments[i], t->tensors, t->model->tensor_count, err);
    return status;
}

tarn_status tn_trainer_collect(tarn_trainer *t, float **moments, tarn_error *err)
{
    const size_t floats = tn_optimizer_moments(&t->optimizer) * t->model->count;
    const bool gets = t->shards && t->comm->rank == 0 && floats > 0;
    tarn_status status = TARN_OK;

    *moments = gets ? calloc(floats, sizeof **moments) : NULL;
    if (gets && !*moments)
        status = tn_fail(err, TARN_ENOMEM, "not enough memory to write a checkpoint");
    if ((status = tn_comm_agree(t->comm, status, TN_SHORT, err)) == TARN_OK && t->shards)
        status = collect_moments(t, *moments, err);
    if (status == TARN_OK && t->carry.bytes > 0)
        status = tn_comm_gather(t->comm, t->carry.blocks[0], t->own * t->carry.part_bytes,
                                TN_SHORT, err);
    return status;
}
