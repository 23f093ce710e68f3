/* SPDX-License-Identifier: MIT */
/* draw.h - generates images, several at a time, each from any number of given bytes. */
#ifndef DRAW_H
#define DRAW_H

#include "stream_block.h"

/* Batch size that makes good use of the processor. An image does not depend on the others in
 * its batch. */
enum { DRAW_AT_ONCE = 256 };

struct draw {
    const tarn_model *model;
    tarn_image_size size;
    tarn_sampling sampling; /* image i has number sampling.number + i */
    tarn_engine_desc how;   /* longest is filled in */
    size_t at_once;         /* images; 0: up to DRAW_AT_ONCE */
    unsigned char *pixels;  /* count images, whose first `given` bytes are there, 1 at least */
    size_t count, given;
    double seconds; /* that it took */
};

size_t image_bytes(tarn_image_size size);

/* The size of the images that a model generates. Refuses a model that is not an image model or
 * does not give the size. */
tarn_image_size image_size(const char *path, const tarn_model *model);

/* Generates the remaining bytes of the images. */
void draw_images(struct draw *draw);

#endif
