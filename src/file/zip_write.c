/* SPDX-License-Identifier: MIT */
/* zip_write.c - stored entries, their sizes and checksums before their data. */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "file/file_writer.h"
#include "file/zip.h"

enum {
    RECORD = TN_ZIP_END_64_BYTES + TN_ZIP_LOCATOR_64_BYTES + TN_ZIP_END_BYTES,
    MADE_BY = 3 << 8 | 45, /* Unix, version 4.5 of the format, which has zip64 */
    NEEDS = 20,
    NEEDS_64 = 45,
    DATE = 0x21, /* 1980-01-01, the first day there is: equal models give equal files */
    MODE = 0100644,
};

/* The bytes of one header, or of the end. */
struct record {
    unsigned char bytes[RECORD];
    size_t used;
};

static void add(struct record *record, uint64_t number, size_t width)
{
    for (size_t i = 0; i < width; i++)
        record->bytes[record->used++] = (unsigned char)(number >> (8 * i) & 255);
}

/* Or, in the header itself, that the number is in the extra field. */
static uint64_t narrow(uint64_t number)
{
    return number < UINT32_MAX ? number : UINT32_MAX;
}

static bool is_ascii(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name >= 0x80)
            return false;
    return true;
}

/* A piece, and where it is. */
struct place {
    const struct tn_zip_piece *piece;
    uint64_t at, bytes;
    uint32_t crc;
};

/* What both headers have: the version that is needed, flags, method, time, date, checksum,
 * sizes, lengths of name and extra field. */
static void add_about(struct record *record, const struct place *place, size_t extra)
{
    add(record, extra > 0 ? NEEDS_64 : NEEDS, 2);
    add(record, is_ascii(place->piece->name) ? 0 : TN_ZIP_UTF8, 2);
    add(record, TN_ZIP_STORED, 2);
    add(record, 0, 2);
    add(record, DATE, 2);
    add(record, place->crc, 4);
    add(record, narrow(place->bytes), 4);
    add(record, narrow(place->bytes), 4);
    add(record, strlen(place->piece->name), 2);
    add(record, extra, 2);
}

/* Size, packed size, and for a central header the place: those that are too large. */
static struct record extra_of(const struct place *place, bool central)
{
    struct record extra = {.used = 0};
    const size_t sizes = place->bytes >= UINT32_MAX ? 2 : 0;
    const size_t places = central && place->at >= UINT32_MAX;

    if (sizes + places == 0)
        return extra;
    add(&extra, TN_ZIP_EXTRA_64, 2);
    add(&extra, 8 * (sizes + places), 2);
    for (size_t i = 0; i < sizes; i++)
        add(&extra, place->bytes, 8);
    if (places)
        add(&extra, place->at, 8);
    return extra;
}

/* ---- Writing ------------------------------------------------------------ */

struct writing {
    struct tn_file_writer writer;
    uint64_t used; /* bytes so far */
    tarn_error *err;
};

static tarn_status put(struct writing *w, const void *data, size_t bytes)
{
    w->used += bytes;
    return tn_file_writer_put(&w->writer, data, bytes, w->err);
}

/* A header, the name and the extra field. */
static tarn_status put_header(struct writing *w, const struct record *header, const char *name,
                              const struct record *extra)
{
    tarn_status status = put(w, header->bytes, header->used);

    if (status == TARN_OK)
        status = put(w, name, strlen(name));
    return status == TARN_OK ? put(w, extra->bytes, extra->used) : status;
}

static tarn_status put_piece(struct writing *w, struct place *place,
                             const struct tn_zip_piece *piece)
{
    const uLong head = crc32_z(0, piece->head, piece->head_bytes);
    struct record header = {.used = 0};
    tarn_status status;

    *place = (struct place){
        .piece = piece,
        .at = w->used,
        .bytes = (uint64_t)piece->head_bytes + piece->bytes,
        .crc = (uint32_t)(piece->bytes > 0 ? crc32_z(head, piece->data, piece->bytes) : head),
    };
    const struct record extra = extra_of(place, false);

    add(&header, TN_ZIP_LOCAL, 4);
    add_about(&header, place, extra.used);
    if ((status = put_header(w, &header, piece->name, &extra)) != TARN_OK ||
        (status = put(w, piece->head, piece->head_bytes)) != TARN_OK)
        return status;
    return put(w, piece->data, piece->bytes);
}

static tarn_status put_central(struct writing *w, const struct place *place)
{
    const struct record extra = extra_of(place, true);
    struct record header = {.used = 0};

    add(&header, TN_ZIP_CENTRAL, 4);
    add(&header, MADE_BY, 2);
    add_about(&header, place, extra.used);
    add(&header, 0, 2 + 2 + 2); /* comment, disk, kind of text */
    add(&header, (uint64_t)MODE << 16, 4);
    add(&header, narrow(place->at), 4);
    return put_header(w, &header, place->piece->name, &extra);
}

static tarn_status put_end(struct writing *w, size_t count, uint64_t directory)
{
    const uint64_t end = w->used, bytes = end - directory;
    const bool large = count >= UINT16_MAX || end >= UINT32_MAX;
    struct record record = {.used = 0};

    if (large) {
        add(&record, TN_ZIP_END_64, 4);
        add(&record, TN_ZIP_END_64_BYTES - 12, 8); /* what follows */
        add(&record, MADE_BY, 2);
        add(&record, NEEDS_64, 2);
        add(&record, 0, 4 + 4); /* disks */
        add(&record, count, 8);
        add(&record, count, 8);
        add(&record, bytes, 8);
        add(&record, directory, 8);
        add(&record, TN_ZIP_LOCATOR_64, 4);
        add(&record, 0, 4);
        add(&record, end, 8);
        add(&record, 1, 4);
    }
    add(&record, TN_ZIP_END, 4);
    add(&record, 0, 2 + 2);
    add(&record, large ? UINT16_MAX : count, 2);
    add(&record, large ? UINT16_MAX : count, 2);
    add(&record, large ? UINT32_MAX : bytes, 4);
    add(&record, large ? UINT32_MAX : directory, 4);
    add(&record, 0, 2);
    return put(w, record.bytes, record.used);
}

static tarn_status put_all(struct writing *w, struct place *places,
                           const struct tn_zip_piece *pieces, size_t count)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = put_piece(w, &places[i], &pieces[i]);
    const uint64_t directory = w->used;

    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = put_central(w, &places[i]);
    return status == TARN_OK ? put_end(w, count, directory) : status;
}

tarn_status tn_zip_write(const char *path, const struct tn_zip_piece *pieces, size_t count,
                         tarn_error *err)
{
    struct writing w = {.err = err};
    struct place *const places = calloc(count + 1, sizeof *places);
    tarn_status status;

    if (!places)
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to write it");
    if ((status = tn_file_writer_open(&w.writer, path, err)) == TARN_OK &&
        (status = put_all(&w, places, pieces, count)) == TARN_OK)
        status = tn_file_writer_commit(&w.writer, err);
    free(places);
    return status;
}
