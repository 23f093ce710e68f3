/* SPDX-License-Identifier: MIT */
/* images.h - many images of one size, whatever file or folder they come from.
 *
 * Pixels are bytes, count x height x width x channels: colour is r, g, b, r, g, b, ... Channels
 * are 1 (grey) or 3. */
#ifndef TN_IMAGES_H
#define TN_IMAGES_H

#include "base/base.h"
#include "file/file_bytes.h"

struct tn_images {
    size_t count, height, width, channels;
    unsigned char *pixels;
    const tarn_allocator *allocator; /* whose pixels are; outlives them */
};

/* Bytes of one image, and where image i begins. */
static inline size_t tn_images_size(const struct tn_images *images)
{
    return images->height * images->width * images->channels;
}

static inline unsigned char *tn_images_at(const struct tn_images *images, size_t i)
{
    return images->pixels + i * tn_images_size(images);
}

/* Uninitialised pixels for the sizes in *images, of which none may be 0; `path` is for
 * messages. On failure, here and below, *images is empty. */
tarn_status tn_images_take(struct tn_images *images, const char *path, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_images_free(struct tn_images *images);

/* The images of a path, by what is in it:
 *
 *     IDX          three dimensions of bytes, also in gzip
 *     CIFAR-10     its binary records
 *     PNG          one image
 *     .txt         a list of PNG files, one path a line, relative to the list's folder
 *     a folder     its PNG files (*.png) in the order of their names' bytes
 *
 * NULL for the allocator means malloc. */
tarn_status tn_images_read(struct tn_images *images, const char *path,
                           const tarn_allocator *allocator, tarn_error *err);

/* The same of a file's bytes, without lists and folders. */
tarn_status tn_images_parse(struct tn_images *images, const struct tn_bytes *bytes,
                            const char *path, const tarn_allocator *allocator, tarn_error *err);

#endif
