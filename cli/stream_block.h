/* SPDX-License-Identifier: MIT */
/* stream_block.h - an engine and some of its streams, one after the other in a block. */
#ifndef STREAM_BLOCK_H
#define STREAM_BLOCK_H

#include "command.h"

struct stream_block {
    tarn_engine *engine;
    size_t n, size;   /* streams; bytes of one */
    size_t width;     /* outputs of one */
    tarn_stream **at; /* n of them */
    float *outputs;   /* n x width, of the last step */
    void *memory;     /* of the streams, n x size bytes */
};

/* desc->capacity 0: n. */
struct stream_block stream_block_open(const tarn_model *model, const tarn_engine_desc *desc,
                                      size_t n);
void stream_block_close(struct stream_block *block); /* accepts zeros */

/* All streams at their start. */
void stream_block_restart(struct stream_block *block);

/* Stream `to` and its outputs become those of `from`. */
void stream_block_fork(struct stream_block *block, size_t to, size_t from);

/* Settings of all streams, numbered from sampling.number on. */
void stream_block_sampling(struct stream_block *block, tarn_sampling sampling);

/* Feeds many symbols to one stream. */
void stream_block_prefill(struct stream_block *block, size_t stream, const int32_t *symbols,
                          size_t count);

/* Feeds a symbol of each stream, NULL: those drawn last; and draws the next ones, NULL: not
 * wanted here. */
void stream_block_step(struct stream_block *block, const int32_t *symbols);
void stream_block_draw(struct stream_block *block, int32_t *symbols);

/* ---- Sampling ----------------------------------------------------------- */

struct sampling_options {
    double temperature, top_p;
    size_t top_k, seed;
    bool greedy;
};

/* Their rows; `type` has them as its member `sampling`. */
#define SAMPLING_AT(type, field) offsetof(type, sampling.field)
#define SAMPLING_OPTIONS(type)                                                                 \
    ARGS_ROW("temperature", "T", ARGS_NUMBER, "1", SAMPLING_AT(type, temperature), 0, 1000,    \
             "sampling temperature; below 1, likely symbols become more likely; 0: greedy"),   \
        ARGS_ROW("top-k", "K", ARGS_COUNT, "0", SAMPLING_AT(type, top_k), 0, SIZE_MAX,         \
                 "sample only from the K most likely symbols; 0: from all"),                   \
        ARGS_ROW(                                                                              \
            "top-p", "P", ARGS_NUMBER, "1", SAMPLING_AT(type, top_p), 0, 1,                    \
            "nucleus sampling: sample only from the most likely symbols whose probabilities "  \
            "add up to P"),                                                                    \
        ARGS_ROW("greedy", NULL, ARGS_FLAG, NULL, SAMPLING_AT(type, greedy), 0, 0,             \
                 "always choose the most likely symbol"),                                      \
        ARGS_ROW("seed", "S", ARGS_COUNT, "1", SAMPLING_AT(type, seed), 0, SIZE_MAX,           \
                 "random seed")

/* Refuses --top-p 0. */
tarn_sampling sampling_of(const struct sampling_options *options);

/* ---- Size --------------------------------------------------------------- */

/* The memory of a model's stream: bytes that it always has, and what each position adds. */
struct state_size {
    bool generates; /* false: the model has no recurrent form, and the sizes are 0 */
    size_t bytes, per_position;
};

struct state_size state_size(const tarn_model *model);

#endif
