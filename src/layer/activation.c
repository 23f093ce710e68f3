/* SPDX-License-Identifier: MIT */
#include "layer/activation.h"

#include <string.h>

struct call {
    const struct tn_rows *r;
    enum tn_activation activation;
    float *to;
    const float *from, *kept;
};

/* A stretch of whole rows. */
struct stretch {
    size_t at, n;
};

static struct stretch stretch_of(const struct call *call, size_t index)
{
    const size_t block = tn_rows_block(call->r), width = call->r->width;

    return (struct stretch){index * block * width,
                            tn_min(block, call->r->rows - index * block) * width};
}

static void copy(float *to, const float *from, size_t n)
{
    if (to != from)
        memcpy(to, from, n * sizeof *to);
}

static void forward_block(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct stretch s = stretch_of(call, index);
    float *const y = call->to + s.at;
    const float *const x = call->from + s.at;

    (void)thread;
    switch (call->activation) {
    case TN_RELU:
        call->r->kernels->relu(y, x, s.n);
        break;
    case TN_GELU:
        call->r->kernels->gelu(y, x, s.n);
        break;
    case TN_IDENTITY:
        copy(y, x, s.n);
    }
}

static void backward_block(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct stretch s = stretch_of(call, index);
    float *const dx = call->to + s.at;
    const float *const dy = call->from + s.at;

    (void)thread;
    switch (call->activation) {
    case TN_RELU:
        call->r->kernels->relu_slope(dx, dy, call->kept + s.at, s.n);
        break;
    case TN_GELU:
        call->r->kernels->gelu_slope(dx, dy, call->kept + s.at, s.n);
        break;
    case TN_IDENTITY:
        copy(dx, dy, s.n);
    }
}

bool tn_activation_keeps_input(enum tn_activation activation)
{
    return activation == TN_GELU;
}

void tn_activation_forward(const struct tn_rows *r, enum tn_activation activation, float *y,
                           const float *x)
{
    tn_parallel(r->threads, tn_blocks(r->rows, tn_rows_block(r)), forward_block,
                &(struct call){r, activation, y, x, NULL});
}

void tn_activation_backward(const struct tn_rows *r, enum tn_activation activation, float *dx,
                            const float *dy, const float *kept)
{
    tn_parallel(r->threads, tn_blocks(r->rows, tn_rows_block(r)), backward_block,
                &(struct call){r, activation, dx, dy, kept});
}

const char *tn_activation_name(size_t index)
{
    static const char *const names[] = {
        [TN_IDENTITY] = "identity", [TN_RELU] = "relu", [TN_GELU] = "gelu"};

    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}
