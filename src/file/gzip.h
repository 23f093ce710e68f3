/* SPDX-License-Identifier: MIT */
/* gzip.h - a gzip file read front to back, no further than its reader expects it to go.
 *
 *     struct tn_gunzip gunzip;
 *     if ((status = tn_gunzip_begin(&gunzip, data, size, false, path, err)) == TARN_OK &&
 *         (status = tn_gunzip_read(&gunzip, header, sizeof header, err)) == TARN_OK)
 *         status = tn_gunzip_end(&gunzip, err);
 *     tn_gunzip_free(&gunzip);
 *
 * Who reads asks for a number of bytes, and no others are ever made: a small file that would
 * become gigabytes stays small. */
#ifndef TN_GZIP_H
#define TN_GZIP_H

#define ZLIB_CONST /* what is read stays const */
#include <zlib.h>

#include "base/base.h"
#include "file/file_bytes.h"

struct tn_gunzip {
    z_stream stream;
    const unsigned char *next; /* of the file, not yet given to zlib */
    size_t left;
    const char *path; /* for messages */
    bool ended;       /* zlib saw the end and its checksum */
};

bool tn_is_gzip(const struct tn_bytes *bytes);

/* The data, `raw` deflate or in gzip, must stay. Whatever comes of this or the others, free
 * it. */
tarn_status tn_gunzip_begin(struct tn_gunzip *gunzip, const unsigned char *data, size_t size,
                            bool raw, const char *path, tarn_error *err);

/* The next `size` bytes, all of them. */
tarn_status tn_gunzip_read(struct tn_gunzip *gunzip, void *out, size_t size, tarn_error *err);

/* Refuses more data, within the stream or after it, and a wrong checksum. */
tarn_status tn_gunzip_end(struct tn_gunzip *gunzip, tarn_error *err);

void tn_gunzip_free(struct tn_gunzip *gunzip);

/* The most that so many bytes of deflate can become: two bits for 258 bytes, at best, which is
 * 1032 for one. */
size_t tn_inflated_most(size_t size);

#endif
