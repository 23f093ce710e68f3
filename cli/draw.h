/* SPDX-License-Identifier: MIT */
/* draw.h - images from a model, several at once, from any number of bytes that are given. */
#ifndef DRAW_H
#define DRAW_H

#include "args.h"
#include "tarn/tarn.h"

/* Image i is the same whether it is drawn alone or with others; so many make good use of the
 * processor. */
enum { DRAW_AT_ONCE = 256 };

struct draw {
    const struct args_command *command; /* for messages */
    const tarn_model *model;
    tarn_image_size size;
    tarn_sampling sampling;  /* image i is stream sampling.stream + i */
    tarn_generator_desc how; /* batch: images at once, 0: up to DRAW_AT_ONCE; longest is
                                filled in */
    unsigned char *pixels;   /* count images, whose first `given` bytes are there, 1 at least */
    size_t count, given;
    double seconds; /* that it took */
};

size_t draw_bytes(tarn_image_size size); /* of an image */

/* The size of the images that a model draws; zeros, after a message: it draws none, or does not
 * say. */
tarn_image_size draw_size(const char *command, const char *path, const tarn_model *model);

/* All other bytes of the images. An exit code, after a message if it is not EXIT_DONE. */
int draw_images(struct draw *draw);

#endif
