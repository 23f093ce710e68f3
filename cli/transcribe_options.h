/* SPDX-License-Identifier: MIT */
/* transcribe_options.h - what tarn transcribe was asked to do, and how it answers. */
#ifndef TRANSCRIBE_OPTIONS_H
#define TRANSCRIBE_OPTIONS_H

#include "args.h"
#include "json_line.h"
#include "tarn/tarn.h"

extern const char transcribe_name[]; /* of the command, for messages */

struct transcribe_options {
    const char *model, *cpu;
    struct args_words audio;
    size_t beam, rate, threads;
    double longest;
    bool best, json, stream, strict;
};

/* {"symbol": ..., "begin": seconds, "confidence": ...} */
json_t *transcribe_symbol(const tarn_heard *heard);

/* One file of audio could not be used: on standard error, and as an object with --json. */
void transcribe_failed(const struct transcribe_options *o, const char *path,
                       const tarn_error *err);

/* A file, or standard input as "-", as it arrives. False after a message. */
bool transcribe_stream(const struct transcribe_options *o, tarn_recognizer *recognizer,
                       const char *path);

#endif
