/* SPDX-License-Identifier: MIT */
/* paths.h - the files of a folder, or of a list. */
#ifndef TN_PATHS_H
#define TN_PATHS_H

#include "base/base.h"

bool tn_is_folder(const char *path);

/* Whether something is before this end, whatever the case of its letters. */
bool tn_ends_in(const char *path, const char *end);

/* Makes a folder if it is not there; its parent must be. After TARN_OK it is there even if
 * power fails in the next moment. */
tarn_status tn_make_folder(const char *path, tarn_error *err);

/* Zeros are an empty one. */
struct tn_paths {
    char **path;
    size_t count, room;
};

/* Those in a folder whose name is wanted, as folder/name, in the order of their bytes, which is
 * the same on every machine. */
tarn_status tn_paths_in(struct tn_paths *paths, const char *folder,
                        bool (*wanted)(const char *name), tarn_error *err);

/* All regular files below a folder, in the order of the bytes of their paths. Names that are
 * not wanted are left out, of folders with all below them. Links to files are followed, links
 * to folders are not: they may lead back up. */
tarn_status tn_paths_below(struct tn_paths *paths, const char *folder,
                           bool (*wanted)(const char *name), tarn_error *err);

/* Appends a copy of a path. */
tarn_status tn_paths_add(struct tn_paths *paths, const char *path, tarn_error *err);

/* The lines of a file that are not empty, relative to its folder unless they begin with '/'. */
tarn_status tn_paths_of_list(struct tn_paths *paths, const char *list, tarn_error *err);

/* Leaves it empty. To be called also after a failure. */
void tn_paths_free(struct tn_paths *paths);

#endif
