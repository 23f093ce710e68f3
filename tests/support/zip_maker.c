/* SPDX-License-Identifier: MIT */
#include "support/zip_maker.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 30, CENTRAL = 46, END = 22, ENTRIES = 256, NAME = 32 };

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

/* What both headers have: version, flags, method, time, date, checksum, sizes, name, extra. */
static void put_about(struct tn_bytes *out, const struct zip_made *entry)
{
    const size_t size = entry->claimed ? entry->claimed : entry->bytes;

    put(out, 10, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, 0, 4);
    put(out, crc32(0, entry->data, (unsigned)entry->bytes), 4);
    put(out, size, 4);
    put(out, size, 4);
    put(out, strlen(entry->name), 2);
    put(out, 0, 2);
}

static void put_local(struct tn_bytes *out, const struct zip_made *entry)
{
    put_data(out, "PK\3\4", 4);
    put_about(out, entry);
    put_data(out, entry->name, strlen(entry->name));
}

static void put_central(struct tn_bytes *out, const struct zip_made *entry, size_t place)
{
    put_data(out, "PK\1\2", 4);
    put(out, 10, 2);
    put_about(out, entry);
    put(out, 0, 2 + 2 + 2 + 4);
    put(out, place, 4);
    put_data(out, entry->name, strlen(entry->name));
}

static void put_directory(struct tn_bytes *out, const struct zip_made *entries,
                          const size_t *places, size_t count)
{
    const size_t directory = out->size;

    for (size_t i = 0; i < count; i++)
        put_central(out, &entries[i], places[i]);
    const size_t end = out->size;

    put_data(out, "PK\5\6", 4);
    put(out, 0, 4);
    put(out, count, 2);
    put(out, count, 2);
    put(out, end - directory, 4);
    put(out, directory, 4);
    put(out, 0, 2);
}

struct tn_bytes zip_make(const struct zip_made *entries, size_t count)
{
    size_t most = END, places[ENTRIES] = {0};
    struct tn_bytes out;

    assert_true(count <= ENTRIES);
    for (size_t i = 0; i < count; i++)
        most += LOCAL + CENTRAL + 2 * strlen(entries[i].name) + entries[i].bytes;
    check_ok(tn_bytes_take(&out, most, NULL), NULL);
    out.size = 0;
    for (size_t i = 0; i < count; i++) {
        places[i] = out.size;
        put_local(&out, &entries[i]);
        put_data(&out, entries[i].data, entries[i].bytes);
    }
    put_directory(&out, entries, places, count);
    return out;
}

/* From the inside out: the bytes of a level are the header and the bytes of the one within. */
struct tn_bytes zip_make_nested(const char *name, size_t levels, size_t bytes)
{
    struct zip_made entries[ENTRIES];
    char names[ENTRIES][NAME];
    size_t places[ENTRIES] = {0};
    struct tn_bytes out, head;

    assert_true(levels <= ENTRIES);
    check_ok(tn_bytes_take(&out, bytes + levels * (LOCAL + CENTRAL + 2 * NAME) + END, NULL),
             NULL);
    check_ok(tn_bytes_take(&head, LOCAL + NAME, NULL), NULL);
    memset(out.data, 0, out.size);
    out.size = bytes;
    for (size_t i = levels; i-- > 0;) {
        snprintf(names[i], NAME, "%s%zu", name, i);
        entries[i] = (struct zip_made){names[i], out.data, out.size, 0};
        head.size = 0;
        put_local(&head, &entries[i]);
        memmove(out.data + head.size, out.data, out.size);
        memcpy(out.data, head.data, head.size);
        out.size += head.size;
        for (size_t inner = i + 1; inner < levels; inner++)
            places[inner] += head.size;
    }
    for (size_t i = 0; i < levels; i++)
        entries[i].data = out.data + places[i] + LOCAL + strlen(names[i]);
    put_directory(&out, entries, places, levels);
    tn_bytes_free(&head);
    return out;
}
