/* SPDX-License-Identifier: MIT */
/* image_files.h - images in the formats that are read, made here so that no test needs a
 * file. */
#ifndef IMAGE_FILES_H
#define IMAGE_FILES_H

#include "file/file_bytes.h"
#include "support/testing.h"

/* Pixel byte k of image i: tells both. */
unsigned char image_byte(size_t i, size_t k);

/* Freed by tn_bytes_free(). */
struct tn_bytes idx_bytes(size_t count, size_t height, size_t width);
struct tn_bytes cifar_bytes(size_t count);
struct tn_bytes gzip_bytes(const struct tn_bytes *plain);

/* height x width pixels of PNG's color_type and bit depth, whose rows, as PNG packs them, are
 * `rows`; `interlaced` as Adam7. A palette is 2^depth colours (3k, 5k, 7k). */
struct png_form {
    int color_type, depth;
    bool interlaced, key; /* key: tRNS says that sample or palette entry 1 is transparent */
};
struct tn_bytes png_bytes(struct png_form form, size_t height, size_t width,
                          const unsigned char *rows);

/* Bytes 0 .. size-1 of another. */
struct tn_bytes bytes_cut(const struct tn_bytes *bytes, size_t size);
struct tn_bytes bytes_joined(const struct tn_bytes *a, const void *b, size_t size);
void bytes_put(const char *path, struct tn_bytes bytes); /* and frees them */

#endif
