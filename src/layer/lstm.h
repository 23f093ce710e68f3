/* SPDX-License-Identifier: MIT */
/* lstm.h - a layer of long short-term memory, one way or both ways along each sequence; the
 * paper's baseline for speech has three of 320 units a direction.
 *
 *     z = W x_t + b + U h + b'       i, f, g, o are z's quarters, in PyTorch's order
 *     c = sigma(f) c + sigma(i) tanh(g)     h = sigma(o) tanh(c)     from c = h = 0
 *
 * The first direction runs from frame 0 on, the second from each sequence's last frame back.
 * The output of a frame is h of the first direction, then that of the second; beyond a
 * sequence's length it is 0.
 *
 * Results are the same to the last bit for any number of threads; between instruction sets they
 * differ by rounding. */
#ifndef TN_LSTM_H
#define TN_LSTM_H

#include "layer/dense.h"

enum { TN_LSTM_WAYS = 2 };

/* Zero is a valid default for every field but the sizes. */
struct tn_lstm_desc {
    size_t B, N, in, units; /* units: of a direction, H */
    bool one_way;           /* the first direction only */
    bool trains;
};

/* Of one direction, as PyTorch stores them: weight_ih (4H x in), weight_hh (4H x H), bias_ih
 * and bias_hh (4H). */
struct tn_lstm_weights {
    float *in, *hidden, *in_bias, *hidden_bias;
};

/* What forward leaves for backward, which uses it up. */
struct tn_lstm_activations {
    float *gates[TN_LSTM_WAYS]; /* B N x 4H */
    float *cells[TN_LSTM_WAYS]; /* B N x H */
};

/* A plan. Immutable, so any number of threads may run it at once, each with its own memory. */
struct tn_lstm {
    struct tn_lstm_desc desc;
    const struct tn_host *host;
    size_t ways;                           /* directions */
    size_t chunks;                         /* of sequences, of about equal size */
    struct tn_dense project[TN_LSTM_WAYS]; /* x W^T + b of all frames */
    struct tn_matmul *forward, *backward;  /* h U^T, dz U of one frame of a chunk */
    struct tn_matmul *weights;             /* dU = dz^T h of all frames */
};

/* On failure *lstm is cleared. */
tarn_status tn_lstm_init(struct tn_lstm *lstm, const struct tn_lstm_desc *desc,
                         const struct tn_host *host, tarn_error *err);
void tn_lstm_clear(struct tn_lstm *lstm); /* accepts zeros */

size_t tn_lstm_scratch_size(const struct tn_lstm *lstm); /* bytes, of any alignment */

/* Empty in a plan that does not train. */
struct tn_lstm_activations tn_lstm_activations_lay_out(const struct tn_lstm *lstm,
                                                       struct tn_arena *arena);

/* x (B, N, in), finite also beyond lengths, -> y (B, N, ways H). lengths: B, or NULL: all N. */
void tn_lstm_forward(const struct tn_lstm *lstm, const struct tn_lstm_activations *acts,
                     float *y, const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch);

/* dx (B, N, in) is 0 beyond lengths, where dy is not looked at; NULL: not wanted. Gradients of
 * the weights are added. */
void tn_lstm_backward(const struct tn_lstm *lstm, const struct tn_lstm_activations *acts,
                      float *dx, const struct tn_lstm_weights *dweights, const float *dy,
                      const float *y, const float *x, const struct tn_lstm_weights *weights,
                      const size_t *lengths, void *scratch);

#endif
