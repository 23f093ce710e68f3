/* SPDX-License-Identifier: MIT */
/* draw.h - generates images, several at a time, each from any number of given bytes. */
#ifndef DRAW_H
#define DRAW_H

#include "command.h"

/* Batch size that makes good use of the processor. An image does not depend on the others in
 * its batch. */
enum { DRAW_AT_ONCE = 256 };

struct draw {
    const struct command *command; /* for messages */
    const tarn_model *model;
    tarn_image_size size;
    tarn_sampling sampling; /* image i has number sampling.number + i */
    tarn_engine_desc how;   /* longest is filled in */
    size_t at_once;         /* images; 0: up to DRAW_AT_ONCE */
    unsigned char *pixels;  /* count images, whose first `given` bytes are there, 1 at least */
    size_t count, given;
    double seconds; /* that it took */
};

size_t draw_bytes(tarn_image_size size); /* of an image */

/* The size of the images that a model generates; zeros after a message if it is not an image
 * model or does not give the size. */
tarn_image_size draw_size(const struct command *command, const char *path,
                          const tarn_model *model);

/* Generates the remaining bytes of the images. Returns an exit code; prints its own errors. */
int draw_images(struct draw *draw);

#endif
