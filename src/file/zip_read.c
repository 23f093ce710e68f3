/* SPDX-License-Identifier: MIT */
/* zip_read.c - an archive is what its central headers say: a file that is cut has none. Every
 * length is checked before it is used, and a local header must agree on the name, so that no
 * two programs find different files in it. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "file/cursor.h"
#include "file/gzip.h"
#include "file/zip.h"

bool tn_is_zip(const struct tn_bytes *bytes)
{
    return bytes->size >= 4 && memcmp(bytes->data, "PK\3\4", 4) == 0;
}

void tn_zip_sort(struct tn_zip *zip)
{
    if (zip->count > 0)
        qsort(zip->entries, zip->count, sizeof *zip->entries, tn_compare_texts);
}

const struct tn_zip_entry *tn_zip_find(const struct tn_zip *zip, const char *name)
{
    const struct tn_zip_entry wanted = {.name = name};

    return zip->count ? bsearch(&wanted, zip->entries, zip->count, sizeof *zip->entries,
                                tn_compare_texts)
                      : NULL;
}

void tn_zip_free(struct tn_zip *zip)
{
    free(zip->entries);
    tn_texts_free(&zip->names);
    tn_bytes_free(&zip->bytes);
    *zip = (struct tn_zip){0};
}

/* ---- What is read ------------------------------------------------------- */

/* One central header. */
struct entry {
    const char *name;
    uint64_t flags, method, crc;
    uint64_t packed, bytes, place; /* of the data; offset of the local header */
};

struct reading {
    const struct tn_bytes *file;
    size_t most;
    size_t directory, directory_end; /* of the central headers */
    size_t claimed;                  /* how many there should be */
    struct entry *entries;           /* without folders */
    size_t count;
    struct tn_texts names;
    const char *path;
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *what)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "zip: %s", what);
}

static tarn_status refuse_entry(const struct reading *r, const char *name, const char *what)
{
    return tn_fail_path(r->err, TARN_EFORMAT, r->path, "zip entry '%.60s': %s", name, what);
}

static tarn_status no_memory(const struct reading *r)
{
    return tn_fail_path(r->err, TARN_ENOMEM, r->path, "not enough memory to unpack it");
}

/* The bytes from `at` up to `end`. */
static struct tn_cursor cursor_at(const struct reading *r, size_t at, size_t end)
{
    return (struct tn_cursor){.data = r->file->data, .size = end, .at = at};
}

static uint64_t number_at(const struct reading *r, size_t at, size_t bytes)
{
    struct tn_cursor cursor = cursor_at(r, at, r->file->size);

    return tn_cursor_number(&cursor, bytes);
}

/* ---- The directory ------------------------------------------------------ */

/* The last record: only a comment of at most 64 KiB may follow it, and it says how long that
 * is. */
static bool find_end(const struct reading *r, size_t *end)
{
    const size_t size = r->file->size;

    for (size_t comment = 0; comment <= UINT16_MAX && comment + TN_ZIP_END_BYTES <= size;
         comment++) {
        *end = size - comment - TN_ZIP_END_BYTES;
        if (number_at(r, *end, 4) == TN_ZIP_END && number_at(r, *end + 20, 2) == comment)
            return true;
    }
    return false;
}

/* Where numbers are too large for it, the end is preceded by a record that says where the
 * larger one is. */
static tarn_status find_directory(struct reading *r)
{
    uint64_t count, bytes, place;
    size_t end;

    if (!find_end(r, &end))
        return refuse(r, "it has no directory at its end; it may be truncated");
    count = number_at(r, end + 10, 2);
    bytes = number_at(r, end + 12, 4);
    place = number_at(r, end + 16, 4);
    const size_t locator = end - tn_min(end, TN_ZIP_LOCATOR_64_BYTES);

    if (number_at(r, locator, 4) == TN_ZIP_LOCATOR_64) {
        const uint64_t at = number_at(r, locator + 8, 8);

        if (at > end || end - at < TN_ZIP_END_64_BYTES ||
            number_at(r, (size_t)at, 4) != TN_ZIP_END_64)
            return refuse(r, "its directory for large files is damaged");
        count = number_at(r, (size_t)at + 32, 8);
        bytes = number_at(r, (size_t)at + 40, 8);
        place = number_at(r, (size_t)at + 48, 8);
    }
    if (place > end || bytes > end - place || count > bytes / TN_ZIP_CENTRAL_BYTES)
        return refuse(r, "its directory is damaged");
    if (count > TN_ZIP_ENTRIES)
        return refuse(r, "has more than 1048576 entries");
    r->directory = (size_t)place;
    r->directory_end = (size_t)(place + bytes);
    r->claimed = (size_t)count;
    return TARN_OK;
}

/* ---- Central headers ---------------------------------------------------- */

/* The extra field has those of size, packed size and place, in this order, that the header has
 * no room for. False: it is damaged. */
static bool read_extra_64(struct tn_cursor extra, struct entry *entry)
{
    uint64_t *const values[] = {&entry->bytes, &entry->packed, &entry->place};

    while (tn_cursor_left(&extra) >= 4) {
        const uint64_t kind = tn_cursor_number(&extra, 2);
        const size_t bytes = (size_t)tn_cursor_number(&extra, 2);
        struct tn_cursor field = extra;

        if (!tn_cursor_read(&extra, bytes))
            return false;
        field.size = extra.at;
        for (size_t i = 0; i < 3 && kind == TN_ZIP_EXTRA_64; i++)
            if (*values[i] == UINT32_MAX)
                *values[i] = tn_cursor_number(&field, 8);
        if (field.past_end)
            return false;
    }
    return true;
}

static tarn_status check_name(const struct reading *r, const char *name, size_t length)
{
    if (length == 0 || strlen(name) != length || !tn_is_utf8(name))
        return refuse(r, "an entry's name is empty or not UTF-8");
    if (*name == '/' || strchr(name, '\\'))
        return refuse_entry(r, name, "is not a relative path");
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return refuse_entry(r, name, "contains '..'");
    }
    return TARN_OK;
}

/* The upper half of the attributes is a mode where a Unix program made the entry. */
static bool is_plain_file(uint64_t made_by, uint64_t attributes)
{
    const uint64_t kind = attributes >> 16 & 0170000;

    return made_by >> 8 != 3 || kind == 0 || kind == 0100000;
}

/* The next one; folders are left out. */
static tarn_status read_central(struct reading *r, struct tn_cursor *c)
{
    const bool is_central = tn_cursor_number(c, 4) == TN_ZIP_CENTRAL;
    const uint64_t made_by = tn_cursor_number(c, 2);
    struct entry entry = {.name = NULL};

    tn_cursor_read(c, 2); /* version */
    entry.flags = tn_cursor_number(c, 2);
    entry.method = tn_cursor_number(c, 2);
    tn_cursor_read(c, 4); /* time and date */
    entry.crc = tn_cursor_number(c, 4);
    entry.packed = tn_cursor_number(c, 4);
    entry.bytes = tn_cursor_number(c, 4);
    const size_t length = (size_t)tn_cursor_number(c, 2);
    const size_t extra_bytes = (size_t)tn_cursor_number(c, 2);
    const size_t comment = (size_t)tn_cursor_number(c, 2);

    tn_cursor_read(c, 4); /* disk and internal attributes */
    const uint64_t attributes = tn_cursor_number(c, 4);

    entry.place = tn_cursor_number(c, 4);
    const char *const name = (const char *)tn_cursor_read(c, length);
    struct tn_cursor extra = *c;

    tn_cursor_read(c, extra_bytes);
    extra.size = c->at;
    tn_cursor_read(c, comment);
    if (!is_central || c->past_end || !read_extra_64(extra, &entry))
        return refuse(r, "its directory is damaged");
    if (length > TN_ZIP_NAME)
        return refuse(r, "an entry's name is too long");
    if (!(entry.name = tn_texts_copy(&r->names, name, length)))
        return no_memory(r);
    const bool is_folder = length > 0 && name[length - 1] == '/';

    if (!is_folder && !is_plain_file(made_by, attributes))
        return refuse(r, "contains links or devices; expected only files");
    if (!is_folder)
        r->entries[r->count++] = entry;
    return check_name(r, entry.name, length);
}

static tarn_status read_directory(struct reading *r)
{
    struct tn_cursor c = cursor_at(r, r->directory, r->directory_end);
    tarn_status status = TARN_OK;

    r->entries = calloc(r->claimed + 1, sizeof *r->entries);
    if (!r->entries)
        return no_memory(r);
    for (size_t i = 0; i < r->claimed && status == TARN_OK; i++)
        status = read_central(r, &c);
    if (status == TARN_OK && tn_cursor_left(&c) > 0)
        return refuse(r, "its directory has more entries than it says");
    return status;
}

/* ---- Data --------------------------------------------------------------- */

/* Where the data of an entry begins. */
static tarn_status find_data(const unsigned char **data, const struct entry *entry,
                             const struct reading *r)
{
    const size_t at = (size_t)tn_min((size_t)entry->place, r->directory);
    struct tn_cursor c = cursor_at(r, at, r->directory);

    if (entry->flags & TN_ZIP_ENCRYPTED)
        return refuse_entry(r, entry->name, "is encrypted");
    if (entry->place > r->directory || tn_cursor_number(&c, 4) != TN_ZIP_LOCAL)
        return refuse_entry(r, entry->name, "is not where the directory says");
    tn_cursor_read(&c, 22);
    const size_t length = (size_t)tn_cursor_number(&c, 2);
    const size_t extra = (size_t)tn_cursor_number(&c, 2);
    const unsigned char *const name = tn_cursor_read(&c, length);

    tn_cursor_read(&c, extra);
    if (c.past_end || entry->packed > tn_cursor_left(&c))
        return refuse_entry(r, entry->name, "extends past the end of the data");
    if (length != strlen(entry->name) || memcmp(name, entry->name, length) != 0)
        return refuse_entry(r, entry->name, "has another name before its data");
    *data = c.data + c.at;
    return TARN_OK;
}

static tarn_status unpack_deflated(unsigned char *out, const struct entry *entry,
                                   const unsigned char *in, const struct reading *r)
{
    struct tn_gunzip gunzip;
    tarn_status status =
        tn_gunzip_begin(&gunzip, in, (size_t)entry->packed, true, r->path, NULL);

    if (status == TARN_OK)
        status = tn_gunzip_read(&gunzip, out, (size_t)entry->bytes, NULL);
    if (status == TARN_OK)
        status = tn_gunzip_end(&gunzip, NULL);
    tn_gunzip_free(&gunzip);
    if (status == TARN_ENOMEM)
        return no_memory(r);
    return status == TARN_OK ? TARN_OK
                             : refuse_entry(r, entry->name, "its compressed data is damaged");
}

static tarn_status unpack(unsigned char *out, const struct entry *entry,
                          const struct reading *r)
{
    const size_t bytes = (size_t)entry->bytes;
    const unsigned char *in = NULL;
    tarn_status status = find_data(&in, entry, r);

    if (status != TARN_OK)
        return status;
    if (entry->method == TN_ZIP_DEFLATED)
        status = unpack_deflated(out, entry, in, r);
    else if (entry->method != TN_ZIP_STORED)
        return refuse_entry(r, entry->name, "is neither stored nor deflated");
    else if (entry->packed != entry->bytes)
        return refuse_entry(r, entry->name, "is stored, but with two sizes");
    else if (bytes > 0)
        memcpy(out, in, bytes);
    if (status == TARN_OK && crc32_z(0, out, bytes) != entry->crc)
        return refuse_entry(r, entry->name, "its checksum is wrong; the file is damaged");
    return status;
}

/* ---- All entries -------------------------------------------------------- */

/* Memory for all of them, if they are not too large together. */
static tarn_status take_memory(struct tn_zip *zip, const struct reading *r)
{
    size_t claimed = 0, aligned = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct entry *const entry = &r->entries[i];

        if (entry->bytes > r->most - claimed)
            return tn_fail_path(r->err, TARN_EFORMAT, r->path,
                                "zip entry '%.60s': its %ju bytes bring the total above the "
                                "%zu that the file can contain",
                                entry->name, (uintmax_t)entry->bytes, r->most);
        claimed += (size_t)entry->bytes;
        aligned += tn_round_up((size_t)entry->bytes, TN_ALIGN);
    }
    zip->entries = calloc(r->count + 1, sizeof *zip->entries);
    return zip->entries ? tn_bytes_allocate(&zip->bytes, aligned, r->err) : no_memory(r);
}

static tarn_status unpack_all(struct tn_zip *zip, const struct reading *r)
{
    unsigned char *out = zip->bytes.data;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < r->count && status == TARN_OK; i++) {
        const struct entry *const entry = &r->entries[i];

        status = unpack(out, entry, r);
        zip->entries[zip->count++] =
            (struct tn_zip_entry){entry->name, out, (size_t)entry->bytes};
        out += tn_round_up((size_t)entry->bytes, TN_ALIGN);
    }
    return status;
}

static tarn_status check_twice(const struct tn_zip *zip, const struct reading *r)
{
    for (size_t i = 1; i < zip->count; i++)
        if (strcmp(zip->entries[i - 1].name, zip->entries[i].name) == 0)
            return refuse_entry(r, zip->entries[i].name, "appears twice");
    return TARN_OK;
}

tarn_status tn_zip_read(struct tn_zip *out, const struct tn_bytes *file, size_t most,
                        const char *name, tarn_error *err)
{
    struct reading r = {.file = file, .most = most, .path = name, .err = err};
    struct tn_zip zip = {0};
    tarn_status status;

    if ((status = find_directory(&r)) == TARN_OK && (status = read_directory(&r)) == TARN_OK &&
        (status = take_memory(&zip, &r)) == TARN_OK &&
        (status = unpack_all(&zip, &r)) == TARN_OK) {
        tn_zip_sort(&zip);
        status = check_twice(&zip, &r);
    }
    free(r.entries);
    zip.names = r.names;
    if (status != TARN_OK)
        tn_zip_free(&zip);
    *out = zip;
    return status;
}
