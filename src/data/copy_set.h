/* SPDX-License-Identifier: MIT */
/* copy_set.h - the paper's copy task (4.1.1): endless sequences, made when asked for. */
#ifndef TN_COPY_SET_H
#define TN_COPY_SET_H

#include "data/batch.h"

struct tn_copy_set {
    size_t N;       /* length of inputs and of targets */
    size_t symbols; /* besides the separator, which is 0 and also fills the end */
    uint64_t seed;
};

/* Refuses lengths below 5, for which there is no n. */
tarn_status tn_copy_set_init(struct tn_copy_set *set, size_t N, size_t symbols, uint64_t seed,
                             tarn_error *err);

/* batch->N is the set's. */
void tn_copy_set_fill(const struct tn_copy_set *set, struct tn_batch *batch,
                      enum tn_split split, uint64_t index);

#endif
