/* SPDX-License-Identifier: MIT */
#include "file/unpack.h"

#include "file/file_bytes.h"

#ifndef TN_HAVE_ARCHIVE

tarn_status tn_unpack_tar(const char *archive, const struct tn_unpack *wanted, size_t count,
                          tarn_error *err)
{
    (void)wanted;
    (void)count;
    return tn_fail(
        err, TARN_EMACHINE,
        "%s: cannot unpack: this build has no libarchive; unpack it there with tar -xzf",
        tn_path_shown(archive));
}

#else

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_writer.h"

enum { BLOCK = 1 << 16 };

static tarn_status refuse(const char *path, struct archive *from, tarn_error *err)
{
    const char *const text = archive_error_string(from);

    return tn_fail(err, TARN_EFORMAT, "%s: %.100s", tn_path_shown(path),
                   text ? text : "not an archive that libarchive can read");
}

static tarn_status copy(struct tn_file_writer *writer, struct archive *from,
                        const struct tn_unpack *want, const char *archive, tarn_error *err)
{
    unsigned char block[BLOCK];
    uint64_t bytes = 0;
    tarn_status status = TARN_OK;

    while (status == TARN_OK) {
        const la_ssize_t got = archive_read_data(from, block, BLOCK);

        if (got < 0)
            return refuse(archive, from, err);
        bytes += (uint64_t)got;
        if (bytes > want->bytes || (got == 0 && bytes < want->bytes))
            return tn_fail(err, TARN_EFORMAT, "%s: %s has %s bytes than the expected %ju",
                           tn_path_shown(archive), want->member, got == 0 ? "fewer" : "more",
                           (uintmax_t)want->bytes);
        if (got == 0)
            return TARN_OK;
        status = tn_file_writer_put(writer, block, (size_t)got, err);
    }
    return status;
}

static tarn_status write_member(struct archive *from, const struct tn_unpack *want,
                                const char *archive, tarn_error *err)
{
    struct tn_file_writer writer;
    tarn_status status = tn_file_writer_open(&writer, want->path, err);

    if (status != TARN_OK)
        return status;
    if ((status = copy(&writer, from, want, archive, err)) == TARN_OK)
        return tn_file_writer_commit(&writer, err);
    tn_file_writer_discard(&writer);
    return status;
}

static const struct tn_unpack *find(const struct tn_unpack *wanted, size_t count,
                                    struct archive_entry *entry)
{
    const char *const name = archive_entry_pathname(entry);

    if (!name || archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry))
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, wanted[i].member) == 0)
            return &wanted[i];
    return NULL;
}

/* Where a member is there twice, the first is taken. */
static tarn_status walk(struct archive *from, const char *archive,
                        const struct tn_unpack *wanted, size_t count, bool *taken,
                        tarn_error *err)
{
    struct archive_entry *entry;
    tarn_status status = TARN_OK;
    size_t found = 0;

    while (status == TARN_OK && found < count) {
        const int code = archive_read_next_header(from, &entry);

        if (code == ARCHIVE_EOF)
            return tn_fail(err, TARN_EFORMAT, "%s: contains only %zu of the %zu expected files",
                           tn_path_shown(archive), found, count);
        if (code < ARCHIVE_WARN)
            return refuse(archive, from, err);
        const struct tn_unpack *const want = find(wanted, count, entry);

        if (!want || taken[want - wanted])
            continue;
        status = write_member(from, want, archive, err);
        taken[want - wanted] = true;
        found++;
    }
    return status;
}

tarn_status tn_unpack_tar(const char *archive, const struct tn_unpack *wanted, size_t count,
                          tarn_error *err)
{
    struct archive *const from = archive_read_new();
    bool *const taken = calloc(count + 1, sizeof *taken);
    tarn_status status;

    if (!from || !taken) {
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for libarchive");
        goto done;
    }
    archive_read_support_format_tar(from);
    archive_read_support_filter_gzip(from);
    if (archive_read_open_filename(from, archive, BLOCK) != ARCHIVE_OK)
        status = refuse(archive, from, err);
    else
        status = walk(from, archive, wanted, count, taken, err);
done:
    free(taken);
    archive_read_free(from);
    return status;
}

#endif
