/* SPDX-License-Identifier: MIT */
/* recurrent.h - what the method `recurrent` keeps, for its steps (method_recurrent.c), the
 * memory they work in (recurrent_plan.c) and its streams (recurrent_stream.c). */
#ifndef TN_RECURRENT_H
#define TN_RECURRENT_H

#include "generate/engine.h"

/* Memory in which some rows go through the model. */
struct tn_worker {
    struct tn_block_plan block; /* with scratch of its own */
    struct tn_block_tape tape;
    float *x;         /* rows x F */
    float *frames;    /* rows x floats of a stack */
    float *positions; /* rows of their table */
    float *last;      /* of the last position: streams x F */
    int32_t *symbols, *context;
    void **states; /* of a layer, one per stream */
    void *scratch, *attention;
};

/* The products of the model, and workers that use them at the same time. */
struct tn_recurrent_plan {
    struct tn_host host; /* threads: of a worker */
    size_t rows;         /* of a worker, at most; 0: there is no such plan */
    size_t streams;      /* at most, */
    size_t positions;    /* or of one stream */
    struct tn_block_plan block;
    struct tn_dense predictor;
    struct tn_dense projection; /* of frames; zeros: inputs are symbols */
    struct tn_worker *workers;
    size_t count;
    void *memory; /* that they lie in */
    size_t bytes;
};

/* What failed is to be cleared, too. */
tarn_status tn_recurrent_plan_create(struct tn_recurrent_plan *plan, const tarn_engine *e,
                                     tarn_error *err);
void tn_recurrent_plan_clear(struct tn_recurrent_plan *plan); /* accepts zeros */

struct tn_recurrent {
    tarn_attention *attentions; /* one per layer */
    size_t past_bytes;          /* of recent symbols, which a stream has first */
    size_t layer_bytes;         /* from one layer's state to the next */

    /* All threads take a few streams, or many positions of one, through the model together; of
     * many streams, each thread takes a group of its own. */
    struct tn_recurrent_plan together, apart;

    /* The matrices as the products take them, in `memory`. */
    struct tn_block_weights *blocks;
    float *predictor, *projection;
    void *memory;
    size_t bytes;
};

/* Recent symbols that the context reaches back to, then every layer's state of attention. */
static inline int32_t *tn_recurrent_past(const tarn_stream *stream)
{
    return (int32_t *)(uintptr_t)(stream + 1);
}

static inline void *tn_recurrent_layer(const tarn_engine *e, const tarn_stream *stream,
                                       size_t layer)
{
    const struct tn_recurrent *const own = e->own;

    return (char *)(uintptr_t)(stream + 1) + own->past_bytes + layer * own->layer_bytes;
}

/* As struct tn_method has them. */
size_t tn_recurrent_stream(const tarn_engine *e);
size_t tn_recurrent_section(const tarn_engine *e, size_t n, size_t index, bool *common);
void tn_recurrent_pack(const tarn_engine *e, void *packed, const tarn_stream *stream);
void tn_recurrent_unpack(const tarn_engine *e, tarn_stream *stream, const void *packed);
const int32_t *tn_recurrent_kept(const tarn_engine *e, const tarn_stream *stream,
                                 size_t *count);

#endif
