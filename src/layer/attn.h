/* SPDX-License-Identifier: MIT */
/* attn.h - what a kind of attention must answer.
 *
 * A kind is one file that defines one row, and one line in attn_kinds.def. Everything a call
 * could stumble over is checked before a kind sees it (attention.c), so its functions return
 * void. */
#ifndef TN_ATTN_H
#define TN_ATTN_H

#include "base/option.h"
#include "kernel/kernels.h"
#include "layer/feature_map.h"
#include "tarn/attention.h"

/* The plan. `tarn_attention` is this. */
struct tarn_attention {
    const struct tn_attention_kind *kind;
    const struct tn_kernels *kernels;
    struct tn_options options;
    struct tn_feature_map map; /* kinds with a feature map only */
    bool causal;
    size_t B, H, N, Nk, D, M;
    size_t steps; /* that a state takes at most; 0: no end */
    size_t threads;
    float *draws; /* kind->draws() floats */
    const tarn_allocator *allocator;
    tarn_allocator allocator_copy;
};

/* Sequences first .. first + count - 1 of a plan's B. */
struct tn_streams {
    size_t first, count;
};

/* One call: the caller's arrays, and memory that is large enough and aligned. */
struct tn_attention_call {
    const tarn_attention *plan;
    const tarn_attention_arrays *arrays;
    float *saved;              /* kind->saved() floats; NULL in a forward without a backward */
    void *state;               /* kind->state() bytes */
    void *work;                /* what kind->work() carved */
    struct tn_streams streams; /* a step's; its arrays begin with the first of them */
};

struct tn_attention_kind {
    tarn_table_row about;
    bool has_map; /* takes a feature map, if uses_map (NULL: always) says so of its options */
    bool (*uses_map)(const tarn_attention *plan);
    bool shares_keys; /* keys are the queries: k and dk are not looked at, N = Nk */

    /* Refuses what this kind cannot do beyond its options' ranges. NULL: nothing more. */
    tarn_status (*check)(const tarn_attention *plan, tarn_error *err);

    /* Random numbers: how many floats, and drawing them. NULL: none. */
    size_t (*draws)(const tarn_attention *plan);
    void (*draw)(const tarn_attention *plan, struct tn_random *random);

    /* Lays out, twice: see tn_arena. `saved` returns floats per call; SIZE_MAX: too many. */
    size_t (*saved)(const tarn_attention *plan);
    void (*work)(const tarn_attention *plan, struct tn_arena *arena);
    size_t (*state)(const tarn_attention *plan); /* bytes */

    void (*forward)(const struct tn_attention_call *call);
    void (*backward)(const struct tn_attention_call *call);

    /* A position of the call's streams, which leaves the state's count of positions as it is,
     * and the count moved on, when all streams had theirs. NULL: no recurrent form. */
    void (*step)(const struct tn_attention_call *call);
    void (*advance)(void *state);

    /* Positions in a growing cache, which is kv_cache.h's; NULL: the state does not grow. */
    size_t (*cached)(const struct tn_attention_call *call);

    /* As tarn_attention_forward_flops(); NULL: 0. */
    double (*forward_flops)(const tarn_attention *plan);
    double (*backward_flops)(const tarn_attention *plan);
};

/* The names in attn_kinds.def, ended by NULL. */
extern const tarn_table_row *const tn_attention_rows[];

/* Fills a plan in the caller's memory and allocates only what a kind or map draws at random. */
tarn_status tn_attention_init(tarn_attention *plan, const tarn_attention_desc *desc,
                              tarn_error *err);
void tn_attention_clear(tarn_attention *plan);

/* tarn_attention_step() in pieces, unchecked: any threads may step streams at once, each with
 * its own workspace, if no stream has two; then one of them advances. */
void tn_attention_step_streams(const tarn_attention *plan, const tarn_attention_arrays *arrays,
                               void *state, void *workspace, struct tn_streams streams);
void tn_attention_advance(const tarn_attention *plan, void *state);

static inline const float *tn_in(tarn_input a, size_t b, size_t h, size_t n)
{
    return a.data + (ptrdiff_t)b * a.batch + (ptrdiff_t)h * a.head + (ptrdiff_t)n * a.position;
}

static inline float *tn_out(tarn_output a, size_t b, size_t h, size_t n)
{
    return a.data + (ptrdiff_t)b * a.batch + (ptrdiff_t)h * a.head + (ptrdiff_t)n * a.position;
}

/* Keys of sequence b that exist. */
static inline size_t tn_key_length(const struct tn_attention_call *call, size_t b)
{
    return call->arrays->key_lengths ? call->arrays->key_lengths[b] : call->plan->Nk;
}

#endif
