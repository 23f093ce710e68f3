/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/texts.h"
#include "file/file_bytes.h"
#include "file/file_writer.h"
#include "file/text_buffer.h"

enum { LIST_MOST = 256 << 20 };

bool tn_is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

bool tn_ends_in(const char *path, const char *end)
{
    const size_t length = strlen(path), tail = strlen(end);

    return length > tail && strcasecmp(path + length - tail, end) == 0;
}

/* What is in a folder is lost with the folder's own name. */
tarn_status tn_make_folder(const char *path, tarn_error *err)
{
    char *const parent = tn_folder_of(path);

    if (!parent)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    int why = mkdir(path, 0777) == 0 ? 0 : errno;
    const bool there = why == 0 || (why == EEXIST && tn_is_folder(path));

    if (there)
        why = tn_sync_folder(parent);
    free(parent);
    if (why == 0)
        return TARN_OK;
    return tn_fail_path(err, TARN_EIO, path,
                        there ? "is there, but the folder it is in could not be synced: %s"
                              : "%s; cannot create a folder there",
                        strerror(why));
}

void tn_paths_free(struct tn_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct tn_paths){0};
}

/* The path becomes the list's; NULL: there was no memory for it. */
static tarn_status add(struct tn_paths *paths, char *path, tarn_error *err)
{
    char **const all =
        path ? tn_grow(paths->path, &paths->room, paths->count, sizeof *all) : NULL;

    if (!all) {
        free(path);
        return tn_fail(err, TARN_ENOMEM, "not enough memory for the names of %zu files",
                       paths->count);
    }
    paths->path = all;
    paths->path[paths->count++] = path;
    return TARN_OK;
}

tarn_status tn_paths_add(struct tn_paths *paths, const char *path, tarn_error *err)
{
    return add(paths, tn_text_new("%s", path), err);
}

/* ---- Folders ------------------------------------------------------------ */

static tarn_status list_names(struct tn_paths *paths, const char *folder, DIR *directory,
                              bool (*wanted)(const char *name), tarn_error *err)
{
    const size_t length = strlen(folder);
    const char *const slash = length > 0 && folder[length - 1] == '/' ? "" : "/";
    tarn_status status = TARN_OK;

    while (status == TARN_OK) {
        errno = 0;
        const struct dirent *const entry = readdir(directory);

        if (!entry)
            return errno ? tn_fail_errno(err, folder) : TARN_OK;
        if (wanted(entry->d_name))
            status = add(paths, tn_text_new("%s%s%s", folder, slash, entry->d_name), err);
    }
    return status;
}

tarn_status tn_paths_in(struct tn_paths *paths, const char *folder,
                        bool (*wanted)(const char *name), tarn_error *err)
{
    DIR *const directory = opendir(folder);

    if (!directory)
        return tn_fail_errno(err, folder);
    const tarn_status status = list_names(paths, folder, directory, wanted, err);

    closedir(directory);
    if (paths->count > 0)
        qsort(paths->path, paths->count, sizeof *paths->path, tn_compare_texts);
    return status;
}

/* To the folders or to the files, or to neither. */
static tarn_status sort_in(struct tn_paths *files, struct tn_paths *folders, const char *path,
                           tarn_error *err)
{
    struct stat about, target;

    if (lstat(path, &about) != 0 || stat(path, &target) != 0)
        return tn_fail_errno(err, path);
    if (S_ISDIR(about.st_mode))
        return tn_paths_add(folders, path, err);
    return S_ISREG(target.st_mode) ? tn_paths_add(files, path, err) : TARN_OK;
}

static tarn_status list_one(struct tn_paths *files, struct tn_paths *folders,
                            const char *folder, bool (*wanted)(const char *name),
                            tarn_error *err)
{
    struct tn_paths found = {0};
    tarn_status status = tn_paths_in(&found, folder, wanted, err);

    for (size_t i = 0; i < found.count && status == TARN_OK; i++)
        status = sort_in(files, folders, found.path[i], err);
    tn_paths_free(&found);
    return status;
}

/* Folders wait in a list: one within another a thousand times needs no deeper stack. */
tarn_status tn_paths_below(struct tn_paths *paths, const char *folder,
                           bool (*wanted)(const char *name), tarn_error *err)
{
    struct tn_paths folders = {0};
    tarn_status status = tn_paths_add(&folders, folder, err);

    for (size_t i = 0; i < folders.count && status == TARN_OK; i++)
        status = list_one(paths, &folders, folders.path[i], wanted, err);
    if (paths->count > 0)
        qsort(paths->path, paths->count, sizeof *paths->path, tn_compare_texts);
    tn_paths_free(&folders);
    return status;
}

/* ---- Lists -------------------------------------------------------------- */

static tarn_status add_line(struct tn_paths *paths, const char *list, const char *line,
                            size_t length, tarn_error *err)
{
    const char *const slash = strrchr(list, '/');

    while (length > 0 && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (length == 0)
        return TARN_OK;
    if (memchr(line, '\0', length))
        return tn_fail_path(err, TARN_EFORMAT, list,
                            "contains a zero byte; expected one path per line");
    const size_t folder = *line != '/' && slash ? (size_t)(slash - list) + 1 : 0;

    return add(paths, tn_text_new("%.*s%.*s", (int)folder, list, (int)length, line), err);
}

tarn_status tn_paths_of_list(struct tn_paths *paths, const char *list, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, list, LIST_MOST, err);
    const char *line = (const char *)bytes.data;

    for (size_t left = bytes.size; left > 0 && status == TARN_OK;) {
        const char *const newline = memchr(line, '\n', left);
        const size_t length = newline ? (size_t)(newline - line) : left;

        status = add_line(paths, list, line, length, err);
        left -= length + (newline != NULL);
        line += length + (newline != NULL);
    }
    tn_bytes_free(&bytes);
    return status;
}
