/* SPDX-License-Identifier: MIT */
/* png_file.h - one image in a PNG file, by libpng.
 *
 * The numbers are taken as they stand in the file: no gamma, no colour profile. Palettes and
 * grey of fewer than 8 bits are widened, which loses nothing. An alpha channel that hides
 * nothing is dropped, since many programs write one always; one that does is refused, because
 * what lies below is for nobody to guess. 16 bits are refused: half of them would be lost. */
#ifndef TN_PNG_FILE_H
#define TN_PNG_FILE_H

#include "file/images.h"

bool tn_is_png(const struct tn_bytes *bytes);

/* One image. */
tarn_status tn_png_parse(struct tn_images *images, const struct tn_bytes *bytes,
                         const char *path, const tarn_allocator *allocator, tarn_error *err);

/* height x width x channels bytes, 1 channel or 3. The file is replaced as a whole or not at
 * all. */
tarn_status tn_png_write(const char *path, const unsigned char *pixels, size_t height,
                         size_t width, size_t channels, tarn_error *err);

#endif
