/* SPDX-License-Identifier: MIT */
/* transcribe_options.h - the options of tarn transcribe, and its output. */
#ifndef TRANSCRIBE_OPTIONS_H
#define TRANSCRIBE_OPTIONS_H

#include "command.h"
#include "json_line.h"

struct transcribe_options {
    const char *model;
    tarn_host host;
    struct args_words audio;
    size_t beam, rate;
    double longest;
    bool best, json, stream, strict;
};

/* {"symbol": ..., "begin": seconds, "confidence": ...} */
json_t *transcribe_symbol(const tarn_heard *heard);

/* Reports a file that could not be transcribed on standard error, and as an object with --json.
 */
void transcribe_failed(const struct transcribe_options *o, const char *path,
                       const tarn_error *err);

/* Transcribes a file, or standard input if it is "-", as it arrives. False after a message. */
bool transcribe_stream(const struct transcribe_options *o, tarn_recognizer *recognizer,
                       const char *path);

#endif
