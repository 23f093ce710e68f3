/* SPDX-License-Identifier: MIT */
/* lstm_sweep.h - an LSTM (lstm.h) one way along T frames of R sequences that are all as long,
 * by oneDNN, on the calling thread.
 *
 * Arrays hold frame after frame, (T, R, width); gradients of W (in, 4H) and U (H, 4H) are the
 * transposes of PyTorch's. Weights are first brought into the order that oneDNN likes. */
#ifndef TN_LSTM_SWEEP_H
#define TN_LSTM_SWEEP_H

#include "base/base.h"

struct tn_lstm_sweep_desc {
    size_t T, R, in, units;
    bool trains;
    const tarn_allocator *allocator;
};

/* Bytes, whole TN_ALIGN; what begins such an array is aligned so, too. */
struct tn_lstm_sweep_sizes {
    size_t in, hidden; /* weights as they are held */
    size_t tape, scratch;
};

/* A plan. Immutable, so any number of threads may run it at once, each with its own memory. */
struct tn_lstm_sweep;

/* TARN_EMACHINE: oneDNN has none such. */
tarn_status tn_lstm_sweep_create(struct tn_lstm_sweep **sweep,
                                 const struct tn_lstm_sweep_desc *desc, tarn_error *err);
void tn_lstm_sweep_free(struct tn_lstm_sweep *sweep); /* accepts NULL */

struct tn_lstm_sweep_sizes tn_lstm_sweep_sizes(const struct tn_lstm_sweep *sweep);

/* What one call reads and writes; backward reads what forward wrote. */
struct tn_lstm_sweep_arrays {
    const void *in, *hidden; /* W and U, held */
    const float *bias;       /* 4H, the sum of both */
    const float *x;
    float *y;
    void *tape; /* of forward for backward, in a plan that trains */
    const float *dy;
    float *dx, *din, *dhidden, *dbias;
    void *scratch;
};

/* These are false where oneDNN found no memory for its small objects. Weights are PyTorch's;
 * ways back hold them otherwise than ways forth. */
bool tn_lstm_sweep_hold(const struct tn_lstm_sweep *sweep, void *in, void *hidden,
                        const float *weights_in, const float *weights_hidden, bool back,
                        void *scratch);
bool tn_lstm_sweep_forward(const struct tn_lstm_sweep *sweep,
                           const struct tn_lstm_sweep_arrays *arrays);
bool tn_lstm_sweep_backward(const struct tn_lstm_sweep *sweep,
                            const struct tn_lstm_sweep_arrays *arrays);

#endif
