/* SPDX-License-Identifier: MIT */
/* batch.h - what a model reads at once, and the random numbers of which it is made.
 *
 * A set keeps no position. Batch number `index` of a split is a function of the set, its seed,
 * the split and the index alone, so that to resume is to remember an index, and any batch can
 * be made again, by any thread, in any order. */
#ifndef TN_BATCH_H
#define TN_BATCH_H

#include "base/base.h"

enum tn_split { TN_TRAINING, TN_VALIDATION };

/* Of symbols, each array is B x N: position n of a sequence reads inputs[n] and is to predict
 * targets[n]. Of frames, each sequence has lengths[b] of them and counts[b] targets, which lie
 * one after the other. */
struct tn_batch {
    size_t B, N; /* N: of any batch, at most */
    int32_t *inputs, *targets;
    float
        *weights; /* how much a position, or a sequence of frames, counts in the loss: 0 or 1 */

    /* NULL and 0 where inputs are symbols. */
    float *frames;            /* B x length x floats of a frame */
    size_t length;            /* of this batch */
    size_t *lengths, *counts; /* B */
    void *own;                /* the set's */

    uint64_t
        position; /* of the first symbols, in streams that go from batch to batch; else 0 */
};

/* Refuses fractions of `what` that are not above 0 and up to 1. */
tarn_status tn_validation_check(double validation, const char *what, tarn_error *err);

/* Lays one of symbols out, twice: see tn_arena. */
void tn_batch_lay_out(struct tn_batch *batch, size_t B, size_t N, struct tn_arena *arena);

/* Sequence b: zeros that count for nothing. */
void tn_batch_clear(struct tn_batch *batch, size_t b);

/* The random numbers of sequence b of a batch, unrelated to those of any other. */
void tn_batch_random(struct tn_random *random, uint64_t seed, enum tn_split split,
                     uint64_t index, size_t b);

/* Uniform in 0 .. n-1, for n up to 2^53. */
static inline size_t tn_random_below(struct tn_random *random, size_t n)
{
    return (size_t)(tn_random_uniform(random) * (double)n);
}

/* Where a permutation of 0 .. n-1 that `key` names puts i < n. */
size_t tn_shuffle(uint64_t key, size_t n, size_t i);

#endif
