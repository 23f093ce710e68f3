/* SPDX-License-Identifier: MIT */
/* cmd_generate.h - the parts of tarn generate: its options, where symbols go, and images. */
#ifndef CMD_GENERATE_H
#define CMD_GENERATE_H

#include <stdio.h>

#include "stream_block.h"

struct generate_options {
    const char *model, *prompt, *prompt_file, *save, *load, *out;
    size_t count, streams, scale; /* 0: not given */
    struct sampling_options sampling;
    tarn_engine_desc how; /* longest is filled in */
    bool best, json;
};

/* A model of images: all of them, each begins with the prompt. */
void generate_images(const struct generate_options *options, const tarn_model *model,
                     const int32_t *prompt, size_t prompt_count);

/* ---- generate_sink.c: where symbols go, as they are made or at the end -- */

struct sink {
    const tarn_task *task; /* whose symbols they are */
    const char *path;      /* NULL: standard output */
    FILE *out;
    bool json, at_once; /* one stream's text needs no waiting */
    bool terminal;      /* reads control characters as commands */
    char last;          /* byte that was written */
    size_t streams, count, room;
    int32_t *symbols; /* streams x room, unless at_once */
};

/* Task, path and json are set: for up to `room` symbols of every stream. */
void sink_open(struct sink *sink, size_t streams, size_t room);

/* One symbol of every stream. */
void sink_put(struct sink *sink, const int32_t *symbols);

/* Writes what was kept, and closes; `seconds` are those of all steps. */
void sink_finish(struct sink *sink, double seconds);

#endif
