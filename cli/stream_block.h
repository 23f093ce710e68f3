/* SPDX-License-Identifier: MIT */
/* stream_block.h - an engine and some streams of it, one behind the other in a block of
 * memory. */
#ifndef STREAM_BLOCK_H
#define STREAM_BLOCK_H

#include "tarn/tarn.h"

struct stream_block {
    tarn_engine *engine;
    size_t n, size;   /* streams; bytes of one */
    size_t width;     /* outputs of one */
    tarn_stream **at; /* n of them */
    float *outputs;   /* n x width, of the last step */
    void *memory;     /* of the streams, n x size bytes */
};

/* desc->capacity 0: n. What failed is to be closed, too. */
tarn_status stream_block_open(struct stream_block *block, const tarn_model *model,
                              const tarn_engine_desc *desc, size_t n, tarn_error *err);
void stream_block_close(struct stream_block *block); /* accepts zeros */

/* All streams at their start. */
void stream_block_restart(struct stream_block *block);

/* Stream `to` and its outputs become those of `from`. */
void stream_block_fork(struct stream_block *block, size_t to, size_t from);

/* Settings of all streams, numbered from sampling->number on. */
tarn_status stream_block_sampling(struct stream_block *block, const tarn_sampling *sampling,
                                  tarn_error *err);

/* Feeds a symbol of each stream, NULL: those drawn last; and draws the next ones, NULL: not
 * wanted here. */
tarn_status stream_block_step(struct stream_block *block, const int32_t *symbols,
                              tarn_error *err);
tarn_status stream_block_draw(struct stream_block *block, int32_t *symbols, tarn_error *err);

#endif
