/* SPDX-License-Identifier: MIT */
/* speech_batches.h - sets of speech and batches of them. */
#ifndef SPEECH_BATCHES_H
#define SPEECH_BATCHES_H

#include "data/speech_set.h"

/* As the library's, with a seed and two threads. */
struct tn_speech_settings speech_defaults(void);

struct tn_speech_set speech_set_open(const char *path,
                                     const struct tn_speech_settings *settings);

/* The sentence has these words. */
void check_speech_refused(const char *path, const struct tn_speech_settings *settings,
                          const char *words);

struct owned_batch {
    struct tn_speech_batch batch;
    void *memory; /* free() it */
    size_t bytes;
};

struct owned_batch speech_batch_open(const struct tn_speech_set *set, size_t B);
void speech_batch_fill(const struct tn_speech_set *set, struct owned_batch *owned,
                       enum tn_split split, uint64_t index);

/* Lengths are true, what lies behind is zero, labels are the utterances'. */
void check_speech_batch(const struct tn_speech_set *set, const struct tn_speech_batch *batch,
                        enum tn_split split);
bool speech_batches_equal(const struct tn_speech_batch *a, const struct tn_speech_batch *b);

#endif
