/* SPDX-License-Identifier: MIT */
/* speech_list.h - what a folder of speech says that it holds, before any audio is read.
 *
 * A format is one file src/data/speech_NAME.c and one row in speech_list.c. It recognises
 * its folders, and adds the utterances of a part. What is wrong with
 * one utterance is noted, with its file and line, and the next one is read. */
#ifndef TN_SPEECH_LIST_H
#define TN_SPEECH_LIST_H

#include "base/texts.h"
#include "data/batch.h"
#include "data/symbols.h"

/* Texts live as long as the list. */
struct tn_utterance {
    const char *audio;      /* path */
    const char *speaker;    /* "": one of its own */
    const char *transcript; /* UTF-8 without spaces around it */
    const char *file;       /* that lists it */
    size_t line;            /* 0: the file as a whole */
};

/* An utterance that was left out. */
struct tn_skipped {
    const char *file;
    size_t line;
    char reason[256];
};

/* Zeros are an empty one. */
struct tn_speech_list {
    struct tn_utterance *utterance;
    size_t count, room;
    struct tn_skipped *skipped;
    size_t skipped_count, skipped_room;
    struct tn_texts texts;
    bool strict; /* what is wrong with one utterance is a failure */
};

/* To be called also after a failure. Leaves it empty. */
void tn_speech_list_free(struct tn_speech_list *list);

/* Copies the transcript; the other texts must live as long as the list. One that is NULL means
 * that there was no memory for it. A transcript that is not UTF-8 is skipped. */
tarn_status tn_speech_list_add(struct tn_speech_list *list, const struct tn_utterance *row,
                               tarn_error *err);

/* Notes why it is left out, or fails with that if the list is strict. */
tarn_status tn_speech_list_skip(struct tn_speech_list *list, const char *file, size_t line,
                                tarn_error *err, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Fails with a reason, file and line before it. */
tarn_status tn_speech_fail(tarn_error *err, tarn_status status, const char *file, size_t line,
                           const char *reason);

struct tn_speech_format {
    const char *name;
    const char *holds; /* what it is recognised by, for messages */
    tarn_status (*fits)(const char *folder, bool *found, tarn_error *err);

    /* Nothing for a part that the folder does not have. If it has no parts at all, everything
     * is its training part. */
    tarn_status (*list)(struct tn_speech_list *list, const char *folder, enum tn_split split,
                        enum tn_symbol_kind kind, tarn_error *err);
};

extern const struct tn_speech_format tn_speech_tsv, tn_speech_kaldi, tn_speech_timit;

/* The first that fits. */
tarn_status tn_speech_format_of(const struct tn_speech_format **format, const char *folder,
                                tarn_error *err);

/* ---- For formats -------------------------------------------------------- */

/* folder/name, as long as the list lives; name alone where it begins with '/'. NULL if there is
 * no memory. */
const char *tn_speech_path(struct tn_speech_list *list, const char *folder, const char *name,
                           size_t length);

bool tn_speech_has(const char *folder, const char *name);

/* A text's line number `number` from 1: its bytes without the end of the line. */
struct tn_line {
    const char *text;
    size_t length, number;
};

/* *line is the one before, zeros at first. False at the end. */
bool tn_line_next(struct tn_line *line, const char *text, size_t size);

/* A line's first word; what follows the spaces after it is left in *line. Its length is 0
 * where there is none. */
struct tn_line tn_line_word(struct tn_line *line);

#endif
