/* SPDX-License-Identifier: MIT */
/* file_writer.h - a file is replaced as a whole or not at all.
 *
 * Everything goes to PATH.tmp in the same folder, is synced, and then renamed to PATH; whatever
 * fails or whoever is killed before that leaves the old PATH as it was.
 *
 * The temporary's name is fixed, so that what a killed process left behind is found by the next
 * writer instead of gathering for ever, as unique names would. Nothing that is there is written
 * to: the temporary is always a new file. What is in its way is removed if it is what a writer
 * of this user left, a regular file with one name that nobody has locked, and refused if not:
 * a link, a file of somebody else, or one that is being written. The system drops the lock of a
 * process that dies.
 *
 *     struct tn_file_writer writer;
 *     if ((status = tn_file_writer_open(&writer, path, err)) == TARN_OK &&
 *         (status = tn_file_writer_put(&writer, data, bytes, err)) == TARN_OK)
 *         status = tn_file_writer_commit(&writer, err);
 *
 * What comes from far away is worth keeping: tn_file_writer_resume() writes to PATH.part
 * instead and continues after what an earlier writer of this user left there. */
#ifndef TN_FILE_WRITER_H
#define TN_FILE_WRITER_H

#include "base/base.h"

struct tn_file_writer {
    char *path;      /* as given */
    char *temporary; /* path.tmp */
    char *folder;    /* that both are in */
    int file;        /* descriptor of the temporary; -1: closed */
    bool keeps;      /* the temporary stays when something fails */
};

/* A path that exists must be a regular file; its permissions are kept. A symbolic link is
 * replaced, not what it points to. On failure, here and below, the writer is closed and the
 * temporary removed. */
tarn_status tn_file_writer_open(struct tn_file_writer *writer, const char *path,
                                tarn_error *err);

/* Likewise, with *there bytes in it already; the temporary stays if something fails. */
tarn_status tn_file_writer_resume(struct tn_file_writer *writer, uint64_t *there,
                                  const char *path, tarn_error *err);

/* Forgets what was there. */
tarn_status tn_file_writer_restart(struct tn_file_writer *writer, tarn_error *err);

/* Closes it, for another tn_file_writer_resume(). Accepts a writer that is closed. */
void tn_file_writer_suspend(struct tn_file_writer *writer);

tarn_status tn_file_writer_put(struct tn_file_writer *writer, const void *data, size_t bytes,
                               tarn_error *err);

/* The first `bytes` of what was put, and how many bytes that was. The writer stays open if this
 * fails. */
tarn_status tn_file_writer_read(struct tn_file_writer *writer, void *data, size_t bytes,
                                uint64_t *size, tarn_error *err);

/* After TARN_OK the file is there, even if power fails in the next moment. */
tarn_status tn_file_writer_commit(struct tn_file_writer *writer, tarn_error *err);

/* Likewise, but it reaches the disk when the system finds time, which is much sooner done: for
 * what can be made again, and can be recognised as incomplete. */
tarn_status tn_file_writer_commit_soon(struct tn_file_writer *writer, tarn_error *err);

/* The folder that a path is in, free() it; NULL: not enough memory. */
char *tn_folder_of(const char *path);

/* Puts the names in a folder on the disk; 0 or an errno. A folder that cannot be opened or
 * synced has the system's own time. */
int tn_sync_folder(const char *folder);

/* All of a file at once: open, put, commit. */
tarn_status tn_file_write(const char *path, const void *data, size_t bytes, tarn_error *err);

/* Leaves everything as it was before open. Accepts a writer that is closed. */
void tn_file_writer_discard(struct tn_file_writer *writer);

#endif
