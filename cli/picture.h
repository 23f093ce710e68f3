/* SPDX-License-Identifier: MIT */
/* picture.h - images as a PNG file, as an animated SVG file, and on a terminal. In an animation
 * they appear pixel by pixel, with the memory that this takes below them: the model's own, and
 * that of softmax attention where the model's does not grow. */
#ifndef PICTURE_H
#define PICTURE_H

#include "command.h"

/* Options of commands that write pictures. */
#define PICTURE_SCALE_HELP                                                                     \
    "enlarge every pixel in the file to K x K; 0: 1, or 3 in an animation"
enum { PICTURE_SCALE_MOST = 100 };

/* A grid of `columns`. */
struct picture {
    const unsigned char *pixels;
    tarn_image_size size;
    size_t count, columns;
    size_t scale; /* pixels of a PNG file for one of an image, both ways; 0: 1 */
    const tarn_animation *animation; /* how an SVG file shows them */
};

/* Refuses a grid that does not fit into a PNG file. Does not read the pixels. */
void picture_check(const struct picture *picture);

/* To a file: an animation if its name ends in .svg, else a PNG. */
void picture_write(const struct picture *picture, const char *path);

/* If standard output is a terminal: the first rows of the grid, as far as they fit, with two
 * pixels in each character: an upper half block in two colours or, where the terminal has no
 * colours or no UTF-8 (see terminal.h), an ASCII character as dark as both are on average. */
void picture_show(const struct picture *picture);

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
