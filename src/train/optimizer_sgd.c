/* SPDX-License-Identifier: MIT */
/* optimizer_sgd.c - stochastic gradient descent with momentum, as PyTorch has it.
 *
 *   g' = g + decay w        m = momentum m + g'
 *   w -= rate m             or, with Nesterov's momentum, rate (g' + momentum m) */
#include "train/optimizer.h"

enum { MOMENTUM, DECAY, NESTEROV };

static const char *const no_yes[] = {"no", "yes", NULL};

static const tarn_option_info options[] = {
    [MOMENTUM] = {"momentum", "fraction of the last step that is kept", 0.0, 0.9999, 0.9, false,
                  NULL},
    [DECAY] = {"decay", "weight decay, added to the gradient", 0.0, 1.0, 0.0, false, NULL},
    [NESTEROV] = {"nesterov", "Nesterov's momentum", 0.0, 1.0, 0.0, true, no_yes},
    {0},
};

/* w -= along m + across g' */
struct numbers {
    float momentum, decay, along, across;
};

static void update_piece(const struct tn_optimizer_step *step, const void *numbers, float scale,
                         size_t from, size_t count)
{
    const struct numbers by = *(const struct numbers *)numbers;
    float *const restrict w = step->w + from, *const restrict m = step->moments[0] + from;
    const float *const restrict g = step->g + from;

    for (size_t i = 0; i < count; i++) {
        const float decayed = scale * g[i] + by.decay * w[i];

        m[i] = tn_moment_floor(by.momentum * m[i] + decayed);
        w[i] -= by.along * m[i] + by.across * decayed;
    }
}

static void update(const struct tn_optimizer_step *step)
{
    const double *const value = step->options->value;
    const double momentum = value[MOMENTUM];
    const bool nesterov = value[NESTEROV] > 0.0;
    const struct numbers by = {
        .momentum = (float)momentum,
        .decay = (float)value[DECAY],
        .along = (float)(nesterov ? step->rate * momentum : step->rate),
        .across = (float)(nesterov ? step->rate : 0.0),
    };

    tn_optimizer_pieces(step, update_piece, &by);
}

const struct tn_optimizer_row tn_optimizer_sgd = {
    .about = {"sgd", "stochastic gradient descent with momentum", options},
    .moments = "m",
    .update = update,
};
