/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "file/file_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *tn_path_shown(const char *path)
{
    const size_t length = strlen(path), most = 120;

    if (length == 0)
        return "''";
    return length > most ? path + (length - most) : path;
}

tarn_status tn_fail_path(tarn_error *err, tarn_status status, const char *path,
                         const char *format, ...)
{
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tn_fail(err, status, "%s: %s", tn_path_shown(path), text);
}

tarn_status tn_fail_errno(tarn_error *err, const char *path)
{
    if (errno == ENOMEM)
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory");
    return tn_fail_path(err, TARN_EIO, path, "%s", strerror(errno));
}

/* Not aligned_alloc(), which wants multiples of 64: a size of its own lets sanitizers see a
 * read past the end. */
tarn_status tn_bytes_allocate(struct tn_bytes *out, size_t size, tarn_error *err)
{
    void *data = NULL;

    *out = (struct tn_bytes){0};
    if (posix_memalign(&data, TN_ALIGN, size ? size : 1) != 0)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu bytes", size);
    *out = (struct tn_bytes){.data = data, .size = size};
    return TARN_OK;
}

void tn_bytes_free(struct tn_bytes *bytes)
{
    free(bytes->data);
    *bytes = (struct tn_bytes){0};
}

tarn_status tn_check_regular(mode_t mode, const char *path, tarn_error *err)
{
    if (S_ISREG(mode))
        return TARN_OK;
    return tn_fail_path(err, TARN_EIO, path, "is %s, not a regular file",
                        S_ISDIR(mode) ? "a folder" : "a device, pipe or socket");
}

bool tn_read_all(int file, void *to, size_t bytes, size_t *got)
{
    const size_t most = (size_t)1 << 30; /* some systems read no more than 2 GB at once */
    ssize_t some = 1;

    for (*got = 0; *got < bytes && some != 0;) {
        some = read(file, (char *)to + *got, tn_min(bytes - *got, most));
        if (some < 0 && errno != EINTR)
            return false;
        *got += some > 0 ? (size_t)some : 0;
    }
    return true;
}

/* How many bytes there are, if this is a file that has a number of them. */
static tarn_status measure(size_t *size, int file, const char *path, size_t limit,
                           tarn_error *err)
{
    struct stat about;

    if (fstat(file, &about) != 0)
        return tn_fail_errno(err, path);
    const tarn_status status = tn_check_regular(about.st_mode, path, err);

    if (status == TARN_OK && (uintmax_t)about.st_size > limit)
        return tn_fail_path(err, TARN_EIO, path, "has %ju bytes; expected at most %zu",
                            (uintmax_t)about.st_size, limit);
    *size = (size_t)about.st_size;
    return status;
}

static tarn_status fill(struct tn_bytes *bytes, int file, const char *path, tarn_error *err)
{
    size_t got;

    if (!tn_read_all(file, bytes->data, bytes->size, &got))
        return tn_fail_errno(err, path);
    if (got < bytes->size)
        return tn_fail_path(err, TARN_EIO, path,
                            "ended after %zu of %zu bytes; it was truncated during reading",
                            got, bytes->size);
    return TARN_OK;
}

/* O_NONBLOCK: opening a pipe that nobody writes to must not wait. */
tarn_status tn_bytes_read(struct tn_bytes *out, const char *path, size_t limit, tarn_error *err)
{
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size_t size = 0;

    *out = (struct tn_bytes){0};
    if (file < 0)
        return tn_fail_errno(err, path);
    tarn_status status = measure(&size, file, path, limit, err);

    if (status == TARN_OK)
        status = tn_bytes_allocate(out, size, err);
    if (status == TARN_OK && (status = fill(out, file, path, err)) != TARN_OK)
        tn_bytes_free(out);
    close(file);
    return status;
}
