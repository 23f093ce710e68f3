/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "file/zip.h"
#include "support/fuzzing.h"

enum { ENTRIES_MOST = 64, ENTRY_MOST = 1 << 20 };

/* An archive that is being written; too long: `full`. */
struct archive {
    uint8_t *data;
    size_t size, most;
    bool full;
};

static void put(struct archive *a, const void *bytes, size_t count)
{
    if (a->full || count > a->most - a->size) {
        a->full = true;
        return;
    }
    memcpy(a->data + a->size, bytes, count);
    a->size += count;
}

static void put_number(struct archive *a, size_t value, size_t bytes)
{
    uint8_t text[8];

    for (size_t i = 0; i < bytes; i++)
        text[i] = (uint8_t)(value >> (8 * i));
    put(a, text, bytes);
}

struct packed {
    const char *name;
    uint8_t *data;
    size_t bytes, unpacked, sum, method, place;
};

/* What local and central headers have in common. */
static void put_entry(struct archive *a, const struct packed *p)
{
    put_number(a, p->method, 2);
    put_number(a, 0, 4); /* time */
    put_number(a, p->sum, 4);
    put_number(a, p->bytes, 4);
    put_number(a, p->unpacked, 4);
    put_number(a, strlen(p->name), 2);
    put_number(a, 0, 2); /* extra field */
}

static void put_local(struct archive *a, struct packed *p)
{
    p->place = a->size;
    put_number(a, TN_ZIP_LOCAL, 4);
    put_number(a, 20, 2);
    put_number(a, 0, 2);
    put_entry(a, p);
    put(a, p->name, strlen(p->name));
    put(a, p->data, p->bytes);
}

static void put_central(struct archive *a, const struct packed *p)
{
    put_number(a, TN_ZIP_CENTRAL, 4);
    put_number(a, 20, 2);
    put_number(a, 20, 2);
    put_number(a, 0, 2);
    put_entry(a, p);
    put_number(a, 0, 6); /* comment, disk, attributes */
    put_number(a, 0, 4);
    put_number(a, p->place, 4);
    put(a, p->name, strlen(p->name));
}

static void put_end(struct archive *a, size_t count, size_t begin)
{
    const size_t bytes = a->size - begin;

    put_number(a, TN_ZIP_END, 4);
    put_number(a, 0, 4);
    put_number(a, count, 2);
    put_number(a, count, 2);
    put_number(a, bytes, 4);
    put_number(a, begin, 4);
    put_number(a, 0, 2);
}

static bool deflate_into(struct packed *p, const uint8_t *data, size_t bytes)
{
    z_stream z = {0};

    need(deflateInit2(&z, 1, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)bytes;
    z.next_out = p->data;
    z.avail_out = (uInt)bytes + 1024;
    const int status = deflate(&z, Z_FINISH);

    p->bytes = z.total_out;
    deflateEnd(&z);
    return status == Z_STREAM_END;
}

static void pack(struct packed *p, const char *name, const uint8_t *data, size_t bytes,
                 bool deflated)
{
    *p = (struct packed){.name = name, .unpacked = bytes, .data = malloc(bytes + 1024)};
    need(p->data != NULL);
    p->sum = crc32_z(0, data, bytes);
    p->method = deflated && deflate_into(p, data, bytes) ? TN_ZIP_DEFLATED : TN_ZIP_STORED;
    if (p->method == TN_ZIP_STORED) {
        memcpy(p->data, data, bytes);
        p->bytes = bytes;
    }
}

static bool ends_in(const char *text, const char *end)
{
    const size_t length = strlen(text), bytes = strlen(end);

    return length >= bytes && strcmp(text + length - bytes, end) == 0;
}

/* The contents of an entry, mutated; free() it. */
static uint8_t *mutate_entry(const struct tn_zip_entry *entry, size_t *size, unsigned *seed)
{
    const size_t room = entry->bytes + 256;
    uint8_t *const data = malloc(room);

    need(data != NULL);
    memcpy(data, entry->data, entry->bytes);
    *size = ends_in(entry->name, ".pkl")
                ? mutate_pickle(data, entry->bytes, room, (unsigned)pick(seed, 1u << 24))
                : LLVMFuzzerMutate(data, entry->bytes, room);
    return data;
}

static size_t rewrite(struct archive *a, const struct tn_zip *zip, unsigned seed, bool deflated)
{
    struct packed packed[ENTRIES_MOST];
    const size_t chosen = pick(&seed, zip->count);

    for (size_t i = 0; i < zip->count; i++) {
        const struct tn_zip_entry *const entry = &zip->entries[i];
        size_t bytes = entry->bytes;
        uint8_t *const other = i == chosen ? mutate_entry(entry, &bytes, &seed) : NULL;

        pack(&packed[i], entry->name, other ? other : entry->data, bytes, deflated);
        free(other);
        put_local(a, &packed[i]);
    }
    const size_t begin = a->size;

    for (size_t i = 0; i < zip->count; i++) {
        put_central(a, &packed[i]);
        free(packed[i].data);
    }
    put_end(a, zip->count, begin);
    return a->full ? 0 : a->size;
}

size_t mutate_zip(uint8_t *data, size_t size, size_t most, unsigned seed, bool deflated)
{
    struct tn_zip zip;
    struct tn_bytes bytes;
    size_t made = 0;

    if (pick(&seed, 8) == 0 || size < TN_ZIP_END_BYTES)
        return LLVMFuzzerMutate(data, size, most);
    need(tn_bytes_allocate(&bytes, size, NULL) == TARN_OK);
    memcpy(bytes.data, data, size);
    if (tn_zip_read(&zip, &bytes, ENTRY_MOST, "fuzz", NULL) == TARN_OK && zip.count > 0 &&
        zip.count <= ENTRIES_MOST) {
        struct archive archive = {.data = malloc(most + 1), .most = most};

        need(archive.data != NULL);
        made = rewrite(&archive, &zip, seed, deflated);
        memcpy(data, archive.data, made);
        free(archive.data);
    }
    tn_zip_free(&zip);
    tn_bytes_free(&bytes);
    return made > 0 ? made : LLVMFuzzerMutate(data, size, most);
}
