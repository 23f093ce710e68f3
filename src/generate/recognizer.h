/* SPDX-License-Identifier: MIT */
/* recognizer.h - `tarn_recognizer` is this: a model of speech, what it says of itself, and the
 * memory of what was heard last. */
#ifndef TN_RECOGNIZER_H
#define TN_RECOGNIZER_H

#include "data/features.h"
#include "data/speech_profile.h"
#include "layer/ctc_decode.h"
#include "model/run.h"
#include "tarn/generate.h"
#include "tarn/speech.h"

/* A sound that is under way; see recognizer_stream.c. */
struct tn_hearing {
    tarn_engine *engine;
    tarn_stream *stream;
    float *outputs; /* of a position */
    struct tn_features features;
    float *frames; /* of one piece of samples */
    size_t frame_room;
    float *stack;   /* frames of the next position */
    size_t waiting; /* of these */
    struct tn_ctc_greedy greedy;
    bool begun;
};

struct tarn_recognizer {
    const tarn_model *model;
    tarn_recognizer_desc desc;
    struct tn_host host;
    struct tn_speech_profile profile;

    tarn_run *run; /* for recordings of about the last one's length */

    /* Of the last answer; each grows to what was needed. */
    struct tn_ctc_symbol *symbols;
    tarn_heard *heard;
    size_t count, room;
    char *text;
    size_t text_room;

    struct tn_hearing hearing;
};

/* Room for that many symbols in all; keeps what there is. */
tarn_status tn_recognizer_room(tarn_recognizer *r, size_t count, tarn_error *err);

/* Appends heard[] for the n symbols after the first r->count. */
void tn_recognizer_name(tarn_recognizer *r, size_t n);

/* Accepts what is empty. */
void tn_hearing_free(struct tn_hearing *hearing);

#endif
