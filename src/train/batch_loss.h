/* SPDX-License-Identifier: MIT */
/* batch_loss.h - the loss of a model on a caller's batch, which is checked first. `longest` is
 * a run with all its shorter ones. */
#ifndef TN_BATCH_LOSS_H
#define TN_BATCH_LOSS_H

#include "model/slices.h"
#include "train/sequence_score.h"

/* Refuses what the model cannot read. *weight, unless NULL: of the positions or sequences that
 * something can be learnt from. */
tarn_status tn_batch_check(tarn_run *longest, const tarn_batch *batch, double *weight,
                           tarn_error *err);

/* Sequences of micro-batch `part` of a batch: as many as the run has, from part * B on. A
 * view. */
tarn_batch tn_batch_part(tarn_run *longest, const tarn_batch *batch, size_t part);

/* The run for its length. */
tarn_run *tn_batch_run(tarn_run *longest, const tarn_batch *batch);

/* Forward and loss of a batch that was checked, by the run for its length. With a scale, ready
 * for tn_run_backward(). */
void tn_batch_loss(tarn_run *run, struct tn_loss *loss, const tarn_batch *batch, float scale);

tarn_status tn_batch_check_parts(tarn_run *longest, const tarn_batch *batch, size_t parts,
                                 tarn_error *err);

/* Checks a batch of so many micro-batches and adds its loss, and the edits where sequences are
 * predicted. */
tarn_status tn_batch_score(tarn_run *longest, const struct tn_sequence_score *sequences,
                           tarn_score *score, const tarn_batch *batch, size_t parts,
                           tarn_error *err);
void tn_score_add(tarn_score *sums, const tarn_score *more);

/* Symbols or frames that a batch has, padding not counted. */
size_t tn_batch_tokens(const tarn_run *longest, const tarn_batch *batch);

#endif
