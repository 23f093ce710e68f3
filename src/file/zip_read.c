/* SPDX-License-Identifier: MIT */
/* zip_read.c - an archive is what its central headers say: a file that is cut has none. Every
 * length is checked before it is used, and a local header must agree on the name, so that no
 * two programs find different files in it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "file/gzip.h"
#include "file/zip.h"

bool tn_is_zip(const struct tn_bytes *bytes)
{
    return bytes->size >= 4 && memcmp(bytes->data, "PK\3\4", 4) == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct tn_zip_entry *const x = a, *const y = b;

    return strcmp(x->name, y->name);
}

void tn_zip_sort(struct tn_zip *zip)
{
    if (zip->count > 0)
        qsort(zip->entries, zip->count, sizeof *zip->entries, by_name);
}

const struct tn_zip_entry *tn_zip_find(const struct tn_zip *zip, const char *name)
{
    const struct tn_zip_entry wanted = {.name = name};

    return zip->count
               ? bsearch(&wanted, zip->entries, zip->count, sizeof *zip->entries, by_name)
               : NULL;
}

void tn_zip_free(struct tn_zip *zip)
{
    free(zip->entries);
    free(zip->names);
    tn_bytes_free(&zip->bytes);
    *zip = (struct tn_zip){0};
}

/* ---- What is read ------------------------------------------------------- */

struct reading {
    const struct tn_bytes *file;
    size_t most;
    size_t directory, directory_end; /* of the central headers */
    size_t count;                    /* of them */
    const char *path;
    tarn_error *err;
};

/* One central header. */
struct entry {
    char name[TN_ZIP_NAME + 1];
    size_t length; /* of the name */
    uint32_t flags, method, crc;
    uint64_t packed, bytes, place; /* of the data; of the local header */
    bool is_folder;
};

static tarn_status refuse(const struct reading *r, const char *what)
{
    return tn_fail(r->err, TARN_EFORMAT, "%s: zip: %s", tn_path_shown(r->path), what);
}

static tarn_status refuse_entry(const struct reading *r, const char *name, const char *what)
{
    return tn_fail(r->err, TARN_EFORMAT, "%s: zip entry '%.60s': %s", tn_path_shown(r->path),
                   name, what);
}

/* A little-endian number of `width` bytes, which the caller knows to be there. */
static uint64_t number(const struct reading *r, size_t at, size_t width)
{
    uint64_t value = 0;

    for (size_t i = width; i-- > 0;)
        value = value << 8 | r->file->data[at + i];
    return value;
}

static bool is_record(const struct reading *r, size_t at, size_t bytes, uint32_t signature)
{
    return at <= r->file->size && bytes <= r->file->size - at && number(r, at, 4) == signature;
}

/* ---- The directory ------------------------------------------------------ */

/* The last record: only a comment of at most 64 KiB may follow it, and it says how long that
 * is. */
static bool find_end(const struct reading *r, size_t *end)
{
    const size_t size = r->file->size;

    for (size_t behind = TN_ZIP_END_BYTES; behind <= size; behind++) {
        const size_t comment = behind - TN_ZIP_END_BYTES;

        *end = size - behind;
        if (comment > UINT16_MAX)
            return false;
        if (number(r, *end, 4) == TN_ZIP_END && number(r, *end + 20, 2) == comment)
            return true;
    }
    return false;
}

/* Where numbers are too large for it, the end is preceded by a record that says where the
 * larger one is. */
static tarn_status read_end_64(struct reading *r, size_t end, uint64_t *count, uint64_t *bytes,
                               uint64_t *place)
{
    if (end < TN_ZIP_LOCATOR_64_BYTES ||
        number(r, end - TN_ZIP_LOCATOR_64_BYTES, 4) != TN_ZIP_LOCATOR_64)
        return TARN_OK;
    const uint64_t at = number(r, end - TN_ZIP_LOCATOR_64_BYTES + 8, 8);

    if (at > end || !is_record(r, (size_t)at, TN_ZIP_END_64_BYTES, TN_ZIP_END_64))
        return refuse(r, "its directory for large files is damaged");
    *count = number(r, (size_t)at + 32, 8);
    *bytes = number(r, (size_t)at + 40, 8);
    *place = number(r, (size_t)at + 48, 8);
    return TARN_OK;
}

static tarn_status find_directory(struct reading *r)
{
    uint64_t count, bytes, place;
    size_t end;
    tarn_status status;

    if (!find_end(r, &end))
        return refuse(r, "it has no directory at its end; it may be truncated");
    count = number(r, end + 10, 2);
    bytes = number(r, end + 12, 4);
    place = number(r, end + 16, 4);
    if ((status = read_end_64(r, end, &count, &bytes, &place)) != TARN_OK)
        return status;
    if (place > end || bytes > end - place)
        return refuse(r, "its directory is damaged");
    if (count > TN_ZIP_ENTRIES)
        return refuse(r, "has more than 1048576 entries");
    r->directory = (size_t)place;
    r->directory_end = (size_t)(place + bytes);
    r->count = (size_t)count;
    return TARN_OK;
}

/* ---- Central headers ---------------------------------------------------- */

/* The extra field has those of size, packed size and place, in this order, that the header has
 * no room for. */
static bool read_extra_64(const struct reading *r, struct entry *entry, size_t at, size_t end)
{
    uint64_t *const values[] = {&entry->bytes, &entry->packed, &entry->place};

    while (end - at >= 4) {
        const uint64_t kind = number(r, at, 2), bytes = number(r, at + 2, 2);

        at += 4;
        if (bytes > end - at)
            return false;
        size_t next = at;

        for (size_t i = 0; i < 3 && kind == TN_ZIP_EXTRA_64; i++) {
            if (*values[i] != UINT32_MAX)
                continue;
            if (at + bytes - next < 8)
                return false;
            *values[i] = number(r, next, 8);
            next += 8;
        }
        at += (size_t)bytes;
    }
    return true;
}

static tarn_status check_name(const struct entry *entry, const struct reading *r)
{
    const char *const name = entry->name;

    if (entry->length == 0 || strlen(name) != entry->length || !tn_is_utf8(name))
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
static bool is_plain_file(const struct reading *r, size_t at)
{
    const uint64_t system = number(r, at + 5, 1), mode = number(r, at + 40, 2);
    const uint64_t kind = mode & 0170000;

    return system != 3 || kind == 0 || kind == 0100000;
}

/* At *at; then *at is that of the next. */
static tarn_status read_central(struct entry *entry, size_t *at, const struct reading *r)
{
    const size_t left = r->directory_end - *at;

    if (left < TN_ZIP_CENTRAL_BYTES || number(r, *at, 4) != TN_ZIP_CENTRAL)
        return refuse(r, "its directory is damaged");
    const size_t length = number(r, *at + 28, 2), extra = number(r, *at + 30, 2);
    const size_t all = TN_ZIP_CENTRAL_BYTES + length + extra + number(r, *at + 32, 2);
    const size_t name = *at + TN_ZIP_CENTRAL_BYTES;

    if (length > TN_ZIP_NAME)
        return refuse(r, "an entry's name is too long");
    if (all > left)
        return refuse(r, "its directory is damaged");
    *entry = (struct entry){
        .length = length,
        .flags = (uint32_t)number(r, *at + 8, 2),
        .method = (uint32_t)number(r, *at + 10, 2),
        .crc = (uint32_t)number(r, *at + 16, 4),
        .packed = number(r, *at + 20, 4),
        .bytes = number(r, *at + 24, 4),
        .place = number(r, *at + 42, 4),
    };
    memcpy(entry->name, r->file->data + name, length);
    entry->is_folder = length > 0 && entry->name[length - 1] == '/';
    if (!entry->is_folder && !is_plain_file(r, *at))
        return refuse(r, "contains links or devices; expected only files");
    if (!read_extra_64(r, entry, name + length, name + length + extra))
        return refuse(r, "its directory is damaged");
    *at += all;
    return check_name(entry, r);
}

/* ---- Sizes -------------------------------------------------------------- */

struct sizes {
    size_t count, names, bytes; /* entries; bytes of their names and of all data, aligned */
};

/* What there is, before memory is taken for it. */
static tarn_status measure(struct sizes *sizes, const struct reading *r)
{
    struct entry entry;
    size_t claimed = 0, at = r->directory;

    *sizes = (struct sizes){0};
    for (size_t i = 0; i < r->count; i++) {
        const tarn_status status = read_central(&entry, &at, r);

        if (status != TARN_OK)
            return status;
        if (entry.is_folder)
            continue;
        if (entry.bytes > r->most - claimed)
            return tn_fail(r->err, TARN_EFORMAT,
                           "%s: zip entry '%.60s': its %ju bytes bring the total above the %zu "
                           "that the file can contain",
                           tn_path_shown(r->path), entry.name, (uintmax_t)entry.bytes, r->most);
        claimed += (size_t)entry.bytes;
        sizes->count++;
        sizes->names += entry.length + 1;
        sizes->bytes += tn_round_up((size_t)entry.bytes, TN_ALIGN);
    }
    return TARN_OK;
}

/* ---- Data --------------------------------------------------------------- */

/* Where the data of an entry begins. */
static tarn_status find_data(size_t *data, const struct entry *entry, const struct reading *r)
{
    const size_t end = r->directory;

    if (entry->flags & TN_ZIP_ENCRYPTED)
        return refuse_entry(r, entry->name, "is encrypted");
    if (entry->place > end ||
        !is_record(r, (size_t)entry->place, TN_ZIP_LOCAL_BYTES, TN_ZIP_LOCAL))
        return refuse_entry(r, entry->name, "is not where the directory says");
    const size_t at = (size_t)entry->place, length = number(r, at + 26, 2);
    const size_t before = TN_ZIP_LOCAL_BYTES + length + number(r, at + 28, 2);

    if (before > end - at || entry->packed > end - at - before)
        return refuse_entry(r, entry->name, "extends past the end of the data");
    if (length != entry->length ||
        memcmp(r->file->data + at + TN_ZIP_LOCAL_BYTES, entry->name, length) != 0)
        return refuse_entry(r, entry->name, "has another name before its data");
    *data = at + before;
    return TARN_OK;
}

/* zlib counts in unsigned int. Z_STREAM_END: exactly this many bytes of deflate became exactly
 * those. */
static int inflate_all(z_stream *z, unsigned char *out, size_t bytes, const unsigned char *in,
                       size_t packed)
{
    unsigned char none;
    int code = Z_OK;

    z->next_in = in;
    z->next_out = bytes > 0 ? out : &none;
    while (code == Z_OK) {
        const size_t read = (size_t)(z->next_in - in);
        const size_t made = bytes > 0 ? (size_t)(z->next_out - out) : 0;
        const uInt some = (uInt)tn_min(packed - read, INT_MAX);
        const uInt room = (uInt)tn_min(bytes - made, INT_MAX);

        z->avail_in = some;
        z->avail_out = room;
        code = inflate(z, Z_NO_FLUSH);
        if (code == Z_OK && z->avail_in == some && z->avail_out == room)
            return Z_DATA_ERROR;
    }
    if (code != Z_STREAM_END)
        return code;
    return (size_t)(z->next_in - in) == packed &&
                   (bytes == 0 || (size_t)(z->next_out - out) == bytes)
               ? Z_STREAM_END
               : Z_DATA_ERROR;
}

static tarn_status unpack_deflated(unsigned char *out, const struct entry *entry,
                                   const unsigned char *in, const struct reading *r)
{
    z_stream z = {0};
    int code = inflateInit2(&z, -MAX_WBITS);

    if (code == Z_OK) {
        code = inflate_all(&z, out, (size_t)entry->bytes, in, (size_t)entry->packed);
        inflateEnd(&z);
    }
    if (code == Z_MEM_ERROR)
        return tn_fail(r->err, TARN_ENOMEM, "%s: not enough memory to unpack it",
                       tn_path_shown(r->path));
    return code == Z_STREAM_END
               ? TARN_OK
               : refuse_entry(r, entry->name, "its compressed data is damaged");
}

static tarn_status unpack(unsigned char *out, const struct entry *entry,
                          const struct reading *r)
{
    const size_t bytes = (size_t)entry->bytes;
    size_t data = 0;
    tarn_status status = find_data(&data, entry, r);

    if (status != TARN_OK)
        return status;
    const unsigned char *const in = r->file->data + data;

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

static tarn_status take_memory(struct tn_zip *zip, const struct sizes *sizes,
                               const struct reading *r)
{
    zip->entries = calloc(sizes->count + 1, sizeof *zip->entries);
    zip->names = malloc(sizes->names + 1);
    if (!zip->entries || !zip->names)
        return tn_fail(r->err, TARN_ENOMEM, "%s: not enough memory for %zu entries",
                       tn_path_shown(r->path), sizes->count);
    return tn_bytes_take(&zip->bytes, sizes->bytes, r->err);
}

/* The same headers again, now into memory of the sizes that were found. */
static tarn_status unpack_all(struct tn_zip *zip, const struct reading *r)
{
    struct entry entry;
    char *name = zip->names;
    size_t used = 0, at = r->directory;

    for (size_t i = 0; i < r->count; i++) {
        unsigned char *const out = zip->bytes.data + used;
        tarn_status status = read_central(&entry, &at, r);

        if (status != TARN_OK)
            return status;
        if (entry.is_folder)
            continue;
        if ((status = unpack(out, &entry, r)) != TARN_OK)
            return status;
        memcpy(name, entry.name, entry.length + 1);
        zip->entries[zip->count++] = (struct tn_zip_entry){name, out, (size_t)entry.bytes};
        name += entry.length + 1;
        used += tn_round_up((size_t)entry.bytes, TN_ALIGN);
    }
    return TARN_OK;
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
    struct sizes sizes = {0};
    tarn_status status;

    *out = zip;
    if ((status = find_directory(&r)) == TARN_OK && (status = measure(&sizes, &r)) == TARN_OK &&
        (status = take_memory(&zip, &sizes, &r)) == TARN_OK &&
        (status = unpack_all(&zip, &r)) == TARN_OK) {
        tn_zip_sort(&zip);
        status = check_twice(&zip, &r);
    }
    if (status == TARN_OK)
        *out = zip;
    else
        tn_zip_free(&zip);
    return status;
}
