/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* flock() */

#include "train/training.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "file/paths.h"

void tn_folder_path(char path[TN_FOLDER_PATH], const char *folder, const char *name)
{
    snprintf(path, TN_FOLDER_PATH, "%s/%s", folder, name);
}

static void name_of(char *name, size_t size, uint64_t update)
{
    snprintf(name, size, "checkpoint-%010" PRIu64 ".safetensors", update);
}

void tn_folder_checkpoint(char path[TN_FOLDER_PATH], const char *folder, uint64_t update)
{
    char name[64];

    name_of(name, sizeof name, update);
    tn_folder_path(path, folder, name);
}

tarn_status tn_folder_make(const char *folder, tarn_error *err)
{
    if (strlen(folder) >= TARN_PATH_SIZE)
        return tn_fail(err, TARN_EINVAL,
                       "folder: its path has %zu bytes; it must have fewer than %d",
                       strlen(folder), TARN_PATH_SIZE);
    return tn_make_folder(folder, err);
}

/* Models outlive checkpoints that somebody removed to save room, and a log may be of another
 * program. */
tarn_status tn_folder_check_new(const char *folder, tarn_error *err)
{
    static const char *const models[] = {"model.safetensors", "best.safetensors", "log.jsonl"};
    char path[TN_FOLDER_PATH];
    struct stat about;
    uint64_t update;
    bool found;
    const tarn_status status = tn_folder_last(folder, UINT64_MAX, &found, &update, err);

    if (status != TARN_OK)
        return status;
    if (found)
        return tn_fail_path(err, TARN_EINVAL, folder,
                            "already contains a run of %" PRIu64 " updates; resume it, "
                            "or choose another folder",
                            update);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        tn_folder_path(path, folder, models[i]);
        if (lstat(path, &about) == 0)
            return tn_fail_path(err, TARN_EINVAL, path,
                                "already exists; choose another folder");
    }
    return TARN_OK;
}

/* On the folder itself, so that no lock file is left. File systems without locks, or
 * without those of folders, go without. */
tarn_status tn_folder_lock(int *lock, const char *folder, tarn_error *err)
{
    *lock = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (*lock < 0)
        return tn_fail_errno(err, folder);
    if (flock(*lock, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
        return TARN_OK;
    tn_folder_unlock(*lock);
    *lock = -1;
    return tn_fail_path(err, TARN_EIO, folder, "is in use by another training run");
}

void tn_folder_unlock(int lock)
{
    if (lock >= 0)
        close(lock);
}

/* The number in a checkpoint's name. Only names that this program writes count. */
static bool update_of(const char *name, uint64_t *update)
{
    char again[64];

    if (sscanf(name, "checkpoint-%20" SCNu64, update) != 1)
        return false;
    name_of(again, sizeof again, *update);
    return strcmp(name, again) == 0;
}

tarn_status tn_folder_last(const char *folder, uint64_t below, bool *found, uint64_t *last,
                           tarn_error *err)
{
    DIR *const entries = opendir(folder);
    struct dirent *entry;

    *found = false;
    if (!entries)
        return tn_fail_errno(err, folder);
    while ((errno = 0, entry = readdir(entries)) != NULL) {
        uint64_t update;

        if (update_of(entry->d_name, &update) && update < below &&
            (!*found || update > *last)) {
            *last = update;
            *found = true;
        }
    }
    const tarn_status status = errno ? tn_fail_errno(err, folder) : TARN_OK;

    closedir(entries);
    return status;
}

void tn_folder_prune(const char *folder, size_t keep)
{
    uint64_t update = UINT64_MAX;
    bool found = true;

    for (size_t kept = 0;
         tn_folder_last(folder, update, &found, &update, NULL) == TARN_OK && found; kept++) {
        char path[TN_FOLDER_PATH];

        tn_folder_checkpoint(path, folder, update);
        if (kept >= keep || (kept > 0 && update == 0))
            unlink(path);
    }
}

tarn_status tn_folder_set_aside(const char *folder, uint64_t update, tarn_error *err)
{
    char path[TN_FOLDER_PATH], aside[TN_FOLDER_PATH + 16];

    tn_folder_checkpoint(path, folder, update);
    snprintf(aside, sizeof aside, "%s.damaged", path);
    return rename(path, aside) == 0 ? TARN_OK : tn_fail_errno(err, path);
}
