/* SPDX-License-Identifier: MIT */
/* file_bytes.h - a whole file in memory.
 *
 * Read, not mapped: a file that another program truncates under a map ends this one with a
 * signal, at a moment when nobody can say why. */
#ifndef TN_FILE_BYTES_H
#define TN_FILE_BYTES_H

#include "base/base.h"

/* `data` is 64-byte aligned and never NULL while there is something to free. */
struct tn_bytes {
    unsigned char *data;
    size_t size;
};

/* Uninitialised memory. On failure *out is empty. */
tarn_status tn_bytes_take(struct tn_bytes *out, size_t size, tarn_error *err);

/* The bytes of a regular file of at most `limit` bytes; what is no regular file is refused. On
 * failure *out is empty. */
tarn_status tn_bytes_read(struct tn_bytes *out, const char *path, size_t limit,
                          tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_bytes_free(struct tn_bytes *bytes);

/* The end of a path, for messages: what went wrong stands behind it and must fit, too. An empty
 * one is ''. */
const char *tn_path_shown(const char *path);

#endif
