/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "data/text_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

const char tn_text_folder_reason[] = "contains a zero byte, so it is not a text file";

static const size_t most = SIZE_MAX / 2;

static bool not_hidden(const char *name)
{
    return name[0] != '.';
}

/* Bytes of all files, and of the newlines between them. */
static tarn_status measure(size_t *size, const struct tn_paths *files, tarn_error *err)
{
    struct stat about;

    *size = 0;
    for (size_t i = 0; i < files->count; i++) {
        const char *const path = files->path[i];

        if (stat(path, &about) != 0)
            return tn_fail_errno(err, path);
        if ((uintmax_t)about.st_size >= most - *size)
            return tn_fail_path(err, TARN_EIO, path, "has %ju bytes, more than fit in memory",
                                (uintmax_t)about.st_size);
        *size += (size_t)about.st_size + 1;
    }
    return TARN_OK;
}

/* Appends one file to the first *used bytes. */
static tarn_status append(struct tn_bytes *text, size_t *used, struct tn_paths *skipped,
                          const char *path, bool strict, tarn_error *err)
{
    struct tn_bytes one;
    tarn_status status = tn_bytes_read(&one, path, text->size - *used, err);

    if (status != TARN_OK || one.size == 0)
        goto done;
    if (memchr(one.data, '\0', one.size)) {
        status = strict ? tn_fail_path(err, TARN_EFORMAT, path, "%s", tn_text_folder_reason)
                        : tn_paths_add(skipped, path, err);
        goto done;
    }
    if (*used > 0)
        text->data[(*used)++] = '\n';
    if (one.size > text->size - *used) { /* it grew since it was measured */
        status = tn_fail_path(err, TARN_EIO, path, "was changed while it was read");
        goto done;
    }
    memcpy(text->data + *used, one.data, one.size);
    *used += one.size;
done:
    tn_bytes_free(&one);
    return status;
}

static tarn_status join(struct tn_bytes *text, struct tn_paths *skipped,
                        const struct tn_paths *files, bool strict, tarn_error *err)
{
    size_t size, used = 0;
    tarn_status status = measure(&size, files, err);

    if (status == TARN_OK)
        status = tn_bytes_take(text, size, err);
    for (size_t i = 0; i < files->count && status == TARN_OK; i++)
        status = append(text, &used, skipped, files->path[i], strict, err);
    text->size = used;
    return status;
}

tarn_status tn_text_folder_read(struct tn_bytes *text, struct tn_paths *skipped,
                                const char *folder, bool strict, tarn_error *err)
{
    struct tn_paths files = {0};
    tarn_status status = tn_paths_below(&files, folder, not_hidden, err);

    *text = (struct tn_bytes){0};
    if (status == TARN_OK)
        status = join(text, skipped, &files, strict, err);
    if (status == TARN_OK && text->size == 0)
        status = tn_fail_path(err, TARN_EIO, folder,
                              "contains no text, in %zu files; expected a folder of text files",
                              files.count);
    if (status != TARN_OK)
        tn_bytes_free(text);
    tn_paths_free(&files);
    return status;
}
