/* SPDX-License-Identifier: MIT */
#include "file/zip.h"

#include <stdlib.h>
#include <string.h>

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

#ifndef TN_HAVE_ARCHIVE

tarn_status tn_zip_read(struct tn_zip *out, const struct tn_bytes *file, size_t most,
                        const char *name, tarn_error *err)
{
    (void)file;
    (void)most;
    *out = (struct tn_zip){0};
    return tn_fail(err, TARN_EMACHINE,
                   "%s: cannot read this zip archive: this build has no libarchive",
                   tn_path_shown(name));
}

tarn_status tn_zip_write(const char *path, const struct tn_zip_piece *pieces, size_t count,
                         tarn_error *err)
{
    (void)pieces;
    (void)count;
    return tn_fail(err, TARN_EMACHINE,
                   "%s: cannot write a zip archive: this build has no libarchive",
                   tn_path_shown(path));
}

#else

#include <archive.h>
#include <archive_entry.h>

#include "file/file_writer.h"

/* ---- Reading ------------------------------------------------------------ */

struct reading {
    const struct tn_bytes *file;
    size_t most;
    const char *path;
    tarn_error *err;
};

static tarn_status refuse(const struct reading *r, const char *what)
{
    return tn_fail(r->err, TARN_EFORMAT, "%s: %s", tn_path_shown(r->path), what);
}

static tarn_status refuse_archive(const struct reading *r, struct archive *archive)
{
    const char *const text = archive_error_string(archive);

    return tn_fail(r->err, TARN_EFORMAT, "%s: zip: %.100s", tn_path_shown(r->path),
                   text ? text : "not an archive that libarchive can read");
}

static tarn_status refuse_entry(const struct reading *r, const char *name, const char *what)
{
    return tn_fail(r->err, TARN_EFORMAT, "%s: zip entry '%.60s': %s", tn_path_shown(r->path),
                   name, what);
}

/* By its directory, at the end: a file that is cut has none. */
static tarn_status open_archive(struct archive **archive, const struct reading *r)
{
    *archive = archive_read_new();
    if (!*archive)
        return tn_fail(r->err, TARN_ENOMEM, "not enough memory for libarchive");
    archive_read_support_format_zip_seekable(*archive);
    if (archive_read_open_memory(*archive, r->file->data, r->file->size) != ARCHIVE_OK)
        return refuse_archive(r, *archive);
    return TARN_OK;
}

/* The next entry that is a file; NULL: there is none. */
static tarn_status next_file(struct archive_entry **entry, struct archive *archive,
                             const struct reading *r)
{
    int code;

    do {
        *entry = NULL;
        code = archive_read_next_header(archive, entry);
        if (code == ARCHIVE_EOF) {
            *entry = NULL;
            return TARN_OK;
        }
        if (code < ARCHIVE_WARN)
            return refuse_archive(r, archive);
    } while (archive_entry_filetype(*entry) == AE_IFDIR);
    if (archive_entry_filetype(*entry) != AE_IFREG || archive_entry_hardlink(*entry))
        return refuse(r, "zip: contains links or devices; expected only files");
    return TARN_OK;
}

static tarn_status check_name(const char **name, struct archive_entry *entry,
                              const struct reading *r)
{
    const char *const found = archive_entry_pathname_utf8(entry);

    if (!found || !*found || strlen(found) > TN_ZIP_NAME)
        return refuse(r, "zip: an entry's name is empty, too long or not UTF-8");
    *name = found;
    if (*found == '/' || strchr(found, '\\'))
        return refuse_entry(r, found, "is not a relative path");
    for (const char *part = found; part; part = strchr(part, '/')) {
        part += *part == '/';
        if (strncmp(part, "..", 2) == 0 && (part[2] == '/' || part[2] == '\0'))
            return refuse_entry(r, found, "contains '..'");
    }
    return TARN_OK;
}

struct sizes {
    size_t count, names, bytes; /* entries; bytes of their names and of all data, aligned */
};

/* What there is, before memory is taken for it. */
static tarn_status measure(struct sizes *sizes, struct archive *archive,
                           const struct reading *r)
{
    struct archive_entry *entry;
    const char *name = "";
    size_t claimed = 0;
    tarn_status status;

    *sizes = (struct sizes){0};
    while ((status = next_file(&entry, archive, r)) == TARN_OK && entry) {
        const int64_t size = archive_entry_size_is_set(entry) ? archive_entry_size(entry) : -1;

        if ((status = check_name(&name, entry, r)) != TARN_OK)
            return status;
        if (size < 0 || (uint64_t)size > r->most - claimed)
            return tn_fail(r->err, TARN_EFORMAT,
                           "%s: zip entry '%.60s': its %jd bytes bring the total above the %zu "
                           "that the file can contain",
                           tn_path_shown(r->path), name, (intmax_t)size, r->most);
        if (sizes->count == TN_ZIP_ENTRIES)
            return refuse(r, "zip: has more than 1048576 entries");
        claimed += (size_t)size;
        sizes->count++;
        sizes->names += strlen(name) + 1;
        sizes->bytes += tn_round_up((size_t)size, TN_ALIGN);
    }
    return status;
}

static tarn_status read_data(unsigned char *out, size_t size, struct archive *archive,
                             const char *name, const struct reading *r)
{
    size_t done = 0;
    unsigned char behind;

    while (done < size) {
        const la_ssize_t got = archive_read_data(archive, out + done, size - done);

        if (got < 0)
            return refuse_archive(r, archive);
        if (got == 0)
            return refuse_entry(r, name, "has fewer bytes than its size says");
        done += (size_t)got;
    }
    const la_ssize_t more = archive_read_data(archive, &behind, 1); /* checks the sum, too */

    if (more < 0)
        return refuse_archive(r, archive);
    return more == 0 ? TARN_OK : refuse_entry(r, name, "has more bytes than its size says");
}

/* The same entries again, now into memory of the sizes that were found. */
static tarn_status unpack(struct tn_zip *zip, const struct sizes *sizes,
                          struct archive *archive, const struct reading *r)
{
    struct archive_entry *entry;
    const char *name = "";
    char *next_name = zip->names;
    size_t used = 0;
    tarn_status status;

    while ((status = next_file(&entry, archive, r)) == TARN_OK && entry) {
        if ((status = check_name(&name, entry, r)) != TARN_OK)
            return status;
        const size_t length = strlen(name) + 1, size = (size_t)archive_entry_size(entry);

        if (zip->count == sizes->count ||
            length > sizes->names - (size_t)(next_name - zip->names) ||
            size > sizes->bytes - used)
            return refuse(r, "zip: the file changed during reading");
        memcpy(next_name, name, length);
        zip->entries[zip->count++] =
            (struct tn_zip_entry){next_name, zip->bytes.data + used, size};
        next_name += length;
        if ((status = read_data(zip->bytes.data + used, size, archive, name, r)) != TARN_OK)
            return status;
        used += tn_round_up(size, TN_ALIGN);
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

tarn_status tn_zip_read(struct tn_zip *out, const struct tn_bytes *file, size_t most,
                        const char *name, tarn_error *err)
{
    const struct reading r = {file, most, name, err};
    struct tn_zip zip = {0};
    struct archive *first = NULL, *second = NULL;
    struct sizes sizes = {0};
    tarn_status status;

    *out = zip;
    if ((status = open_archive(&first, &r)) == TARN_OK &&
        (status = measure(&sizes, first, &r)) == TARN_OK &&
        (status = take_memory(&zip, &sizes, &r)) == TARN_OK &&
        (status = open_archive(&second, &r)) == TARN_OK &&
        (status = unpack(&zip, &sizes, second, &r)) == TARN_OK) {
        tn_zip_sort(&zip);
        status = check_twice(&zip, &r);
    }
    archive_read_free(first);
    archive_read_free(second);
    if (status == TARN_OK)
        *out = zip;
    else
        tn_zip_free(&zip);
    return status;
}

/* ---- Writing ------------------------------------------------------------ */

struct writing {
    struct tn_file_writer writer;
    tarn_error *err;
    tarn_status status; /* of the writer */
};

static la_ssize_t put(struct archive *archive, void *context, const void *data, size_t bytes)
{
    struct writing *const w = context;

    w->status = tn_file_writer_put(&w->writer, data, bytes, w->err);
    if (w->status == TARN_OK)
        return (la_ssize_t)bytes;
    archive_set_error(archive, ARCHIVE_FATAL, "the file could not be written");
    return -1;
}

/* No time: equal models give equal files. */
static bool put_piece(struct archive *archive, const struct tn_zip_piece *piece)
{
    struct archive_entry *const entry = archive_entry_new();
    bool written = false;

    if (!entry)
        return false;
    archive_entry_set_pathname(entry, piece->name);
    archive_entry_set_size(entry, (la_int64_t)(piece->head_bytes + piece->bytes));
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_perm(entry, 0644);
    written =
        archive_write_header(archive, entry) == ARCHIVE_OK &&
        archive_write_data(archive, piece->head, piece->head_bytes) ==
            (la_ssize_t)piece->head_bytes &&
        archive_write_data(archive, piece->data, piece->bytes) == (la_ssize_t)piece->bytes;
    archive_entry_free(entry);
    return written;
}

static bool put_all(struct archive *archive, struct writing *w,
                    const struct tn_zip_piece *pieces, size_t count)
{
    bool written = archive_write_set_format_zip(archive) == ARCHIVE_OK &&
                   archive_write_zip_set_compression_store(archive) == ARCHIVE_OK &&
                   archive_write_set_bytes_in_last_block(archive, 1) == ARCHIVE_OK &&
                   archive_write_open(archive, w, NULL, put, NULL) == ARCHIVE_OK;

    for (size_t i = 0; i < count && written; i++)
        written = put_piece(archive, &pieces[i]);
    return archive_write_close(archive) == ARCHIVE_OK && written;
}

tarn_status tn_zip_write(const char *path, const struct tn_zip_piece *pieces, size_t count,
                         tarn_error *err)
{
    struct writing w = {.err = err};
    struct archive *const archive = archive_write_new();

    if (!archive)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for libarchive",
                       tn_path_shown(path));
    if ((w.status = tn_file_writer_open(&w.writer, path, err)) == TARN_OK) {
        const bool written = put_all(archive, &w, pieces, count);

        if (w.status == TARN_OK && !written)
            w.status = tn_fail(err, TARN_EIO, "%s: zip: %.100s", tn_path_shown(path),
                               archive_error_string(archive));
        if (w.status == TARN_OK)
            w.status = tn_file_writer_commit(&w.writer, err);
        else
            tn_file_writer_discard(&w.writer);
    }
    archive_write_free(archive);
    return w.status;
}

#endif
