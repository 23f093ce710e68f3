/* SPDX-License-Identifier: MIT */
/* cursor.h - reads bytes from front to back, and never past their end. */
#ifndef TN_CURSOR_H
#define TN_CURSOR_H

#include "base/base.h"

/* The first read that needs more bytes than are left sets `past_end`. It and all later ones
 * give NULL or 0, so that a whole record may be read before that is checked. */
struct tn_cursor {
    const unsigned char *data;
    size_t size, at; /* at: the next byte */
    bool past_end;
};

static inline size_t tn_cursor_left(const struct tn_cursor *cursor)
{
    return cursor->size - cursor->at;
}

static inline const unsigned char *tn_cursor_read(struct tn_cursor *cursor, size_t bytes)
{
    const unsigned char *const from = cursor->data + cursor->at;

    cursor->past_end = cursor->past_end || bytes > tn_cursor_left(cursor);
    if (cursor->past_end)
        return NULL;
    cursor->at += bytes;
    return from;
}

/* A number of up to 8 bytes. */
static inline uint64_t tn_little_endian(const unsigned char *from, size_t bytes)
{
    uint64_t number = 0;

    for (size_t i = bytes; i-- > 0;)
        number = number << 8 | from[i];
    return number;
}

/* The same, the next bytes. */
static inline uint64_t tn_cursor_number(struct tn_cursor *cursor, size_t bytes)
{
    const unsigned char *const from = tn_cursor_read(cursor, bytes);

    return from ? tn_little_endian(from, bytes) : 0;
}

/* A number of 4 bytes in the order of IDX and PNG. */
static inline uint32_t tn_big_endian(const unsigned char bytes[4])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
           bytes[3];
}

#endif
