/* SPDX-License-Identifier: MIT */
/* speech_scan.h - reading every audio file of a set once: lengths, statistics, problems. */
#ifndef TN_SPEECH_SCAN_H
#define TN_SPEECH_SCAN_H

#include "data/speech_set.h"

/* An utterance on its way into a set: unless `status` is TARN_OK, `why` it cannot be used. */
struct tn_found {
    struct tn_spoken spoken;
    struct tn_feature_sums sums;
    enum tn_split split;
    tarn_status status;
    tarn_error why;
};

/* Of the speeds that a split may have, the one with most frames, or with fewest. */
double tn_extreme_speed(const struct tn_speech_settings *settings, enum tn_split split,
                        bool slow);

/* Reads those that are fine so far, in parallel. */
void tn_speech_scan(struct tn_speech_set *set, struct tn_found *found, size_t count);

/* set->norm, and set->norms with the utterances' numbers in it. */
tarn_status tn_speech_normalise(struct tn_speech_set *set, struct tn_found *found, size_t count,
                                const struct tn_feature_norm *given, tarn_error *err);

#endif
