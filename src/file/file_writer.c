/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* flock() */
#define _FILE_OFFSET_BITS 64
#include "file/file_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "file/text_buffer.h"

char *tn_folder_of(const char *path)
{
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    return length > 0 ? tn_text_new("%.*s", (int)length, path) : tn_text_new(".");
}

void tn_file_writer_suspend(struct tn_file_writer *writer)
{
    if (writer->file >= 0)
        close(writer->file);
    free(writer->path);
    free(writer->temporary);
    free(writer->folder);
    *writer = (struct tn_file_writer){.file = -1};
}

void tn_file_writer_discard(struct tn_file_writer *writer)
{
    if (writer->file >= 0)
        unlink(writer->temporary);
    tn_file_writer_suspend(writer);
}

static tarn_status fail(struct tn_file_writer *writer, const char *what, tarn_error *err)
{
    const int number = errno;

    tn_fail_path(err, TARN_EIO, writer->path, "%s: %s", what, strerror(number));
    if (writer->keeps)
        tn_file_writer_suspend(writer);
    else
        tn_file_writer_discard(writer);
    return TARN_EIO;
}

/* ---- Opening ------------------------------------------------------------ */

/* Everything that memory is needed for, so that nothing after the rename can lack it. */
static tarn_status name(struct tn_file_writer *writer, const char *path, const char *suffix,
                        tarn_error *err)
{
    if (*path == '\0')
        return tn_fail_path(err, TARN_EINVAL, path, "is not a file name");
    writer->path = tn_text_new("%s", path);
    writer->temporary = tn_text_new("%s%s", path, suffix);
    writer->folder = tn_folder_of(path);
    if (writer->path && writer->temporary && writer->folder)
        return TARN_OK;
    tn_file_writer_suspend(writer);
    return tn_fail(err, TARN_ENOMEM, "not enough memory for a path of %zu bytes", strlen(path));
}

/* Renaming onto a folder fails only after everything was written, and renaming onto a device,
 * which root may do, would take the device away. */
static tarn_status check_target(struct tn_file_writer *writer, mode_t *mode, tarn_error *err)
{
    struct stat about;

    *mode = 0;
    if (stat(writer->path, &about) != 0)
        return TARN_OK;
    *mode = about.st_mode;
    const tarn_status status = tn_check_regular(*mode, writer->path, err);

    if (status != TARN_OK)
        tn_file_writer_suspend(writer);
    return status;
}

enum {
    AGAIN = -1,   /* no errno: lost to a writer that has just finished */
    FOREIGN = -2, /* likewise: what is in the way was not left by a writer of this user */
};

/* Whether the descriptor is still what the temporary's name stands for: between our open() and
 * our lock the writer before us may have renamed it to its target. */
static bool still_named(const struct tn_file_writer *writer, int file)
{
    struct stat ours, named;

    return fstat(file, &ours) == 0 && lstat(writer->temporary, &named) == 0 &&
           named.st_dev == ours.st_dev && named.st_ino == ours.st_ino;
}

/* 0 or an errno. File systems without locks go without. */
static int lock(int file)
{
    if (flock(file, LOCK_EX | LOCK_NB) == 0 || errno == ENOLCK || errno == ENOSYS ||
        errno == EOPNOTSUPP)
        return 0;
    return errno == EWOULDBLOCK ? EBUSY : errno;
}

/* Another user's file would stay theirs, and what has a second name is somebody's file. */
static int check_own(int file)
{
    struct stat about;

    if (fstat(file, &about) != 0)
        return errno;
    return S_ISREG(about.st_mode) && about.st_uid == geteuid() && about.st_nlink == 1 ? 0
                                                                                      : FOREIGN;
}

/* Opens and locks the temporary; 0, an errno, AGAIN or FOREIGN. */
static int claim(const struct tn_file_writer *writer, int *file, int flags)
{
    *file =
        open(writer->temporary, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
    if (*file < 0)
        return errno;
    int reason = lock(*file);

    if (reason == 0)
        reason = still_named(writer, *file) ? check_own(*file) : AGAIN;
    if (reason)
        close(*file);
    return reason;
}

/* What an earlier writer left, which may have gone meanwhile. */
static int claim_left(const struct tn_file_writer *writer, int *file, bool resumes)
{
    const int reason = claim(writer, file, resumes ? O_RDWR : O_RDONLY);

    if (reason == ENOENT)
        return AGAIN;
    return reason == ELOOP || reason == EISDIR || reason == ENXIO || reason == EACCES ? FOREIGN
                                                                                      : reason;
}

/* 0, an errno, AGAIN or FOREIGN. `writer->file` is set only once the temporary is ours to
 * remove. */
static int open_temporary(struct tn_file_writer *writer, bool resumes)
{
    int file, reason = claim(writer, &file, O_RDWR | O_CREAT | O_EXCL);

    if (reason == EEXIST && (reason = claim_left(writer, &file, resumes)) == 0 && !resumes) {
        reason = unlink(writer->temporary) == 0 ? AGAIN : errno;
        close(file);
    }
    if (reason == 0)
        writer->file = file;
    return reason;
}

/* A user knows the path, and the temporary only where it is itself in the way. */
static void report(const char *path, const char *suffix, int reason, tarn_error *err)
{
    if (reason == FOREIGN)
        tn_fail(err, TARN_EIO,
                "%s%s: is in the way and was not left by a writer of this user: it is a link, "
                "not a file, or somebody else's; remove it",
                tn_path_shown(path), suffix);
    else
        tn_fail_path(err, TARN_EIO, path, "%s",
                     reason == EBUSY || reason == AGAIN ? "is being written by another process"
                                                        : strerror(reason));
}

enum { ATTEMPTS = 100 };

/* The locked temporary, with whatever is in it if the writer resumes; the mode of the file that
 * it will replace, or 0. */
static tarn_status begin(struct tn_file_writer *writer, const char *path, const char *suffix,
                         bool resumes, mode_t *mode, tarn_error *err)
{
    int reason = AGAIN;

    *writer = (struct tn_file_writer){.file = -1};
    tarn_status status = name(writer, path, suffix, err);

    if (status != TARN_OK || (status = check_target(writer, mode, err)) != TARN_OK)
        return status;
    for (size_t i = 0; i < ATTEMPTS && reason == AGAIN; i++)
        reason = open_temporary(writer, resumes);
    if (!reason)
        return TARN_OK;
    report(path, suffix, reason, err);
    tn_file_writer_suspend(writer);
    return TARN_EIO;
}

tarn_status tn_file_writer_open(struct tn_file_writer *writer, const char *path,
                                tarn_error *err)
{
    mode_t mode = 0;
    const tarn_status status = begin(writer, path, ".tmp", false, &mode, err);

    if (status != TARN_OK)
        return status;
    if (mode && fchmod(writer->file, mode & 07777) != 0)
        return fail(writer, "the temporary file", err);
    return TARN_OK;
}

tarn_status tn_file_writer_resume(struct tn_file_writer *writer, uint64_t *there,
                                  const char *path, tarn_error *err)
{
    mode_t mode = 0;
    const tarn_status status = begin(writer, path, ".part", true, &mode, err);

    *there = 0;
    if (status != TARN_OK)
        return status;
    writer->keeps = true;
    const off_t end = lseek(writer->file, 0, SEEK_END);

    if (end < 0)
        return fail(writer, "the partial file", err);
    *there = (uint64_t)end;
    return TARN_OK;
}

tarn_status tn_file_writer_restart(struct tn_file_writer *writer, tarn_error *err)
{
    if (ftruncate(writer->file, 0) != 0 || lseek(writer->file, 0, SEEK_SET) != 0)
        return fail(writer, "the partial file", err);
    return TARN_OK;
}

/* ---- Writing ------------------------------------------------------------ */

tarn_status tn_file_writer_put(struct tn_file_writer *writer, const void *data, size_t bytes,
                               tarn_error *err)
{
    const char *at = data;
    const size_t most = (size_t)1 << 30;

    while (bytes > 0) {
        const ssize_t put = write(writer->file, at, tn_min(bytes, most));

        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(writer, "writing", err);
        at += put;
        bytes -= (size_t)put;
    }
    return TARN_OK;
}

tarn_status tn_file_writer_read(struct tn_file_writer *writer, void *data, size_t bytes,
                                uint64_t *size, tarn_error *err)
{
    struct stat about;
    size_t done = 0;
    ssize_t got = fstat(writer->file, &about) == 0 ? 1 : -1;

    while (got > 0 && done < bytes) {
        got = pread(writer->file, (char *)data + done, bytes - done, (off_t)done);
        if (got < 0 && errno == EINTR)
            got = 1;
        else if (got > 0)
            done += (size_t)got;
    }
    if (got < 0 || done < bytes)
        return tn_fail_path(err, TARN_EIO, writer->path, "reading it again: %s",
                            got < 0 ? strerror(errno) : "it is shorter than what was written");
    *size = (uint64_t)about.st_size;
    return TARN_OK;
}

/* A rename is on the disk once its folder is. A folder that may be written but not read cannot
 * be opened, and some file systems cannot sync a folder: then the system's own time is all
 * there is. */
int tn_sync_folder(const char *folder)
{
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int reason = 0;

    if (file < 0)
        return 0;
    if (fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP)
        reason = errno;
    close(file);
    return reason;
}

/* The lock is held until the rename is done: see still_named(). Without locks the temporary
 * may have become that of another writer. */
static tarn_status move(struct tn_file_writer *writer, tarn_error *err)
{
    if (!still_named(writer, writer->file)) {
        tn_fail_path(err, TARN_EIO, writer->path, "is being written by another process");
        tn_file_writer_suspend(writer);
        return TARN_EIO;
    }
    if (rename(writer->temporary, writer->path) != 0)
        return fail(writer, "renaming the temporary file", err);
    return TARN_OK;
}

tarn_status tn_file_writer_commit(struct tn_file_writer *writer, tarn_error *err)
{
    if (fsync(writer->file) != 0)
        return fail(writer, "syncing", err);
    const tarn_status status = move(writer, err);

    if (status != TARN_OK)
        return status;
    const int reason = tn_sync_folder(writer->folder);

    if (reason)
        tn_fail_path(err, TARN_EIO, writer->path,
                     "written, but its folder could not be synced: %s", strerror(reason));
    tn_file_writer_suspend(writer);
    return reason ? TARN_EIO : TARN_OK;
}

tarn_status tn_file_writer_commit_soon(struct tn_file_writer *writer, tarn_error *err)
{
    const tarn_status status = move(writer, err);

    if (status == TARN_OK)
        tn_file_writer_suspend(writer);
    return status;
}

tarn_status tn_file_write(const char *path, const void *data, size_t bytes, tarn_error *err)
{
    struct tn_file_writer writer;
    tarn_status status;

    if ((status = tn_file_writer_open(&writer, path, err)) == TARN_OK &&
        (status = tn_file_writer_put(&writer, data, bytes, err)) == TARN_OK)
        status = tn_file_writer_commit(&writer, err);
    return status;
}
