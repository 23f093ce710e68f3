/* SPDX-License-Identifier: MIT */
/* image.h - images from files, and pictures of them.
 *
 *     tarn_images *images;
 *     tarn_images_open(&images, "data/mnist", &err);
 *     const unsigned char *pixels = tarn_images_at(images, 7);
 *     tarn_png_write("seven.png", pixels, tarn_images_size(images), 1, 1, &err);
 *
 * Pixels are bytes, height x width x channels, row by row; channels are 1 (grey) or 3 (red,
 * green, blue). */
#ifndef TARN_IMAGE_H
#define TARN_IMAGE_H

#include <stdbool.h>

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_image_size {
    size_t height, width, channels;
} tarn_image_size;

/* ---- What a model draws ------------------------------------------------- */

/* Whether the symbols of a task, as a model's configuration names it, are the bytes of images;
 * *size is zeros if it does not say how large they are. */
TARN_API bool tarn_task_image(tarn_image_size *size, const char *task);

/* ---- Images in files ---------------------------------------------------- */

/* Images that a model is tried on: of a folder with MNIST's or CIFAR-10's files the test
 * images, of everything else that the task `image` reads all images. Any number of threads may
 * look at them at once. */
typedef struct tarn_images tarn_images;

TARN_API tarn_status tarn_images_open(tarn_images **images, const char *path, tarn_error *err);
TARN_API void tarn_images_free(tarn_images *images); /* accepts NULL */

TARN_API size_t tarn_images_count(const tarn_images *images);
TARN_API tarn_image_size tarn_images_size(const tarn_images *images);

/* The pixels of image i, in the order of the files; NULL past the last. */
TARN_API const unsigned char *tarn_images_at(const tarn_images *images, size_t i);

/* ---- Pictures ----------------------------------------------------------- */

enum { TARN_PNG_GAP = 1, TARN_PNG_GREY = 128, TARN_PNG_SIDE_MOST = 1000000 };

/* `count` images behind each other become a grid of `columns` in a PNG file. Between images
 * lies a gap of TARN_PNG_GAP pixels of TARN_PNG_GREY, which is also where the last row has
 * none. A side of the grid has TARN_PNG_SIDE_MOST pixels at most. The file is replaced as a
 * whole or not at all. */
TARN_API tarn_status tarn_png_write(const char *path, const unsigned char *pixels,
                                    tarn_image_size size, size_t count, size_t columns,
                                    tarn_error *err);

/* ---- Animations --------------------------------------------------------- */

/* A bar below an animation: it grows from `first` to `last` while the images are drawn. All
 * bars have one scale. */
typedef struct tarn_animation_bar {
    const char *label; /* UTF-8 */
    double first, last;
} tarn_animation_bar;

typedef struct tarn_animation {
    size_t given;        /* bytes of an image that are there from the start */
    size_t scale;        /* screen pixels for a pixel; 0: 3 */
    double seconds;      /* that drawing takes; 0: 8 */
    const bool *still;   /* count of them: images that are shown whole; NULL: none is */
    const char *caption; /* a line above the bars, UTF-8; NULL: none */
    const tarn_animation_bar *bars;
    size_t bar_count;
} tarn_animation;

/* The grid of tarn_png_write() as an animated SVG file, which browsers show in a page: the
 * images appear pixel by pixel, stand for some seconds, and begin again. It contains no script.
 * The file is replaced as a whole or not at all. */
TARN_API tarn_status tarn_svg_write(const char *path, const unsigned char *pixels,
                                    tarn_image_size size, size_t count, size_t columns,
                                    const tarn_animation *animation, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
