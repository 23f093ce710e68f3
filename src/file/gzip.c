/* SPDX-License-Identifier: MIT */
#include "file/gzip.h"

#include <limits.h>

#include "base/written.h"

bool tn_is_gzip(const struct tn_bytes *bytes)
{
    return bytes->size >= 2 && bytes->data[0] == 0x1f && bytes->data[1] == 0x8b;
}

size_t tn_inflated_most(size_t size)
{
    return size > SIZE_MAX / 1032 ? SIZE_MAX : 1032 * size;
}

tarn_status tn_gunzip_begin(struct tn_gunzip *gunzip, const unsigned char *data, size_t size,
                            bool raw, const char *path, tarn_error *err)
{
    *gunzip = (struct tn_gunzip){.next = data, .left = size, .path = path};
    if (inflateInit2(&gunzip->stream, raw ? -MAX_WBITS : 16 + MAX_WBITS) != Z_OK)
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to decompress gzip");
    return TARN_OK;
}

void tn_gunzip_free(struct tn_gunzip *gunzip)
{
    inflateEnd(&gunzip->stream);
    *gunzip = (struct tn_gunzip){0};
}

static tarn_status refuse(const struct tn_gunzip *gunzip, const char *what, tarn_error *err)
{
    return tn_fail_path(err, TARN_EFORMAT, gunzip->path, "gzip: %s", what);
}

/* zlib counts in unsigned int. */
static void feed(struct tn_gunzip *gunzip)
{
    z_stream *const z = &gunzip->stream;

    if (z->avail_in > 0 || gunzip->left == 0)
        return;
    z->next_in = gunzip->next;
    z->avail_in = (uInt)tn_min(gunzip->left, INT_MAX);
    gunzip->next += z->avail_in;
    gunzip->left -= z->avail_in;
}

/* Up to `size` bytes; *made fewer only at the end of the stream. */
static tarn_status inflate_some(struct tn_gunzip *gunzip, unsigned char *out, size_t size,
                                size_t *made, tarn_error *err)
{
    z_stream *const z = &gunzip->stream;

    for (*made = 0; *made < size && !gunzip->ended;) {
        const uInt room = (uInt)tn_min(size - *made, INT_MAX);

        feed(gunzip);
        z->next_out = out + *made;
        z->avail_out = room;
        const int code = inflate(z, Z_NO_FLUSH);

        TN_WRITTEN(out + *made, room - z->avail_out);
        *made += room - z->avail_out;
        gunzip->ended = code == Z_STREAM_END;
        if (code == Z_BUF_ERROR)
            return refuse(gunzip, "truncated", err);
        if (code == Z_MEM_ERROR)
            return tn_fail_path(err, TARN_ENOMEM, gunzip->path,
                                "not enough memory to decompress gzip");
        if (code != Z_OK && code != Z_STREAM_END)
            return refuse(gunzip, z->msg ? z->msg : "damaged", err);
    }
    return TARN_OK;
}

tarn_status tn_gunzip_read(struct tn_gunzip *gunzip, void *out, size_t size, tarn_error *err)
{
    size_t made;
    const tarn_status status = inflate_some(gunzip, out, size, &made, err);

    if (status == TARN_OK && made < size)
        return tn_fail_path(err, TARN_EFORMAT, gunzip->path,
                            "gzip: truncated, %zu bytes are missing", size - made);
    return status;
}

tarn_status tn_gunzip_end(struct tn_gunzip *gunzip, tarn_error *err)
{
    unsigned char more;
    size_t made;
    const tarn_status status = inflate_some(gunzip, &more, 1, &made, err);

    if (status != TARN_OK)
        return status;
    if (made > 0)
        return refuse(gunzip, "has more data than its header says", err);
    const size_t extra = gunzip->left + gunzip->stream.avail_in;

    if (extra > 0)
        return tn_fail_path(err, TARN_EFORMAT, gunzip->path,
                            "gzip: %zu unexpected bytes after its end", extra);
    return TARN_OK;
}
