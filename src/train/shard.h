/* SPDX-License-Identifier: MIT */
/* shard.h - optimizer state spread over processes: each keeps the moments of some tensors,
 * moves these, and sends their weights to all. */
#ifndef TN_SHARD_H
#define TN_SHARD_H

#include "comm/transfer.h"
#include "train/pieces.h"

/* Tensors of one process, and the floats from its first to its last. */
struct tn_shard {
    size_t first, count;
    size_t from, floats;
};

/* Of process `rank` among `size`. Shards follow one another and differ in floats by at most the
 * largest tensor. */
struct tn_shard tn_shard_of(const struct tn_range *tensors, size_t count, size_t rank,
                            size_t size);

/* An array in one layout, of which each process has its own shard: to all, or to process 0
 * only, whose `all` it becomes. `own` is where this process has its shard. */
tarn_status tn_shards_spread(const tarn_comm *comm, float *all, const struct tn_range *tensors,
                             size_t count, tarn_error *err);
tarn_status tn_shards_collect(const tarn_comm *comm, float *all, const float *own,
                              const struct tn_range *tensors, size_t count, tarn_error *err);

#endif
