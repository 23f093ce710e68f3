/* SPDX-License-Identifier: MIT */
/* optimizer_lion.c - Lion (Chen et al. 2023): the sign of a mean of gradients.
 *
 *   u  = sign(beta1 m + (1 - beta1) g)
 *   w -= rate decay w + rate u        m = beta2 m + (1 - beta2) g
 *
 * Every weight moves by the whole rate, so that rates are 3 to 10 times smaller than adamw's.
 */
#include "train/optimizer.h"

enum { BETA1, BETA2, DECAY };

static const tarn_option_info options[] = {
    [BETA1] = {"beta1", "weight of the moment in the direction of a step", 0.0, 0.9999, 0.9,
               false, NULL},
    [BETA2] = {"beta2", "decay rate of the moment", 0.0, 0.9999, 0.99, false, NULL},
    [DECAY] = {"decay", "weight decay per update, times the learning rate", 0.0, 1.0, 0.01,
               false, NULL},
    {0},
};

struct numbers {
    float gain1, gain2; /* 1 - beta */
    float shrink, rate;
};

static void update_piece(const struct tn_optimizer_step *step, const void *numbers, float scale,
                         size_t from, size_t count)
{
    const struct numbers by = *(const struct numbers *)numbers;
    float *const restrict w = step->w + from, *const restrict m = step->moments[0] + from;
    const float *const restrict g = step->g + from;

    for (size_t i = 0; i < count; i++) {
        const float ahead = scale * g[i] - m[i], along = m[i] + by.gain1 * ahead;
        const float sign = along > 0.0f ? 1.0f : along < 0.0f ? -1.0f : along; /* NaN shows */

        w[i] -= by.shrink * w[i] + by.rate * sign;
        m[i] = tn_moment_floor(m[i] + by.gain2 * ahead);
    }
}

static void update(const struct tn_optimizer_step *step)
{
    const double *const value = step->options->value;
    const struct numbers by = {
        .gain1 = (float)(1.0 - value[BETA1]),
        .gain2 = (float)(1.0 - value[BETA2]),
        .shrink = (float)(step->rate * value[DECAY]),
        .rate = (float)step->rate,
    };

    tn_optimizer_pieces(step, update_piece, &by);
}

const struct tn_optimizer_row tn_optimizer_lion = {
    .about = {"lion", "Lion: steps by the sign of the moment; needs a smaller learning rate",
              options},
    .moments = "m",
    .update = update,
};
