/* SPDX-License-Identifier: MIT */
/* generate_images.h - tarn generate, for a model of images. */
#ifndef GENERATE_IMAGES_H
#define GENERATE_IMAGES_H

#include "generate_options.h"

/* Every image begins with the prompt. The exit code. */
int generate_images(const struct generate_options *options, const tarn_model *model,
                    const int32_t *prompt, size_t prompt_count);

#endif
