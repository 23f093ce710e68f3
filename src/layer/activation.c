/* SPDX-License-Identifier: MIT */
#include "layer/activation.h"

#include <string.h>

struct call {
    const struct tn_rows *r;
    enum tn_activation activation;
    float *to;
    const float *from, *kept;
};

static void copy(float *to, const float *from, size_t n)
{
    if (to != from)
        memcpy(to, from, n * sizeof *to);
}

static void forward_rows(void *arg, size_t from, size_t rows)
{
    const struct call *const call = arg;
    const size_t at = from * call->r->width, n = rows * call->r->width;
    float *const y = call->to + at;
    const float *const x = call->from + at;

    switch (call->activation) {
    case TN_RELU:
        call->r->kernels->relu(y, x, n);
        break;
    case TN_GELU:
        call->r->kernels->gelu(y, x, n);
        break;
    case TN_IDENTITY:
        copy(y, x, n);
    }
}

static void backward_rows(void *arg, size_t from, size_t rows)
{
    const struct call *const call = arg;
    const size_t at = from * call->r->width, n = rows * call->r->width;
    float *const dx = call->to + at;
    const float *const dy = call->from + at;

    switch (call->activation) {
    case TN_RELU:
        call->r->kernels->relu_backward(dx, dy, call->kept + at, n);
        break;
    case TN_GELU:
        call->r->kernels->gelu_backward(dx, dy, call->kept + at, n);
        break;
    case TN_IDENTITY:
        copy(dx, dy, n);
    }
}

bool tn_activation_keeps_input(enum tn_activation activation)
{
    return activation == TN_GELU;
}

void tn_activation_forward(const struct tn_rows *r, enum tn_activation activation, float *y,
                           const float *x)
{
    tn_rows_parallel(r, forward_rows, &(struct call){r, activation, y, x, NULL});
}

void tn_activation_backward(const struct tn_rows *r, enum tn_activation activation, float *dx,
                            const float *dy, const float *kept)
{
    tn_rows_parallel(r, backward_rows, &(struct call){r, activation, dx, dy, kept});
}

const char *tn_activation_name(size_t index)
{
    static const char *const names[] = {
        [TN_IDENTITY] = "identity", [TN_RELU] = "relu", [TN_GELU] = "gelu"};

    return index < sizeof names / sizeof names[0] ? names[index] : NULL;
}
