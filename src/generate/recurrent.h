/* SPDX-License-Identifier: MIT */
/* recurrent.h - what the method `recurrent` keeps, for its steps (method_recurrent.c), the
 * memory they work in (recurrent_lane.c) and its states in files (recurrent_state.c). */
#ifndef TN_RECURRENT_H
#define TN_RECURRENT_H

#include "generate/generator.h"

/* Where a worker has the rows of some streams, n of each. */
struct tn_desk {
    struct tn_block_plan block; /* the lane's, with scratch of its own */
    struct tn_block_tape tape;
    float *x;         /* rows x F */
    float *frames;    /* rows x floats of a stack */
    float *positions; /* n rows of a sinusoid */
    float *normed;    /* of the last position: streams x F */
    int32_t *symbols; /* streams x n */
    int32_t *context; /* rows of its tables */
    void **states;    /* of a layer, one per stream */
    void *scratch, *work;
};

/* The model for n positions of every stream: shares of them, each on one thread, as many at
 * once as there are desks, or all as one share of which every product is everyone's. */
struct tn_lane {
    size_t n;
    size_t shares, streams; /* of a share; the last one may have fewer */
    struct tn_host host;    /* of a share */
    struct tn_block_plan block;
    struct tn_dense predictor;
    struct tn_dense projection; /* of frames; zeros: inputs are symbols */
    struct tn_desk *desks;      /* as many as work at once */
    float *outputs;             /* of the last position: shares streams x O */
    void *memory;               /* that holds all of it */
    size_t bytes;
};

/* n positions of the generator's streams, in about so many shares. Also what failed is to be
 * cleared. */
tarn_status tn_lane_create(struct tn_lane *lane, const tarn_generator *g, size_t n,
                           size_t shares, tarn_error *err);
void tn_lane_clear(struct tn_lane *lane, const tarn_generator *g); /* accepts zeros */

static inline bool tn_lane_is_whole(const struct tn_lane *lane)
{
    return lane->shares == 1;
}

struct tn_recurrent {
    tarn_attention *attentions; /* one per layer */
    size_t stream_state;        /* bytes from one stream's state of a layer to the next */
    struct tn_lane one, many;   /* many.n is 0 where streams alone are rows enough */

    /* The matrices as both lanes multiply with them, held in `memory`. */
    struct tn_block_weights *blocks;
    float *predictor, *projection;
    void *memory;
    size_t bytes;
};

/* Streams first .. first + count - 1 of a generator's B. */
struct tn_streams {
    size_t first, count;
};

/* A state is a head, every layer's states of attention, stream by stream, and the symbols that
 * the context reaches back to. */
static inline char *tn_recurrent_layer(const tarn_generator *g, const struct tn_state *state,
                                       size_t layer, size_t stream)
{
    const struct tn_recurrent *const own = g->own;

    return (char *)(uintptr_t)(state + 1) + (layer * g->B + stream) * own->stream_state;
}

static inline int32_t *tn_recurrent_past(const tarn_generator *g, const struct tn_state *state)
{
    return (int32_t *)(void *)tn_recurrent_layer(g, state, g->model->arch.config.layers, 0);
}

static inline size_t tn_recurrent_past_count(const tarn_generator *g)
{
    return g->B * g->model->arch.context.reach;
}

/* As struct tn_method has them. */
size_t tn_recurrent_packed(const tarn_generator *g, size_t n);
void tn_recurrent_pack(const tarn_generator *g, void *out, const struct tn_state *state);
void tn_recurrent_unpack(const tarn_generator *g, struct tn_state *state, const void *in);
tarn_status tn_recurrent_check(const tarn_generator *g, const struct tn_state *state,
                               const char *path, tarn_error *err);

#endif
