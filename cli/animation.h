/* SPDX-License-Identifier: MIT */
/* animation.h - images that appear pixel by pixel, with the memory that this takes below them:
 * the model's own, and that of softmax attention where the model's does not grow. */
#ifndef ANIMATION_H
#define ANIMATION_H

#include "tarn/tarn.h"

enum { ANIMATION_BARS = 2 };

/* `how` points to the rest: it is good as long as the struct stays where it is. */
struct animation {
    tarn_animation how;
    tarn_animation_bar bars[ANIMATION_BARS];
    char labels[ANIMATION_BARS][128];
};

/* Of images of `bytes` each, the first `given` of which are there from the start. */
void animation_of(struct animation *animation, const tarn_model *model, size_t bytes,
                  size_t given);

#endif
