/* SPDX-License-Identifier: MIT */
/* image_bits.h - bits/dim of a model with a mixture of logistics, by its plain definition. */
#ifndef IMAGE_BITS_H
#define IMAGE_BITS_H

#include "support/testing.h"
#include "tarn/tarn.h"

/* The mean over all bytes of `images` images but the first of each, which are fed one by
 * one. */
double bits_by_steps(const tarn_model *model, const unsigned char *pixels, size_t images,
                     size_t bytes);

#endif
