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
tarn_status tn_images_allocate(struct tn_images *images, const char *path, tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_images_free(struct tn_images *images);

/* A reader of one format: the images in the bytes of a file. NULL for the allocator means
 * malloc. */
typedef tarn_status tn_images_parser(struct tn_images *images, const struct tn_bytes *bytes,
                                     const char *path, const tarn_allocator *allocator,
                                     tarn_error *err);

bool tn_is_idx(const struct tn_bytes *bytes);
tn_images_parser tn_idx_parse;

/* Whole records with labels that CIFAR-10 has: the format has no other mark. */
bool tn_is_cifar(const struct tn_bytes *bytes);
tn_images_parser tn_cifar_parse;

/* Whichever of IDX (also in gzip), CIFAR-10 and PNG it is. */
tn_images_parser tn_images_parse;

/* The images of several files, which have one size. */
tarn_status tn_images_read_files(struct tn_images *images, char *const *paths, size_t count,
                                 tn_images_parser *parse, const tarn_allocator *allocator,
                                 tarn_error *err);

/* The images of a path: a file as tn_images_parse() reads it; a .txt file with the path of a
 * PNG file in each line, relative to its own folder; or a folder, with its PNG files (*.png) in
 * the order of the bytes of their names. */
tarn_status tn_images_read(struct tn_images *images, const char *path,
                           const tarn_allocator *allocator, tarn_error *err);

#endif
