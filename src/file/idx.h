/* SPDX-License-Identifier: MIT */
/* idx.h - images as MNIST has them: IDX, plain or in gzip.
 *
 *     0, 0, 8 (bytes), 3 (dimensions), count, height, width (32 bits, big-endian), pixels
 *
 * A plain file has on the disk what its header promises. A packed one may keep its promise and
 * still be a thousandth of it: what is more than TN_IDX_UNPACKED is refused by the header
 * alone. */
#ifndef TN_IDX_H
#define TN_IDX_H

#include "file/images.h"

enum { TN_IDX_UNPACKED = 1 << 30 }; /* bytes, 22 times MNIST's */

/* Two zeros and a type that IDX has. */
bool tn_is_idx(const struct tn_bytes *bytes);

tarn_status tn_idx_parse(struct tn_images *images, const struct tn_bytes *bytes,
                         const char *path, const tarn_allocator *allocator, tarn_error *err);

#endif
