/* SPDX-License-Identifier: MIT */
/* batches.h - batches in memory of their own, filled with what no set writes. */
#ifndef BATCHES_H
#define BATCHES_H

#include "data/batch.h"
#include "support/testing.h"
#include "task/task.h"

struct owned_batch {
    struct tn_batch batch;
    void *memory;
    size_t bytes;
};

struct owned_batch batch_open(size_t B, size_t N);
struct owned_batch batch_of_task(const tarn_task *task, size_t B);
void batch_close(struct owned_batch *owned);

void batch_spoil(struct owned_batch *owned);
bool batch_equal(const struct tn_batch *a, const struct tn_batch *b);

/* By the task, which must not fail. */
void batch_fill(const tarn_task *task, struct tn_batch *batch, enum tn_split split,
                uint64_t index);

/* Symbols within 0 .. symbols - 1, weights 0 or 1, frames finite, labels no blanks. Returns the
 * sum of the weights. */
size_t batch_check(const struct tn_batch *batch, size_t symbols);

#endif
