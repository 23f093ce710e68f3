/* SPDX-License-Identifier: MIT */
/* pass.h - batches through a model: checked, looked at, scored. */
#ifndef TN_PASS_H
#define TN_PASS_H

#include "model/run_ladder.h"
#include "train/sequence_score.h"

struct tn_pass {
    const tarn_model *model;
    struct tn_ladder ladder;
    tarn_run *run; /* of the batch that was checked or looked at last */
    struct tn_sequence_score sequences;
    size_t bytes;
    void *memory; /* of the scores; the rest is the ladder's */
    const struct tn_host *host;
};

/* With `rungs` runs for batches of different lengths, 1: of one. the host must live as long
 * as the pass; beam: see sequence_score.h. On failure it is empty. */
tarn_status tn_pass_create(struct tn_pass *pass, const tarn_model *model,
                           const struct tn_run_desc *desc, size_t rungs, size_t beam,
                           const struct tn_host *host, tarn_error *err);
void tn_pass_free(struct tn_pass *pass); /* accepts what is empty */

/* Refuses what the model cannot read. *weight, unless NULL: of the positions or sequences that
 * something can be learnt from. */
tarn_status tn_pass_check(struct tn_pass *pass, const tarn_batch *batch, double *weight,
                          tarn_error *err);

/* The run that takes it. */
tarn_run *tn_pass_run(const struct tn_pass *pass, const tarn_batch *batch);

/* Forwards, of a batch that was checked. With a scale, ready for tn_run_backward(pass->run). */
void tn_pass_look(struct tn_pass *pass, struct tn_loss *loss, const tarn_batch *batch,
                  float scale);

/* Checks, looks and adds. */
tarn_status tn_pass_score(struct tn_pass *pass, tarn_score *score, const tarn_batch *batch,
                          tarn_error *err);

/* Symbols or frames that a batch has, padding not counted. */
size_t tn_pass_tokens(const struct tn_pass *pass, const tarn_batch *batch);

#endif
