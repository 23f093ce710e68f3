/* SPDX-License-Identifier: MIT */
/* file_bytes.h - a whole file in memory.
 *
 * Read, not mapped: a file that another program truncates under a map ends this one with a
 * signal, at a moment when nobody can say why. */
#ifndef TN_FILE_BYTES_H
#define TN_FILE_BYTES_H

#include <sys/types.h>

#include "base/base.h"

/* `data` is 64-byte aligned and never NULL while there is something to free. */
struct tn_bytes {
    unsigned char *data;
    size_t size;
};

/* Uninitialised memory. On failure *out is empty. */
tarn_status tn_bytes_allocate(struct tn_bytes *out, size_t size, tarn_error *err);

/* The bytes of a regular file of at most `limit` bytes; anything but a regular file is refused.
 * On failure *out is empty. */
tarn_status tn_bytes_read(struct tn_bytes *out, const char *path, size_t limit,
                          tarn_error *err);

/* Leaves it empty; accepts what is empty. */
void tn_bytes_free(struct tn_bytes *bytes);

/* Refuses a file whose mode is not that of a regular one. */
tarn_status tn_check_regular(mode_t mode, const char *path, tarn_error *err);

/* Up to `bytes` bytes of a descriptor, *got fewer only at the end; false: errno says why. */
bool tn_read_all(int file, void *to, size_t bytes, size_t *got);

/* The end of a path, for messages, which must have room for what is wrong. An empty one is ''.
 */
const char *tn_path_shown(const char *path);

/* Like tn_fail(), with "PATH: " before the text. */
tarn_status tn_fail_path(tarn_error *err, tarn_status status, const char *path,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* TARN_EIO, or TARN_ENOMEM if that is what errno says; "PATH: " and the text of errno. */
tarn_status tn_fail_errno(tarn_error *err, const char *path);

#endif
