/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "support/lstm_case.h"

enum { ARRAYS = 4 };

static size_t array_size(const struct tn_lstm_desc *d, size_t array)
{
    const size_t H = d->units, sizes[ARRAYS] = {4 * H * d->in, 4 * H * H, 4 * H, 4 * H};

    return sizes[array];
}

static size_t weight_count(const struct tn_lstm_desc *d)
{
    size_t count = 0;

    for (size_t i = 0; i < ARRAYS; i++)
        count += (d->one_way ? 1 : 2) * array_size(d, i);
    return count;
}

/* All arrays lie behind each other, direction by direction. */
void lstm_carve(struct tn_lstm_weights *w, const struct tn_lstm_desc *d, float *at)
{
    for (size_t way = 0; way < (d->one_way ? 1 : 2); way++) {
        float **const arrays[ARRAYS] = {&w[way].in, &w[way].hidden, &w[way].in_bias,
                                        &w[way].hidden_bias};

        for (size_t i = 0; i < ARRAYS; i++) {
            *arrays[i] = at;
            at += array_size(d, i);
        }
    }
}

struct lstm_case lstm_open(struct tn_lstm_desc d, const struct tn_host *host,
                           struct tn_random *random)
{
    const size_t rows = d.B * d.N, ways = d.one_way ? 1 : 2;
    struct tn_arena arena = tn_arena_over(NULL);
    struct lstm_case c;
    tarn_error err;

    d.trains = true;
    check_ok(tn_lstm_init(&c.lstm, &d, host, &err), &err);
    c.x = floats_open(rows * d.in, 1.0, random);
    c.dx = floats_open(rows * d.in, 1.0, random);
    c.y = floats_open(rows * ways * d.units, 1.0, random);
    c.dy = floats_open(rows * ways * d.units, 1.0, random);
    c.weights = floats_open(weight_count(&d), 0.5, random);
    c.dweights = floats_open(weight_count(&d), 1.0, random);
    c.lengths = take(d.B, sizeof *c.lengths);
    for (size_t b = 0; b < d.B; b++)
        c.lengths[b] = b == 0 ? d.N : below(random, d.N + 1);
    tn_lstm_activations_lay_out(&c.lstm, &arena);
    c.acts_memory = take(tn_arena_bytes(&arena), 1);
    arena = tn_arena_over(c.acts_memory);
    c.acts = tn_lstm_activations_lay_out(&c.lstm, &arena);
    c.scratch = take(tn_lstm_scratch_size(&c.lstm), 1);
    return c;
}

void lstm_close(struct lstm_case *c)
{
    tn_lstm_clear(&c->lstm);
    floats_close(&c->x);
    floats_close(&c->dx);
    floats_close(&c->y);
    floats_close(&c->dy);
    floats_close(&c->weights);
    floats_close(&c->dweights);
    free(c->lengths);
    free(c->acts_memory);
    free(c->scratch);
}

void lstm_forward(struct lstm_case *c)
{
    struct tn_lstm_weights w[TN_LSTM_WAYS];

    lstm_carve(w, &c->lstm.desc, c->weights.at);
    tn_lstm_forward(&c->lstm, &c->acts, c->y.at, c->x.at, w, c->lengths, c->scratch);
}

/* Gradients of the weights from zero. */
void lstm_run(struct lstm_case *c)
{
    struct tn_lstm_weights w[TN_LSTM_WAYS], dw[TN_LSTM_WAYS];

    lstm_carve(w, &c->lstm.desc, c->weights.at);
    lstm_carve(dw, &c->lstm.desc, c->dweights.at);
    memset(c->dweights.at, 0, c->dweights.n * sizeof(float));
    lstm_forward(c);
    tn_lstm_backward(&c->lstm, &c->acts, c->dx.at, dw, c->dy.at, c->y.at, c->x.at, w,
                     c->lengths, c->scratch);
}
