/* SPDX-License-Identifier: MIT */
/* streams.h - an engine, and some streams of it that it created. */
#ifndef STREAMS_H
#define STREAMS_H

#include "support/model_case.h"
#include "tarn/generate.h"

struct streams {
    tarn_engine *engine;
    size_t n, size;   /* streams; bytes of one */
    tarn_stream **at; /* n of them */
    float *outputs;   /* n x O, of the last call */
    size_t O;
};

/* With the instruction set that the environment names. */
tarn_engine *engine_of(const tarn_model *model, tarn_engine_desc desc);
void engine_close(tarn_engine *engine);

struct streams streams_open(const tarn_model *model, tarn_engine_desc desc, size_t n);
struct streams streams_by(const tarn_model *model, const char *method, size_t longest,
                          size_t n);
void streams_close(struct streams *s);
void streams_restart(struct streams *s);

/* One symbol, or n symbols, of each stream; returns the outputs. */
const float *streams_step(struct streams *s, const int32_t *symbols);
const float *streams_prefill(struct streams *s, const int32_t *symbols, size_t n);

/* Steps by `count` x n symbols. */
const float *streams_feed(struct streams *s, const int32_t *symbols, size_t count);

/* All of them as bytes, to be freed. */
unsigned char *streams_pack(const struct streams *s, size_t *size);

/* Settings of all streams, numbered from sampling.number on. */
void streams_sampling(struct streams *s, tarn_sampling sampling);

#endif
