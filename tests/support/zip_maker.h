/* SPDX-License-Identifier: MIT */
/* zip_maker.h - zip archives as a test wants them, also such as no program writes. */
#ifndef ZIP_MAKER_H
#define ZIP_MAKER_H

#include "file/file_bytes.h"
#include "support/testing.h"

struct zip_made {
    const char *name;
    const void *data;
    size_t bytes;
    size_t claimed; /* what its header says instead; 0: the truth */
};

/* Stored entries, the directory and its end. The caller frees it by tn_bytes_free(). */
/* How entries are written, and the end. */
enum { ZIP_PLAIN = 0, ZIP_DEFLATED = 1, ZIP_64 = 2 };

struct tn_bytes zip_make_as(const struct zip_made *entries, size_t count, unsigned how);
struct tn_bytes zip_make(const struct zip_made *entries, size_t count);

/* `levels` entries NAME0, NAME1, ... each of which holds the next one, header and all, and the
 * last one `bytes` zeros: a bomb that does not need compression. */
struct tn_bytes zip_make_nested(const char *name, size_t levels, size_t bytes);

#endif
