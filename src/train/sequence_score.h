/* SPDX-License-Identifier: MIT */
/* sequence_score.h - what the outputs of a head of sequences say, against what they should:
 * edits, from which the error rate comes. */
#ifndef TN_SEQUENCE_SCORE_H
#define TN_SEQUENCE_SCORE_H

#include "data/edit_distance.h"
#include "model/run.h"
#include "tarn/train.h"

/* Memory for runs of up to B sequences of N positions. */
struct tn_sequence_score {
    size_t beam;    /* beginnings that are kept from frame to frame; 0: greedily */
    size_t threads; /* that decode, each in a part of memory of its own */
    size_t N, part; /* positions, and bytes of a part */
    struct tn_edits *edits;
    char *parts;
};

/* Lays it out, twice: see tn_arena. `longest` has the most positions. */
void tn_sequence_score_take(struct tn_sequence_score *score, const tarn_run *longest,
                            size_t beam, struct tn_arena *arena);

/* Adds the edits between run->outputs and the targets; sequences of weight 0 are left out,
 * weights NULL: none is. */
void tn_sequence_score_add(const struct tn_sequence_score *score, tarn_score *sums,
                           const tarn_run *run, const int32_t *targets, const size_t *counts,
                           const float *weights);

#endif
