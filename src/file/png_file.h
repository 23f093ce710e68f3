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
#include "file/text_buffer.h"
#include "tarn/image.h"

bool tn_is_png(const struct tn_bytes *bytes);

tn_images_parser tn_png_parse; /* one image */

/* The bytes of tarn_png_write()'s file; `path` is for messages. */
tarn_status tn_png_grid(struct tn_text *out, const char *path, const unsigned char *pixels,
                        tarn_image_size size, size_t count, size_t columns, tarn_error *err);

#endif
