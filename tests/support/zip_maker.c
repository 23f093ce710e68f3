/* SPDX-License-Identifier: MIT */
#include "support/zip_maker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 30,
    CENTRAL = 46,
    END = 22,
    END_64 = 56,
    LOCATOR = 20,
    EXTRA = 64, /* more than extra fields have, and than deflate adds */
    ENTRIES = 256,
    NAME = 32
};

static void put(struct tn_bytes *out, size_t number, size_t width)
{
    for (size_t i = 0; i < width; i++)
        out->data[out->size++] = (unsigned char)(i < 8 ? number >> (8 * i) & 255 : 0);
}

static void put_data(struct tn_bytes *out, const void *data, size_t bytes)
{
    if (bytes > 0)
        memcpy(out->data + out->size, data, bytes);
    out->size += bytes;
}

/* An entry as it is written. */
struct written {
    const struct zip_made *entry;
    size_t place, packed;
    unsigned how;
};

/* In zip64, both sizes, and in the directory the place. */
static size_t extra_bytes(const struct written *w, bool central)
{
    return w->how & ZIP_64 ? 4 + (central ? 24 : 16) : 0;
}

/* What both headers have: version, flags, method, time, date, checksum, sizes, name, extra. */
static void put_about(struct tn_bytes *out, const struct written *w, bool central)
{
    const struct zip_made *const entry = w->entry;
    const size_t size = entry->claimed ? entry->claimed : entry->bytes;
    const size_t packed = w->how & ZIP_DEFLATED ? w->packed : size;

    put(out, 10, 2);
    put(out, 0, 2);
    put(out, w->how & ZIP_DEFLATED ? 8 : 0, 2);
    put(out, 0, 4);
    put(out, crc32(0, entry->data, (unsigned)entry->bytes), 4);
    put(out, w->how & ZIP_64 ? UINT32_MAX : packed, 4);
    put(out, w->how & ZIP_64 ? UINT32_MAX : size, 4);
    put(out, strlen(entry->name), 2);
    put(out, extra_bytes(w, central), 2);
}

static void put_extra(struct tn_bytes *out, const struct written *w, bool central)
{
    if (!(w->how & ZIP_64))
        return;
    put(out, 1, 2);
    put(out, central ? 24 : 16, 2);
    put(out, w->entry->claimed ? w->entry->claimed : w->entry->bytes, 8);
    put(out, w->packed, 8);
    if (central)
        put(out, w->place, 8);
}

static void put_local(struct tn_bytes *out, const struct written *w)
{
    put_data(out, "PK\3\4", 4);
    put_about(out, w, false);
    put_data(out, w->entry->name, strlen(w->entry->name));
    put_extra(out, w, false);
}

static void put_central(struct tn_bytes *out, const struct written *w)
{
    put_data(out, "PK\1\2", 4);
    put(out, 10, 2);
    put_about(out, w, true);
    put(out, 0, 2 + 2 + 2 + 4);
    put(out, w->how & ZIP_64 ? UINT32_MAX : w->place, 4);
    put_data(out, w->entry->name, strlen(w->entry->name));
    put_extra(out, w, true);
}

static void put_end_64(struct tn_bytes *out, size_t directory, size_t end, size_t count)
{
    put_data(out, "PK\6\6", 4);
    put(out, END_64 - 12, 8);
    put(out, 45, 2);
    put(out, 45, 2);
    put(out, 0, 8);
    put(out, count, 8);
    put(out, count, 8);
    put(out, end - directory, 8);
    put(out, directory, 8);
    put_data(out, "PK\6\7", 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
}

static void put_directory(struct tn_bytes *out, const struct written *written, size_t count,
                          unsigned how)
{
    const size_t directory = out->size;

    for (size_t i = 0; i < count; i++)
        put_central(out, &written[i]);
    const size_t end = out->size;

    if (how & ZIP_64)
        put_end_64(out, directory, end, count);
    put_data(out, "PK\5\6", 4);
    put(out, 0, 4);
    put(out, how & ZIP_64 ? UINT16_MAX : count, 2);
    put(out, how & ZIP_64 ? UINT16_MAX : count, 2);
    put(out, how & ZIP_64 ? UINT32_MAX : end - directory, 4);
    put(out, how & ZIP_64 ? UINT32_MAX : directory, 4);
    put(out, 0, 2);
}

/* At most as many bytes as there are, and some. */
static size_t deflate_to(unsigned char *out, size_t room, const struct zip_made *entry)
{
    z_stream z = {.next_out = out, .avail_out = (uInt)room, .avail_in = (uInt)entry->bytes};

    memcpy(&z.next_in, &entry->data, sizeof z.next_in);
    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return room - z.avail_out;
}

struct tn_bytes zip_make_as(const struct zip_made *entries, size_t count, unsigned how)
{
    size_t most = END + END_64 + LOCATOR;
    struct written written[ENTRIES];
    struct tn_bytes out;

    assert_true(count <= ENTRIES);
    for (size_t i = 0; i < count; i++)
        most += LOCAL + CENTRAL + EXTRA + 2 * strlen(entries[i].name) + entries[i].bytes;
    check_ok(tn_bytes_allocate(&out, most, NULL), NULL);
    out.size = 0;
    for (size_t i = 0; i < count; i++) {
        struct written *const w = &written[i];
        unsigned char *const packed = take(entries[i].bytes + EXTRA, 1);

        *w = (struct written){&entries[i], out.size, entries[i].bytes, how};
        if (how & ZIP_DEFLATED)
            w->packed = deflate_to(packed, entries[i].bytes + EXTRA, &entries[i]);
        put_local(&out, w);
        put_data(&out, how & ZIP_DEFLATED ? packed : entries[i].data, w->packed);
        free(packed);
    }
    put_directory(&out, written, count, how);
    return out;
}

struct tn_bytes zip_make(const struct zip_made *entries, size_t count)
{
    return zip_make_as(entries, count, ZIP_PLAIN);
}

/* From the inside out: the bytes of a level are the header and the bytes of the one within. */
struct tn_bytes zip_make_nested(const char *name, size_t levels, size_t bytes)
{
    struct zip_made entries[ENTRIES];
    char names[ENTRIES][NAME];
    struct written written[ENTRIES];
    struct tn_bytes out, head;

    assert_true(levels <= ENTRIES);
    check_ok(tn_bytes_allocate(&out, bytes + levels * (LOCAL + CENTRAL + 2 * NAME) + END, NULL),
             NULL);
    check_ok(tn_bytes_allocate(&head, LOCAL + NAME, NULL), NULL);
    memset(out.data, 0, out.size);
    out.size = bytes;
    for (size_t i = levels; i-- > 0;) {
        snprintf(names[i], NAME, "%s%zu", name, i);
        entries[i] = (struct zip_made){names[i], out.data, out.size, 0};
        written[i] = (struct written){&entries[i], 0, out.size, ZIP_PLAIN};
        head.size = 0;
        put_local(&head, &written[i]);
        memmove(out.data + head.size, out.data, out.size);
        memcpy(out.data, head.data, head.size);
        out.size += head.size;
        for (size_t inner = i + 1; inner < levels; inner++)
            written[inner].place += head.size;
    }
    for (size_t i = 0; i < levels; i++)
        entries[i].data = out.data + written[i].place + LOCAL + strlen(names[i]);
    put_directory(&out, written, levels, ZIP_PLAIN);
    tn_bytes_free(&head);
    return out;
}
