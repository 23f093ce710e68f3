/* SPDX-License-Identifier: MIT */
/* generate_sink.h - where generated symbols go: as they are made, or kept to the end. */
#ifndef GENERATE_SINK_H
#define GENERATE_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tarn/tarn.h"

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

/* For up to `room` symbols of every stream. False, here and below, after a message. */
bool sink_open(struct sink *sink, size_t streams, size_t room);

/* One symbol of every stream. */
bool sink_put(struct sink *sink, const int32_t *symbols);

/* What was kept; `seconds` are those of all steps. */
bool sink_finish(struct sink *sink, double seconds);

void sink_close(struct sink *sink); /* accepts what open left */

#endif
