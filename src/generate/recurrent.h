/* SPDX-License-Identifier: MIT */
/* recurrent.h - what the method `recurrent` keeps, for its steps (method_recurrent.c) and the
 * files of its streams (recurrent_stream.c). */
#ifndef TN_RECURRENT_H
#define TN_RECURRENT_H

#include "generate/engine.h"
#include "model/body.h"

struct tn_recurrent {
    tarn_run *together; /* all threads take a few streams, or many positions of one */
    tarn_run **apart;   /* of many streams, each thread takes a group; NULL: capacity is less */
};

static inline const tarn_attention *tn_recurrent_attention(const tarn_engine *e, size_t layer)
{
    const tarn_run *const run = ((const struct tn_recurrent *)e->own)->together;

    return run->model->arch.body->attention(run, layer);
}

/* As struct tn_method has them. */
size_t tn_recurrent_section(const tarn_engine *e, size_t n, size_t index, bool *common);
void tn_recurrent_pack(const tarn_engine *e, void *packed, const tarn_stream *stream);
void tn_recurrent_unpack(const tarn_engine *e, tarn_stream *stream, const void *packed);
const int32_t *tn_recurrent_kept(const tarn_engine *e, const tarn_stream *stream,
                                 size_t *count);

#endif
