/* SPDX-License-Identifier: MIT */
/* attention.h - the attention kinds of the paper, on the caller's own arrays.
 *
 *     query (B, N, H, D)   key (B, Nk, H, D)   value (B, Nk, H, M)   ->   y (B, N, H, M)
 *
 * Each kind declares its inputs: tarn_attention_inputs().
 *
 * Create a plan once for an attention kind and its sizes. The forward pass, the backward pass
 * and the recurrent step then run on arrays that the caller describes by strides, in memory
 * that the caller provides: they allocate nothing. Numbers in parentheses such as (18) are
 * equations of the paper.
 *
 *     tarn_attention_desc desc = { .kind = "linear", .causal = true, .batch = 1,
 *         .heads = 8, .queries = 1024, .keys = 1024, .query_width = 32, .value_width = 32 };
 *     tarn_attention *attention;
 *     tarn_attention_create(&attention, &desc, &err);
 *     void *work = malloc(tarn_attention_workspace_size(attention));
 *     tarn_attention_forward(attention, &arrays, NULL, work, &err);
 *
 * Results are bit-identical for any number of threads. */
#ifndef TARN_ATTENTION_H
#define TARN_ATTENTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* A plan. Only tarn_attention_redraw() changes it: any number of threads may use one plan at
 * the same time, each with its own arrays, saved data, state and workspace. */
typedef struct tarn_attention tarn_attention;

/* Zero is a valid default for every field except `kind` and the sizes. Strings need to live
 * only during the call of tarn_attention_create(). */
typedef struct tarn_attention_desc {
    const char *kind;        /* a name of tarn_attention_kind(), with options after a colon:
                                "linear", "softmax", "lsh:rounds=4,chunk=32", ... */
    const char *feature_map; /* a name of tarn_feature_map(), with options: "elu", "relu",
                                "positive:features=64", ...; NULL: "elu" for kinds with a
                                feature map, none for others */
    bool causal;             /* position i attends only to keys 0..i; arrays then have as many
                                keys as queries. (With lsh, later positions get no weight, but
                                do take part in the sorting.) */
    size_t batch, heads;     /* B, H */
    size_t queries, keys; /* N and Nk. If causal, keys is the maximum length of a sequence that
                             is continued with states, at least N */
    size_t query_width;   /* D, width of queries and keys */
    size_t value_width;   /* M, width of values and outputs */
    uint64_t seed;        /* random seed of random features and hashes */
    tarn_host host;
} tarn_attention_desc;

/* Arrays of floats. Element (b, n, h, e) is data[b*batch + n*position + h*head + e]: strides
 * are in floats, and the last dimension is contiguous. For example
 *     (B, N, H, D) is { p, N*H*D, H*D, D },   (B, H, N, D) is { p, H*N*D, D, N*D },
 * and the keys in a fused QKV matrix (B, N, 3, H, D) are { p + H*D, N*3*H*D, 3*H*D, D }.
 * Inputs may have any strides, including zero and negative ones. The elements of an output must
 * not overlap each other, which is checked, nor another output or an input, which is not. */
typedef struct tarn_input {
    const float *data;
    ptrdiff_t batch, position, head;
} tarn_input;

typedef struct tarn_output {
    float *data;
    ptrdiff_t batch, position, head;
} tarn_output;

enum { TARN_ATTENTION_INPUTS = 8 }; /* maximum number of inputs of a kind */

/* The arrays of one call. Forward and step read the inputs and write y. Backward reads the
 * inputs, y and dy (the gradient of the loss with respect to y), and writes the gradients of
 * the inputs. Arrays that a call or a kind does not use may be zero. */
typedef struct tarn_attention_arrays {
    tarn_input in[TARN_ATTENTION_INPUTS]; /* in the order of tarn_attention_inputs() */
    tarn_output y;
    tarn_input dy;
    tarn_output din[TARN_ATTENTION_INPUTS];
    const size_t *key_lengths; /* B lengths of at most Nk, or N if causal; NULL: all keys are
                                  there. Inputs at keys past a length are never read. The output
                                  is 0 where a query has no key. Must be NULL for a step. */

    /* States of B sequences, tarn_attention_state_size() bytes each, one after the other, for
     * forward and backward of a causal plan whose kind has a recurrent form. Forward continues
     * the sequences from state0 (NULL: from their start) and leaves in state1 (NULL: not
     * wanted; may be state0) what single steps would leave; with either, outputs and states are
     * bit-identical to those of single steps. With key_lengths each sequence is continued by as
     * many positions. Kinds whose state is a growing cache (softmax, kernel) need state1, and
     * refuse more than `keys` positions.
     *
     * Backward needs state0 as it was for forward. The gradients of states have a float for
     * each float of a state; dstate1 NULL: zeros, dstate0 NULL: not wanted. */
    const void *state0;
    void *state1;
    const float *dstate1;
    float *dstate0;
} tarn_attention_arrays;

/* ---- Create and free ---------------------------------------------------- */

/* Creates a plan and checks everything that does not depend on the arrays of a call. On failure
 * *attention is NULL. Free the plan with tarn_attention_free(). */
TARN_API tarn_status tarn_attention_create(tarn_attention **attention,
                                           const tarn_attention_desc *desc, tarn_error *err);

/* Accepts NULL. */
TARN_API void tarn_attention_free(tarn_attention *attention);

/* Draws new random features or hashes. Otherwise they are those of desc->seed, and stay the
 * same in training and evaluation. Must not be called while another thread uses the plan. */
TARN_API void tarn_attention_redraw(tarn_attention *attention, uint64_t seed);

/* ---- Use ---------------------------------------------------------------- */

/* Bytes of memory that a call needs besides the arrays. The memory needs no alignment, except
 * that a state must be aligned like floats.
 *   saved      kept from a forward pass for its backward pass. Pass NULL to forward if no
 *              backward pass follows.
 *   workspace  scratch memory for one forward, backward or step
 *   state      of one sequence, kept from step to step and from piece to piece. All zeros is
 *              the initial state (16), (17). It contains no pointers: memcpy() makes a copy
 *              that continues on its own. With linear attention its size does not depend on
 *              the sequence length. Size 0: the kind has no recurrent form, or the plan is not
 *              causal. */
TARN_API size_t tarn_attention_saved_size(const tarn_attention *attention);
TARN_API size_t tarn_attention_workspace_size(const tarn_attention *attention);
TARN_API size_t tarn_attention_state_size(const tarn_attention *attention);

/* Forward and backward pass over whole sequences. They fail with TARN_EINVAL on invalid
 * pointers, strides or lengths, before anything is written. */
TARN_API tarn_status tarn_attention_forward(const tarn_attention *attention,
                                            const tarn_attention_arrays *arrays, void *saved,
                                            void *workspace, tarn_error *err);
TARN_API tarn_status tarn_attention_backward(const tarn_attention *attention,
                                             const tarn_attention_arrays *arrays,
                                             const void *saved, void *workspace,
                                             tarn_error *err);

/* Recurrent form: processes the next position of n sequences, (18)-(20), and updates their
 * states, wherever these lie and however far each of them is. n need not be the plan's batch.
 * Inputs and y have n sequences of one position; their position strides are ignored. No state
 * may occur twice, which is not checked. The plan must be causal. A kind whose state is a
 * growing cache (softmax, kernel) fails with TARN_EINVAL if one of the states already contains
 * `keys` positions, and every kind if one is the state of another kind or of other sizes; then
 * no state has changed. */
TARN_API tarn_status tarn_attention_step(const tarn_attention *attention,
                                         const tarn_attention_arrays *arrays,
                                         void *const *states, size_t n, void *workspace,
                                         tarn_error *err);

/* ---- Information -------------------------------------------------------- */

/* Floating-point operations of one forward or backward pass, by the definition: a multiply-add
 * counts as two. The count does not depend on the implementation, so speeds can be compared. 0
 * for kinds without an agreed count (lsh, kernel). */
TARN_API double tarn_attention_forward_flops(const tarn_attention *attention);
TARN_API double tarn_attention_backward_flops(const tarn_attention *attention);

/* Tables of the available names and their options, for help texts and menus: rows 0, 1, ...;
 * NULL past the last. All tables and strings are static. */
typedef struct tarn_option_info {
    const char *name;
    const char *help;
    double minimum, maximum, initial;
    bool whole;                 /* only whole numbers are allowed */
    const char *const *choices; /* NULL, or the allowed names, ended by NULL; minimum, maximum
                                   and initial are then indices of these */
} tarn_option_info;

typedef struct tarn_table_row {
    const char *name;
    const char *help;
    const tarn_option_info *options; /* ended by a NULL name */
} tarn_table_row;

TARN_API const tarn_table_row *tarn_attention_kind(size_t index);

/* Floats per head of an input. */
typedef enum tarn_input_width {
    TARN_QUERY_WIDTH, /* D */
    TARN_VALUE_WIDTH, /* M */
    TARN_SCALAR       /* 1 */
} tarn_input_width;

/* What a model applies to an input that it makes. */
typedef enum tarn_input_activation {
    TARN_INPUT_IDENTITY,
    TARN_INPUT_SIGMOID
} tarn_input_activation;

/* One input of a kind, and how a model makes it: by a projection of its activations, or as a
 * parameter that it learns. */
typedef struct tarn_attention_input {
    const char *name; /* "query", "key", "value", ... */
    const char *help;
    tarn_input_width width;
    bool at_keys;   /* has the positions and lengths of the keys, not those of the queries */
    bool parameter; /* has one row per head, the same at all positions of all sequences: its
                       strides along these are ignored, and its gradient is the sum over them */
    tarn_input_activation activation;
    float start; /* initial value of a parameter, or of the bias of a projection that has an
                    activation, before the activation; other biases are drawn */
} tarn_attention_input;

/* The inputs of a kind, which is given as in tarn_attention_desc, in the order of
 * tarn_attention_arrays; ended by a NULL name. Most take query, key and value; "lsh", which
 * uses its queries as keys, takes query and value. NULL for an unknown kind. */
TARN_API const tarn_attention_input *tarn_attention_inputs(const char *kind);

TARN_API const tarn_table_row *tarn_feature_map(size_t index);

/* ---- Causal dot product ------------------------------------------------- */

/* y_i = q_i^T sum_{j <= i} k_j v_j^T: the numerator of (8), for q and k to which a feature map
 * has already been applied, and for callers that normalise on their own. */
typedef struct tarn_dot_product_sizes {
    size_t batch, heads, length, query_width, value_width;
    tarn_host host;
} tarn_dot_product_sizes;

/* Bytes of workspace for either function; 0 if the sizes are invalid. */
TARN_API size_t tarn_causal_dot_product_workspace_size(const tarn_dot_product_sizes *sizes);

TARN_API tarn_status tarn_causal_dot_product(const tarn_dot_product_sizes *sizes, tarn_output y,
                                             tarn_input q, tarn_input k, tarn_input v,
                                             void *workspace, tarn_error *err);

/* Gradients dq, dk and dv, given dy, the gradient of the loss with respect to y: (13)-(15). */
TARN_API tarn_status tarn_causal_dot_product_backward(const tarn_dot_product_sizes *sizes,
                                                      tarn_output dq, tarn_output dk,
                                                      tarn_output dv, tarn_input q,
                                                      tarn_input k, tarn_input v, tarn_input dy,
                                                      void *workspace, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
