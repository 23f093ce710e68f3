/* SPDX-License-Identifier: MIT */
/* recurrent.h - what the method `recurrent` keeps, for its steps (method_recurrent.c) and for its
 * states in files (recurrent_state.c). */
#ifndef TN_RECURRENT_H
#define TN_RECURRENT_H

#include "generate/generator.h"

/* The model for n positions of every stream. */
struct tn_lane {
    size_t n;
    bool together; /* its products are all ours, so that one parallel region does */
    struct tn_block_plan block;
    struct tn_dense predictor;
    struct tn_dense projection; /* of frames; zeros: inputs are symbols */
    struct tn_block_tape tape;
    float *x;                /* B n x F */
    float *frames;           /* B n x floats of a stack */
    float *positions;        /* n rows of a sinusoid */
    float *normed, *outputs; /* of the last position: B x F, B x O */
    int32_t *symbols;        /* B x n */
    int32_t *context;        /* rows of its tables */
    void *scratch, *work;
    void *memory; /* that holds all of it */
    size_t bytes;
};

struct tn_recurrent {
    tarn_attention *attentions; /* one per layer */
    size_t layer_state;         /* bytes from one layer's state to the next */
    struct tn_lane one, many;   /* many.n is 0 where streams alone are rows enough */

    /* The matrices as both lanes multiply with them, held in `memory`. */
    struct tn_block_weights *blocks;
    float *predictor, *projection;
    void *memory;
    size_t bytes;
};

/* A state is a head, every layer's sums or cache, and the symbols that the context reaches back
 * to. */
static inline char *tn_recurrent_layer(const tarn_generator *g, const struct tn_state *state,
                                       size_t layer)
{
    const struct tn_recurrent *const own = g->own;

    return (char *)(uintptr_t)(state + 1) + layer * own->layer_state;
}

static inline int32_t *tn_recurrent_past(const tarn_generator *g, const struct tn_state *state)
{
    return (int32_t *)(void *)tn_recurrent_layer(g, state, g->model->arch.config.layers);
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
