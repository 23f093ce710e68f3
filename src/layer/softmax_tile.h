/* SPDX-License-Identifier: MIT */
/* softmax_tile.h - a block of queries meets a block of keys.    Paper (2)
 *
 *   s_ij = scale q_i . k_j     L_i = log sum_j exp(s_ij)     p_ij = exp(s_ij - L_i)
 *   y_i = sum_j p_ij v_j
 *
 * Forward: queries keep the maximum m and the sum l of what they have met, and y in units of
 * exp(m); a larger maximum rescales them. L = m + log l is all that is saved. Backward forms p
 * again:
 *
 *   delta_i = dy_i . y_i     dp_ij = dy_i . v_j     ds_ij = p_ij (dp_ij - delta_i)
 *   dv_j = sum_i p_ij dy_i     dq_i = scale sum_j ds_ij k_j     dk_j = scale sum_i ds_ij q_i */
#ifndef TN_SOFTMAX_TILE_H
#define TN_SOFTMAX_TILE_H

#include "layer/attention_kind.h"

enum { TN_SOFTMAX_SCALE, TN_SOFTMAX_STORE }; /* the kind's options */

enum {
    TN_SOFTMAX_BLOCK = 64, /* queries, and keys: a tile of scores is 16 KB */
    TN_SOFTMAX_SPAN = 4 /* blocks kept while the other side's go by, so that the caller's arrays
                              are walked through that much less often */
};

/* A block of queries and what is kept for it; rows packed, q with the scale in it. */
struct tn_softmax_queries {
    size_t from, n;
    float *q, *dq; /* padded(D) wide */
    float *y, *g;  /* padded(M) wide; g = dy */
    float *max, *sum, *lse, *delta;
};

/* A block of keys. */
struct tn_softmax_keys {
    size_t from, n;
    float *k, *dk;  /* padded(D) wide */
    float *v, *dv;  /* padded(M) wide */
    float *kt, *vt; /* D x BLOCK, M x BLOCK: the transposes */
};

/* One thread's. */
struct tn_softmax_tiles {
    struct tn_softmax_queries queries[TN_SOFTMAX_SPAN];
    struct tn_softmax_keys keys[TN_SOFTMAX_SPAN];
    float *s, *dp; /* BLOCK x BLOCK, queries by keys */
};

/* One head of one sequence. */
struct tn_softmax_head {
    const tarn_attention *plan;
    const struct tn_kernels *kernels;
    const struct tn_attention_call *call;
    struct tn_softmax_tiles *tiles;
    size_t b, h;
    size_t past; /* keys of a state before those of the call: all are counted from its first */
    size_t length; /* keys that exist */
    float *cached; /* the floats of that state, which are only read; NULL: none */
    size_t Dp, Mp; /* padded widths */
    float scale;
    float *lse;    /* N, or NULL */
    float *stored; /* p, N rows stored_ld apart, or NULL */
    size_t stored_ld;
};

float tn_softmax_scale(const tarn_attention *plan);
size_t tn_softmax_stored_ld(const tarn_attention *plan);

struct tn_softmax_tiles tn_softmax_tiles_lay_out(const tarn_attention *plan,
                                                 struct tn_arena *arena);
struct tn_softmax_head tn_softmax_head_open(const struct tn_attention_call *call, size_t index,
                                            struct tn_softmax_tiles *tiles);

/* Blocks from a position on, not past `end`; n may become 0. Loading keys for backward also
 * clears their gradients. */
void tn_softmax_load_queries(const struct tn_softmax_head *a,
                             struct tn_softmax_queries *queries, size_t from);
void tn_softmax_load_gradients(const struct tn_softmax_head *a,
                               struct tn_softmax_queries *queries);
void tn_softmax_load_keys(const struct tn_softmax_head *a, struct tn_softmax_keys *keys,
                          size_t from, size_t end);
void tn_softmax_load_keys_backward(const struct tn_softmax_head *a,
                                   struct tn_softmax_keys *keys, size_t from, size_t end);

/* Whether any query sees any key. */
bool tn_softmax_sees(const struct tn_softmax_head *a, const struct tn_softmax_queries *queries,
                     const struct tn_softmax_keys *keys);

/* Forward: one more block of keys. */
void tn_softmax_meet(const struct tn_softmax_head *a, struct tn_softmax_queries *queries,
                     const struct tn_softmax_keys *keys);

/* Forward with the whole matrix: scores of a block, then all weights of the queries, then the
 * values of a block. */
void tn_softmax_store_scores(const struct tn_softmax_head *a,
                             const struct tn_softmax_queries *queries,
                             const struct tn_softmax_keys *keys);
void tn_softmax_store_weights(const struct tn_softmax_head *a,
                              struct tn_softmax_queries *queries, size_t end);
void tn_softmax_store_gather(const struct tn_softmax_head *a,
                             struct tn_softmax_queries *queries,
                             const struct tn_softmax_keys *keys);

/* Backward: p and ds into the tiles s and dp, then what follows from them. */
void tn_softmax_meet_backward(const struct tn_softmax_head *a,
                              const struct tn_softmax_queries *queries,
                              const struct tn_softmax_keys *keys);
void tn_softmax_add_dq(const struct tn_softmax_head *a, float *dq,
                       const struct tn_softmax_queries *queries,
                       const struct tn_softmax_keys *keys);
void tn_softmax_add_dkv(const struct tn_softmax_head *a,
                        const struct tn_softmax_queries *queries, struct tn_softmax_keys *keys);

/* y and L to where they belong. */
void tn_softmax_finish(const struct tn_softmax_head *a,
                       const struct tn_softmax_queries *queries);

/* n packed rows of dq, times the scale, to the caller's array. */
void tn_softmax_store_dq(const struct tn_softmax_head *a, size_t from, size_t n,
                         const float *rows);

/* dk and dv of a block, for those of its keys that are before `end`: to the caller's array, or
 * to the gradient of the state that they were in, with that of the state that they went to. */
void tn_softmax_store_dkv(const struct tn_softmax_head *a, const struct tn_softmax_keys *keys,
                          size_t from, size_t end);

/* ---- softmax_step.c: with a growing cache, the paper's stateful softmax -- */

/* As a kind's step_work and step; its state is a kv_cache. */
void tn_softmax_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena);
void tn_softmax_step(const struct tn_attention_call *call);

/* A forward with states: what steps give, for all positions at once. */
void tn_softmax_rows(const struct tn_attention_call *call);

/* ---- softmax_parts.c ---------------------------------------------------- */

extern const struct tn_attention_parts tn_softmax_parts;

#endif
