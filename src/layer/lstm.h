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
 * Who computes it is a row of the table in lstm.c. Results are the same to the last bit for any
 * number of threads; between backends and instruction sets they differ by rounding. */
#ifndef TN_LSTM_H
#define TN_LSTM_H

#include "layer/dense.h"

enum { TN_LSTM_WAYS = 2 };

/* Zero is a valid default for every field but the sizes. */
struct tn_lstm_desc {
    const char *backend;    /* "portable", "onednn"; NULL: the first that can */
    size_t B, N, in, units; /* units: of a direction, H */
    bool one_way;           /* the first direction only */
    bool trains;
};

/* Of one direction, as PyTorch stores them: weight_ih (4H x in), weight_hh (4H x H), bias_ih
 * and bias_hh (4H). */
struct tn_lstm_weights {
    float *in, *hidden, *in_bias, *hidden_bias;
};

/* What forward leaves for backward, which uses it up: the backend's, and nothing in a plan that
 * does not train. */
struct tn_lstm_tape {
    void *at;
};

/* A plan. Immutable, so any number of threads may run it at once, each with its own memory. */
struct tn_lstm {
    struct tn_lstm_desc desc; /* without zeros that stand for something */
    const struct tn_lstm_backend *backend;
    const struct tn_host *host;
    size_t ways; /* directions */
    void *own;   /* the backend's */
};

/* On failure *lstm is cleared. */
tarn_status tn_lstm_init(struct tn_lstm *lstm, const struct tn_lstm_desc *desc,
                         const struct tn_host *host, tarn_error *err);
void tn_lstm_clear(struct tn_lstm *lstm); /* accepts zeros */

size_t tn_lstm_scratch_size(const struct tn_lstm *lstm); /* bytes, of any alignment */
struct tn_lstm_tape tn_lstm_tape_take(const struct tn_lstm *lstm, struct tn_arena *arena);

/* x (B, N, in), finite also beyond lengths, -> y (B, N, ways H). lengths: B, or NULL: all N. */
void tn_lstm_forward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *y,
                     const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch);

/* dx (B, N, in) is 0 beyond lengths, where dy is not looked at; NULL: not wanted. Gradients of
 * the weights are added. */
void tn_lstm_backward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *dx,
                      const struct tn_lstm_weights *dweights, const float *dy, const float *y,
                      const float *x, const struct tn_lstm_weights *weights,
                      const size_t *lengths, void *scratch);

/* The backend that was chosen. */
const char *tn_lstm_name(const struct tn_lstm *lstm);

/* ---- For backends ------------------------------------------------------- */

/* The functions above, of a plan whose `own` is own_size bytes, zeros before create. */
struct tn_lstm_backend {
    const char *name;
    size_t own_size;
    tarn_status (*create)(struct tn_lstm *lstm, tarn_error *err); /* TARN_EMACHINE: not here */
    void (*clear)(struct tn_lstm *lstm); /* accepts what create refused */
    size_t (*scratch_size)(const struct tn_lstm *lstm);
    size_t (*tape_size)(const struct tn_lstm *lstm); /* bytes, aligned to TN_ALIGN */
    void (*forward)(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *y,
                    const float *x, const struct tn_lstm_weights *weights,
                    const size_t *lengths, void *scratch);
    void (*backward)(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *dx,
                     const struct tn_lstm_weights *dweights, const float *dy, const float *y,
                     const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch);
};

/* Of sequence b: its frames, and the row of the one that is number `step` in a direction. */
static inline size_t tn_lstm_length(const struct tn_lstm *lstm, const size_t *lengths, size_t b)
{
    return lengths ? lengths[b] : lstm->desc.N;
}

static inline size_t tn_lstm_row(const struct tn_lstm *lstm, const size_t *lengths, size_t way,
                                 size_t b, size_t step)
{
    return b * lstm->desc.N + (way ? tn_lstm_length(lstm, lengths, b) - 1 - step : step);
}

#endif
