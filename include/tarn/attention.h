/* SPDX-License-Identifier: MIT */
/* attention.h - every attention of the paper, on the caller's own arrays.
 *
 *     q (B, N, H, D)   k (B, Nk, H, D)   v (B, Nk, H, M)   ->   y (B, N, H, M)
 *
 * A plan fixes the kind of attention and the sizes, and is made once. Forward,
 * backward and step then run on arrays that the caller describes by strides,
 * with memory that the caller provides: they allocate nothing.
 *
 *     tarn_attention_desc desc = { .kind = "linear", .causal = true, .batch = 1,
 *         .heads = 8, .queries = 1024, .keys = 1024, .query_width = 32, .value_width = 32 };
 *     tarn_attention *attention;
 *     tarn_attention_create(&attention, &desc, &err);
 *     void *work = malloc(tarn_attention_workspace_size(attention));
 *     tarn_attention_forward(attention, &arrays, NULL, work, &err);
 *
 * Results are the same to the last bit for any number of threads.
 */
#ifndef TARN_ATTENTION_H
#define TARN_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* A plan. Immutable but for tarn_attention_redraw(), so any number of threads
 * may use one plan at once, each with its own arrays, saved, state and work. */
typedef struct tarn_attention tarn_attention;

/* Zero is a valid default for every field but `kind` and the sizes. */
typedef struct tarn_attention_desc {
    const char *kind;        /* "linear", "softmax", "lsh", "kernel"; options behind a colon:
                                "lsh:rounds=4,chunk=32" */
    const char *feature_map; /* "elu", "relu", "positive:features=64", ...; NULL: "elu" where
                                the kind has a feature map, none elsewhere */
    bool causal;             /* position i sees keys 0..i only; needs queries = keys. (In lsh,
                                later positions get no weight but take part in the sort.) */
    size_t batch, heads;     /* B, H */
    size_t queries, keys;    /* N and Nk; for a step, keys is the longest sequence */
    size_t query_width;      /* D, of queries and keys */
    size_t value_width;      /* M, of values and outputs */
    uint64_t seed;           /* of random features and hashes */
    size_t threads;          /* 0: all */
    const char *cpu;         /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const tarn_allocator *allocator; /* NULL: malloc */
} tarn_attention_desc;

/* Arrays in f32. Element (b, n, h, e) lies at data[b*batch + n*position + h*head + e]:
 * strides are counted in floats, the last dimension is contiguous. So
 *     (B, N, H, D) is { p, N*H*D, H*D, D },   (B, H, N, D) is { p, H*N*D, D, N*D },
 * and the keys within one QKV matrix (B, N, 3, H, D) are { p + H*D, N*3*H*D, 3*H*D, D }.
 * Inputs may have any strides, zero and negative too. Outputs may overlap neither themselves,
 * which is checked, nor each other or an input, which is not. */
typedef struct tarn_input {
    const float *data;
    ptrdiff_t batch, position, head;
} tarn_input;

typedef struct tarn_output {
    float *data;
    ptrdiff_t batch, position, head;
} tarn_output;

/* The arrays of one call. Forward and step read q, k, v and write y. Backward reads q, k, v,
 * y and dy, and writes dq, dk, dv. A kind that shares queries and keys (`lsh`) ignores k, which
 * may be all zero, and writes no dk. */
typedef struct tarn_attention_arrays {
    tarn_input q, k, v;
    tarn_output y;
    tarn_input dy;
    tarn_output dq, dk, dv;
    const size_t *key_lengths; /* B of them, each at most `keys`, or NULL: all are `keys`.
                                  Keys and values past a length are never looked at. Where no
                                  key is visible the output is 0. Not for a step. */
} tarn_attention_arrays;

/* ---- Life --------------------------------------------------------------- */

/* Validates everything a call could stumble over. On failure *attention is NULL. */
TARN_API tarn_status tarn_attention_create(tarn_attention **attention,
                                           const tarn_attention_desc *desc, tarn_error *err);

/* Accepts NULL. */
TARN_API void tarn_attention_free(tarn_attention *attention);

/* Draws random features or hashes anew. They are otherwise those of the desc's seed: frozen, in
 * training as at evaluation. Not while another thread uses the plan. */
TARN_API void tarn_attention_redraw(tarn_attention *attention, uint64_t seed);

/* ---- Use ---------------------------------------------------------------- */

/* Bytes that a call needs besides the arrays. No alignment is asked of the memory, but that of
 * floats of a state.
 *   saved      from forward to its backward; forward takes NULL where no backward follows
 *   workspace  scratch of one forward, backward or step
 *   state      from step to step for the whole batch: zeros are the start (16)(17), it holds
 *              no pointers, memcpy() is a snapshot. With linear attention it does not depend
 *              on the length. 0: this kind has no recurrent form. */
TARN_API size_t tarn_attention_saved_size(const tarn_attention *attention);
TARN_API size_t tarn_attention_workspace_size(const tarn_attention *attention);
TARN_API size_t tarn_attention_state_size(const tarn_attention *attention);

/* They fail only on pointers, strides and lengths that cannot be used, before
 * anything is written. */
TARN_API tarn_status tarn_attention_forward(const tarn_attention *attention,
                                            const tarn_attention_arrays *arrays, void *saved,
                                            void *workspace, tarn_error *err);
TARN_API tarn_status tarn_attention_backward(const tarn_attention *attention,
                                             const tarn_attention_arrays *arrays,
                                             const void *saved, void *workspace,
                                             tarn_error *err);

/* The next position of every sequence (18)-(20): q, k, v and y hold one position, their
 * position strides are ignored. The plan must be causal. A kind with a growing cache fails with
 * TARN_EINVAL when `keys` positions are in it. */
TARN_API tarn_status tarn_attention_step(const tarn_attention *attention,
                                         const tarn_attention_arrays *arrays, void *state,
                                         void *workspace, tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

/* Multiply-adds that the mathematics asks of one forward or backward, times two: the same for
 * any implementation, so that speeds compare. 0 where no such count is agreed (lsh, kernel). */
TARN_API double tarn_attention_forward_flops(const tarn_attention *attention);
TARN_API double tarn_attention_backward_flops(const tarn_attention *attention);

/* The tables behind the names: rows 0, 1, ...; NULL past the last. */
typedef struct tarn_option_info {
    const char *name;
    const char *help;
    double minimum, maximum, initial;
    bool whole;                 /* only whole numbers */
    const char *const *choices; /* names, ended by NULL; values are then their indices */
} tarn_option_info;

typedef struct tarn_table_row {
    const char *name;
    const char *help;
    const tarn_option_info *options; /* ended by a NULL name */
} tarn_table_row;

TARN_API const tarn_table_row *tarn_attention_kind(size_t index);

/* Whether the keys of a kind, named as in a desc, are its queries, as with "lsh": there is no k
 * and no dk, and N = Nk. False if there is no such kind. */
TARN_API bool tarn_attention_shares_keys(const char *kind);

TARN_API const tarn_table_row *tarn_feature_map(size_t index);

/* ---- The numerator alone ------------------------------------------------ */

/* y_i = q_i^T sum_{j <= i} k_j v_j^T: the numerator of (8) for q and k that already went
 * through a feature map, for callers who do their own normalisation. */
typedef struct tarn_dot_product_sizes {
    size_t batch, heads, length, query_width, value_width;
    size_t threads; /* 0: all */
} tarn_dot_product_sizes;

/* Workspace of either call, 0 if the sizes cannot be used. */
TARN_API size_t tarn_causal_dot_product_workspace_size(const tarn_dot_product_sizes *sizes);

TARN_API tarn_status tarn_causal_dot_product(const tarn_dot_product_sizes *sizes, tarn_output y,
                                             tarn_input q, tarn_input k, tarn_input v,
                                             void *workspace, tarn_error *err);

/* Gradients of a loss whose gradient with respect to y is dy: (13), (14), (15). */
TARN_API tarn_status tarn_causal_dot_product_backward(const tarn_dot_product_sizes *sizes,
                                                      tarn_output dq, tarn_output dk,
                                                      tarn_output dv, tarn_input q,
                                                      tarn_input k, tarn_input v, tarn_input dy,
                                                      void *workspace, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
