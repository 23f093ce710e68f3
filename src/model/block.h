/* SPDX-License-Identifier: MIT */
/* block.h - one layer of the transformer, (1), over rows of F floats.
 *
 *     post-norm   s = x + A(x)          z = norm1(s)     t = z + E(z)    y = norm2(t)
 *     pre-norm    s = x + A(norm1(x))   z = norm2(s)     y = s + E(z)
 *
 * A projects to the inputs of attention, mixes positions and projects back; E is the
 * feed-forward layer. Who mixes positions is the caller's: attention over whole sequences in
 * training, one step of it in generation. All else is this one definition.
 *
 * Outside of training products add to what they are to be added to, and x becomes y. */
#ifndef TN_BLOCK_H
#define TN_BLOCK_H

#include "layer/dense.h"
#include "layer/dropout.h"
#include "layer/norm.h"
#include "model/weights.h"

/* What all blocks of a run share: they have the same sizes. */
struct tn_block_plan {
    const struct tn_arch *arch;
    struct tn_rows rows;                    /* R x F */
    struct tn_rows inner;                   /* R x feed */
    struct tn_dense project, out, in, back; /* to inputs; from heads; to and from feed */
    size_t projected;                       /* width of all inputs of attention together */
    bool trains;
    void *scratch; /* tn_block_scratch_size() bytes */
};

struct tn_block_desc {
    size_t rows;
    bool trains;
    bool packed; /* forward takes weights by tn_block_pack() */
    enum tn_element elements;
};

tarn_status tn_block_init(struct tn_block_plan *plan, const struct tn_arch *arch,
                          const struct tn_block_desc *desc, const struct tn_host *host,
                          tarn_error *err);
void tn_block_clear(struct tn_block_plan *plan); /* accepts zeros */
size_t tn_block_scratch_size(const struct tn_block_plan *plan);

/* The same plan for fewer rows, as long as this one exists; only with `packed`. Not to be
 * cleared. */
struct tn_block_plan tn_block_of_rows(const struct tn_block_plan *plan, size_t rows);

/* The weights as a plan with `packed` wants them, by tn_dense_pack(). */
struct tn_block_weights tn_block_pack(const struct tn_block_plan *plan,
                                      const struct tn_block_weights *weights,
                                      struct tn_arena *arena);

/* What forward leaves for backward. */
struct tn_block_activations {
    float *first;          /* norm1(x), pre-norm only */
    float *inputs, *mixed; /* of attention: R x projected, R x F */
    float *parameters;     /* of attention, after their activations */
    float *z;
    float *s, *t;           /* t: post-norm only. In training; else s lies in x, t in z */
    float *hidden, *before; /* within E, after and before the activation; before: if kept */
    struct tn_norm_stats *norm[2];
};

struct tn_block_activations tn_block_activations_lay_out(const struct tn_block_plan *plan,
                                                         struct tn_arena *arena);

/* Backward's own arrays, for all blocks. */
struct tn_block_gradients {
    float *dinputs, *dmixed, *dhidden; /* dhidden lies where the other two do */
    float *dparameters;                /* of attention */
    float *branch;                     /* R x F: the gradient of what a branch added */
};

struct tn_block_gradients tn_block_gradients_take(const struct tn_block_plan *plan,
                                                  struct tn_arena *arena);

/* One call on one block. */
struct tn_block {
    const struct tn_block_plan *plan;
    const struct tn_block_weights *weights;
    const struct tn_block_activations *acts;
    float dropout; /* 0 outside of training */
    uint64_t attention_seed, feed_seed;

    /* acts->mixed from acts->inputs, and dinputs from dmixed. */
    void (*mix)(void *arg, const struct tn_block *block);
    void (*mix_backward)(void *arg, const struct tn_block *block,
                         const struct tn_block_gradients *gradients);
    void *arg;
};

/* The arrays of attention, with rows (., N): slices of acts->inputs, side by side in its rows,
 * parameters, and acts->mixed; and of the gradients. */
tarn_attention_arrays tn_block_arrays(const struct tn_block *block, size_t N);
void tn_block_gradient_arrays(tarn_attention_arrays *arrays, const struct tn_block *block,
                              const struct tn_block_gradients *gradients);

/* y is x, but not in training. */
void tn_block_forward(const struct tn_block *block, float *y, const float *x);

/* d, R x F: in dy, out dx. The gradients of the weights are added. */
void tn_block_backward(const struct tn_block *block, float *d,
                       const struct tn_block_gradients *gradients,
                       const struct tn_block_weights *dweights, const float *x);

/* The same without mix and mix_backward, for who mixes many blocks at once: up to acts->inputs,
 * and from acts->mixed on; back to dmixed, and from dinputs on. Only d stays between these. */
void tn_block_begin(const struct tn_block *block, const float *x);
void tn_block_end(const struct tn_block *block, float *y, const float *x);
void tn_block_end_backward(const struct tn_block *block, float *d,
                           const struct tn_block_gradients *gradients,
                           const struct tn_block_weights *dweights);
void tn_block_begin_backward(const struct tn_block *block, float *d,
                             const struct tn_block_gradients *gradients,
                             const struct tn_block_weights *dweights, const float *x);

#endif
