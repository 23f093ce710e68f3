/* SPDX-License-Identifier: MIT */
#include "train/shard.h"

#include <string.h>

/* Where the middle of a tensor is decides. */
static size_t owner(const struct tn_range *tensors, size_t count, size_t tensor, size_t size)
{
    const struct tn_range *const last = &tensors[count - 1];
    const double middle = (double)tensors[tensor].from + 0.5 * (double)tensors[tensor].count;
    const size_t rank =
        (size_t)(middle * (double)size / ((double)last->from + (double)last->count));

    return tn_min(rank, size - 1);
}

struct tn_shard tn_shard_of(const struct tn_range *tensors, size_t count, size_t rank,
                            size_t size)
{
    struct tn_shard shard = {0};

    for (size_t i = 0; i < count; i++) {
        if (owner(tensors, count, i, size) != rank)
            continue;
        if (shard.count++ == 0) {
            shard.first = i;
            shard.from = tensors[i].from;
        }
        shard.floats = tensors[i].from + tensors[i].count - shard.from;
    }
    return shard;
}

tarn_status tn_shards_spread(const tarn_comm *comm, float *all, const struct tn_range *tensors,
                             size_t count, tarn_error *err)
{
    const struct tn_shard own = tn_shard_of(tensors, count, comm->rank, comm->size);
    tarn_status status = TARN_OK;

    for (size_t i = 1; i < comm->size && status == TARN_OK; i++) {
        const size_t to = (comm->rank + i) % comm->size;
        const size_t from = (comm->rank + comm->size - i) % comm->size;
        const struct tn_shard other = tn_shard_of(tensors, count, from, comm->size);

        status = tn_comm_receive(comm, all + other.from, other.floats * sizeof *all, from,
                                 TN_TAG_RECORDS, err);
        if (status == TARN_OK)
            status = tn_comm_send(comm, all + own.from, own.floats * sizeof *all, to,
                                  TN_TAG_RECORDS, err);
    }
    return status == TARN_OK ? tn_comm_wait(comm, TN_TAG_RECORDS, TN_SHORT, err) : status;
}

tarn_status tn_shards_collect(const tarn_comm *comm, float *all, const float *own,
                              const struct tn_range *tensors, size_t count, tarn_error *err)
{
    const struct tn_shard mine = tn_shard_of(tensors, count, comm->rank, comm->size);
    tarn_status status = TARN_OK;

    if (comm->rank > 0)
        status = tn_comm_send(comm, own, mine.floats * sizeof *own, 0, TN_TAG_RECORDS, err);
    else
        memcpy(all + mine.from, own, mine.floats * sizeof *own);
    for (size_t i = 1; comm->rank == 0 && i < comm->size && status == TARN_OK; i++) {
        const struct tn_shard other = tn_shard_of(tensors, count, i, comm->size);

        status = tn_comm_receive(comm, all + other.from, other.floats * sizeof *all, i,
                                 TN_TAG_RECORDS, err);
    }
    return status == TARN_OK ? tn_comm_wait(comm, TN_TAG_RECORDS, TN_SHORT, err) : status;
}
