/* SPDX-License-Identifier: MIT */
/* carry.h - truncated backpropagation through time: B streams that continue from batch to
 * batch, their states included. Gradients end where a batch begins.
 *
 * The batches of an update start from the states that the last applied update left; applying
 * the update makes those that its own batches left the next ones. So gradients that are never
 * applied change nothing. */
#ifndef TN_CARRY_H
#define TN_CARRY_H

#include "model/run.h"
#include "tarn/train.h"

struct tn_carry {
    size_t bytes;      /* of a block of states; 0: batches are not continued */
    size_t part_bytes; /* of the states of a micro-batch; they lie one after the other */
    size_t length;     /* symbols of each stream in a batch */
    uint64_t position; /* symbols that each stream had read at the last applied update */
    char *blocks[3];   /* the states then; and two that batches write alternately */

    /* Of the update under way. */
    uint64_t reached;
    size_t last; /* block that the last batch left */
};

/* For the streams of a run, in each of `parts` micro-batches. Refuses models whose streams have
 * no state of constant size. */
tarn_status tn_carry_init(struct tn_carry *carry, const tarn_run *run, size_t parts,
                          tarn_error *err);

/* The blocks; zeros in the first are streams at their start. */
void tn_carry_lay_out(struct tn_carry *carry, struct tn_arena *arena);

/* Batches start at 0, which begins all streams anew, or where the one before ended. */
tarn_status tn_carry_check(const struct tn_carry *carry, const tarn_batch *batches,
                           size_t count, tarn_error *err);

/* The batches of an update begin, for each micro-batch again; the states of the next batch of
 * it; and the update is applied. */
void tn_carry_begin(struct tn_carry *carry);
struct tn_run_states tn_carry_next(struct tn_carry *carry, uint64_t position, size_t part);
void tn_carry_apply(struct tn_carry *carry);

/* Before an update is applied that is skipped because its loss is not finite: its batches left
 * states that are not finite, either. Streams continue from empty ones. */
void tn_carry_clear(struct tn_carry *carry, const tarn_run *run);

#endif
