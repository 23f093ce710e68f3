/* SPDX-License-Identifier: MIT */
/* picture.h - images as a PNG file, as an animated SVG file, and on a terminal. */
#ifndef PICTURE_H
#define PICTURE_H

#include "command.h"

/* Options of commands that write pictures. */
#define PICTURE_SCALE_HELP                                                                     \
    "enlarge every pixel in the file to K x K; 0: 1, or 3 in an animation"
enum { PICTURE_SCALE_MOST = 100 };

/* A grid of `columns`. */
struct picture {
    const struct command *command; /* for messages */
    const unsigned char *pixels;
    tarn_image_size size;
    size_t count, columns;
    size_t scale; /* pixels of a PNG file for one of an image, both ways; 0: 1 */
    const tarn_animation *animation; /* how an SVG file shows them */
};

/* Whether the grid fits into a PNG file; false after a message. Does not read the pixels. */
bool picture_fits(const struct picture *picture);

/* To a file, unless path is NULL: an animation if its name ends in .svg, else a PNG. False
 * after a message. */
bool picture_write(const struct picture *picture, const char *path);

/* If standard output is a terminal: the first rows of the grid, as far as they fit, with two
 * pixels in each character: an upper half block in two colours or, where the terminal has no
 * colours or no UTF-8 (see terminal.h), an ASCII character as dark as both are on average. */
void picture_show(const struct picture *picture);

#endif
