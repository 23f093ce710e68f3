/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/paths.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file/file_bytes.h"
#include "file/file_writer.h"

enum { LIST_MOST = 256 << 20 };

bool tn_is_folder(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* The folder that a path is in; free() it. NULL: no memory. */
static char *parent_of(const char *path)
{
    size_t length = strlen(path);
    char *const parent = malloc(length + 2);

    if (!parent)
        return NULL;
    while (length > 1 && path[length - 1] == '/')
        length--;
    while (length > 0 && path[length - 1] != '/')
        length--;
    strcpy(parent, ".");
    if (length > 0) {
        memcpy(parent, path, length);
        parent[length] = '\0';
    }
    return parent;
}

static tarn_status make_folder(const char *path, const char *parent, tarn_error *err)
{
    int why = mkdir(path, 0777) == 0 ? 0 : errno;

    if (why && !(why == EEXIST && tn_is_folder(path)))
        return tn_fail_path(err, TARN_EIO, path, "%s; cannot create a folder there",
                            strerror(why));
    why = tn_sync_folder(parent);
    return why ? tn_fail_path(err, TARN_EIO, path,
                              "is there, but the folder it is in could not be synced: %s",
                              strerror(why))
               : TARN_OK;
}

/* What is in a folder is lost with the folder's own name. */
tarn_status tn_make_folder(const char *path, tarn_error *err)
{
    char *const parent = parent_of(path);

    if (!parent)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a path");
    const tarn_status status = make_folder(path, parent, err);

    free(parent);
    return status;
}

void tn_paths_free(struct tn_paths *paths)
{
    for (size_t i = 0; i < paths->count; i++)
        free(paths->path[i]);
    free(paths->path);
    *paths = (struct tn_paths){0};
}

/* The first bytes of two texts, concatenated. */
static tarn_status add(struct tn_paths *paths, const char *folder, size_t folder_length,
                       const char *name, size_t length, tarn_error *err)
{
    char **const all = tn_grow(paths->path, &paths->room, paths->count, sizeof *all);
    char *const path = all ? malloc(folder_length + length + 1) : NULL;

    if (all)
        paths->path = all;
    if (!path)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for the names of %zu files",
                       paths->count);
    memcpy(path, folder, folder_length);
    memcpy(path + folder_length, name, length);
    path[folder_length + length] = '\0';
    paths->path[paths->count++] = path;
    return TARN_OK;
}

tarn_status tn_paths_add(struct tn_paths *paths, const char *path, tarn_error *err)
{
    return add(paths, "", 0, path, strlen(path), err);
}

/* ---- Folders ------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* `folder` ends in '/'. */
static tarn_status list_names(struct tn_paths *paths, const char *folder, DIR *directory,
                              bool (*wanted)(const char *name), tarn_error *err)
{
    tarn_status status = TARN_OK;

    while (status == TARN_OK) {
        errno = 0;
        const struct dirent *const entry = readdir(directory);

        if (!entry)
            return errno ? tn_fail_errno(err, folder) : TARN_OK;
        if (wanted(entry->d_name))
            status =
                add(paths, folder, strlen(folder), entry->d_name, strlen(entry->d_name), err);
    }
    return status;
}

tarn_status tn_paths_in(struct tn_paths *paths, const char *folder,
                        bool (*wanted)(const char *name), tarn_error *err)
{
    const size_t length = strlen(folder);
    DIR *const directory = opendir(folder);
    char *const prefix = malloc(length + 2);
    tarn_status status;

    if (!directory)
        status = tn_fail_errno(err, folder);
    else if (!prefix)
        status = tn_fail(err, TARN_ENOMEM, "not enough memory for a path of %zu bytes", length);
    else {
        memcpy(prefix, folder, length);
        strcpy(prefix + length, length > 0 && folder[length - 1] == '/' ? "" : "/");
        status = list_names(paths, prefix, directory, wanted, err);
        if (paths->count > 0)
            qsort(paths->path, paths->count, sizeof *paths->path, compare);
    }
    if (directory)
        closedir(directory);
    free(prefix);
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
        qsort(paths->path, paths->count, sizeof *paths->path, compare);
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
    return add(paths, list, *line != '/' && slash ? (size_t)(slash - list) + 1 : 0, line,
               length, err);
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
