/* SPDX-License-Identifier: MIT */
/* sequence_score.h - what the outputs of a head of sequences say, against what they should:
 * edits, from which the error rate comes. */
#ifndef TN_SEQUENCE_SCORE_H
#define TN_SEQUENCE_SCORE_H

#include "data/edit_distance.h"
#include "model/run.h"
#include "tarn/train.h"

struct tn_sequence_score {
    size_t beam;    /* beginnings that are kept from frame to frame; 0: greedily */
    size_t N, part; /* positions at most, and bytes that a thread decodes in */
    struct tn_edits *edits;
    char *parts;
    void *memory;
    size_t bytes;
    const struct tn_host *host;
};

/* For `longest` and its shorter runs, which must outlive it; empty where the model's head does
 * not predict sequences. On failure it is empty. */
tarn_status tn_sequence_score_create(struct tn_sequence_score *score, const tarn_run *longest,
                                     size_t beam, tarn_error *err);
void tn_sequence_score_free(struct tn_sequence_score *score); /* accepts what is empty */

/* Adds the edits between run->outputs and the targets; sequences of weight 0 are left out,
 * weights NULL: none is. */
void tn_sequence_score_add(const struct tn_sequence_score *score, tarn_score *sums,
                           const tarn_run *run, const int32_t *targets, const size_t *counts,
                           const float *weights);

#endif
