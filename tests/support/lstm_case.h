/* SPDX-License-Identifier: MIT */
/* lstm_case.h - an LSTM that trains, with its arrays. */
#ifndef LSTM_CASE_H
#define LSTM_CASE_H

#include "layer/lstm.h"
#include "support/layer_case.h"

struct lstm_case {
    struct tn_lstm lstm;
    struct floats x, y, dx, dy, weights, dweights;
    size_t *lengths;
    void *acts_memory, *scratch;
    struct tn_lstm_activations acts;
};

/* Random inputs, weights, gradients and lengths; the first sequence is whole. */
struct lstm_case lstm_open(struct tn_lstm_desc d, const struct tn_host *host,
                           struct tn_random *random);
void lstm_close(struct lstm_case *c);

/* All arrays lie behind each other, direction by direction. */
void lstm_carve(struct tn_lstm_weights *w, const struct tn_lstm_desc *d, float *at);

void lstm_forward(struct lstm_case *c);

/* Forward and backward, gradients of the weights from zero. */
void lstm_run(struct lstm_case *c);

#endif
