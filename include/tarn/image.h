/* SPDX-License-Identifier: MIT */
/* image.h - reading image data sets, and writing PNG files.
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

/* ---- Image models ------------------------------------------------------- */

/* Whether a task, as in tarn_config.task, generates images; *size becomes their size, or zeros
 * if the task does not say it. */
TARN_API bool tarn_task_image(tarn_image_size *size, const char *task);

/* ---- Reading images ----------------------------------------------------- */

/* Images in memory. Any number of threads may read them at the same time. */
typedef struct tarn_images tarn_images;

/* Reads the test images of a folder with the MNIST or CIFAR-10 files, or all images of any
 * other path that task "image" accepts: a folder of PNG files, a PNG file, a list of these, IDX
 * or CIFAR-10 records. */
TARN_API tarn_status tarn_images_open(tarn_images **images, const char *path, tarn_error *err);
TARN_API void tarn_images_free(tarn_images *images); /* accepts NULL */

TARN_API size_t tarn_images_count(const tarn_images *images);
TARN_API tarn_image_size tarn_images_size(const tarn_images *images);

/* The pixels of image i, in the order of the files; NULL past the last. They belong to
 * `images`. */
TARN_API const unsigned char *tarn_images_at(const tarn_images *images, size_t i);

/* ---- Writing PNG files -------------------------------------------------- */

enum { TARN_PNG_GAP = 1, TARN_PNG_GREY = 128, TARN_PNG_SIDE_MOST = 1000000 };

/* Writes `count` consecutive images as a grid with `columns` columns. Images are separated by
 * TARN_PNG_GAP pixels of TARN_PNG_GREY, which also fills the rest of the last row. The sides of
 * the grid can have at most TARN_PNG_SIDE_MOST pixels. The file is replaced atomically. */
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
    size_t given;      /* bytes of an image that are there from the start */
    size_t scale;      /* screen pixels for a pixel; 0: 3 */
    double seconds;    /* duration of the drawing; 0: 8 */
    const bool *still; /* one per image: whether it is shown whole from the start; NULL: none */
    const char *caption; /* a line above the bars, UTF-8; NULL: none */
    const tarn_animation_bar *bars;
    size_t bar_count;
} tarn_animation;

/* The grid of tarn_png_write() as an animated SVG file, which browsers show in a page: the
 * images appear pixel by pixel, stay for some seconds, and start over. It contains no script.
 * The file is replaced atomically. */
TARN_API tarn_status tarn_svg_write(const char *path, const unsigned char *pixels,
                                    tarn_image_size size, size_t count, size_t columns,
                                    const tarn_animation *animation, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
