/* SPDX-License-Identifier: MIT */
/* data_fetch.c - the files of a set: verified, downloaded, unpacked. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "file/download.h"
#include "file/file_bytes.h"
#include "file/paths.h"
#include "file/unpack.h"
#include "tarn/data.h"

enum { PATH_SIZE = 4096, FILES_MOST = 64 };

/* What a call works on. */
struct work {
    const tarn_data_set *set;
    const char *folder;
    const char *from;
    const tarn_data_events *events; /* NULL: nobody listens */
    tarn_error *err;
};

static void tell(const struct work *w, const tarn_data_file *file, tarn_data_state state)
{
    if (w->events && w->events->file)
        w->events->file(w->events->context, file, state);
}

/* "a/b", also of "a/"; fails if it is too long. */
static tarn_status join(char path[PATH_SIZE], const char *a, const char *b, tarn_error *err)
{
    const size_t end = strlen(a);
    const bool whole = end > 0 && a[end - 1] == '/';
    const int length = snprintf(path, PATH_SIZE, "%s%s%s", a, whole ? "" : "/", b);

    if (length > 0 && length < PATH_SIZE)
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL, "%s/%s: the path has more than %d bytes", tn_path_shown(a),
                   b, PATH_SIZE - 1);
}

/* ---- Looking ------------------------------------------------------------ */

/* TARN_EIO: it is missing, or cannot be read; TARN_EFORMAT: it is another file. */
static tarn_status check_path(const char *path, const tarn_data_file *file, tarn_error *err)
{
    char sum[TN_SHA256_TEXT];
    struct stat about;

    if (stat(path, &about) != 0)
        return tn_fail_errno(err, path);
    if (!S_ISREG(about.st_mode))
        return tn_fail_path(err, TARN_EIO, path, "is not a regular file");
    if ((uint64_t)about.st_size != file->bytes)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "has %jd bytes; expected %ju; fetch it again",
                            (intmax_t)about.st_size, (uintmax_t)file->bytes);
    const tarn_status status = tn_sha256_file(sum, path, err);

    if (status != TARN_OK || strcmp(sum, file->sha256) == 0)
        return status;
    return tn_fail_path(err, TARN_EFORMAT, path,
                        "has SHA-256 %.12s...; expected %.12s...; fetch it again", sum,
                        file->sha256);
}

static tarn_status check_file(const struct work *w, const tarn_data_file *file, tarn_error *err)
{
    char path[PATH_SIZE];
    const tarn_status status = join(path, w->folder, file->path, err);

    return status == TARN_OK ? check_path(path, file, err) : status;
}

tarn_status tarn_data_verify(const tarn_data_set *set, const char *folder,
                             const tarn_data_events *events, tarn_error *err)
{
    const struct work w = {.set = set, .folder = folder, .events = events};
    tarn_status first = TARN_OK;

    if (!set || !folder)
        return tn_fail(err, TARN_EINVAL, "set and folder must not be NULL");
    for (const tarn_data_file *file = set->files; file->path; file++) {
        const tarn_status status = check_file(&w, file, first == TARN_OK ? err : NULL);

        tell(&w, file,
             status == TARN_OK        ? TARN_DATA_THERE
             : status == TARN_EFORMAT ? TARN_DATA_WRONG
                                      : TARN_DATA_MISSING);
        if (first == TARN_OK)
            first = status;
    }
    return first;
}

/* ---- Getting ------------------------------------------------------------ */

bool tarn_data_can_fetch(void)
{
    return tn_download_possible();
}

/* Where a file goes, in folders that are there. */
static tarn_status make_place(char path[PATH_SIZE], const struct work *w,
                              const tarn_data_file *file)
{
    tarn_status status = join(path, w->folder, file->path, w->err);

    for (size_t i = strlen(w->folder) + 1; status == TARN_OK && path[i]; i++)
        if (path[i] == '/') {
            path[i] = '\0';
            status = tn_make_folder(path, w->err);
            path[i] = '/';
        }
    return status;
}

struct listener {
    const struct work *work;
    const tarn_data_file *file;
};

static bool pass_on(void *context, uint64_t done)
{
    const struct listener *const l = context;
    const tarn_data_events *const events = l->work->events;

    return !events || !events->progress || events->progress(events->context, l->file, done);
}

/* Unless it is there and right, which `state` says. */
static tarn_status get(const struct work *w, const tarn_data_file *file, tarn_data_state *state)
{
    const char *const slash = strrchr(file->path, '/');
    struct listener listener = {w, file};
    char path[PATH_SIZE], url[PATH_SIZE];
    tarn_status status;

    *state = TARN_DATA_THERE;
    if (check_file(w, file, NULL) == TARN_OK)
        return TARN_OK;
    *state = TARN_DATA_FETCHED;
    if ((status = make_place(path, w, file)) != TARN_OK ||
        (status = join(url, w->from, slash ? slash + 1 : file->path, w->err)) != TARN_OK)
        return status;
    return tn_download(&(struct tn_download){.url = url,
                                             .path = path,
                                             .sha256 = file->sha256,
                                             .bytes = file->bytes,
                                             .progress = pass_on,
                                             .context = &listener},
                       w->err);
}

static tarn_status fetch_files(const struct work *w)
{
    tarn_status status = TARN_OK;

    for (const tarn_data_file *file = w->set->files; file->path && status == TARN_OK; file++) {
        tarn_data_state state;

        if ((status = get(w, file, &state)) == TARN_OK)
            tell(w, file, state);
    }
    return status;
}

/* ---- Archives ----------------------------------------------------------- */

/* The files that are not there and right, with places for them; paths lie in `memory`. */
static tarn_status list_wanted(const struct work *w, struct tn_unpack *wanted, size_t *count,
                               char (*memory)[PATH_SIZE])
{
    tarn_status status = TARN_OK;

    *count = 0;
    for (const tarn_data_file *file = w->set->files; file->path && status == TARN_OK; file++) {
        if (check_file(w, file, NULL) == TARN_OK) {
            tell(w, file, TARN_DATA_THERE);
            continue;
        }
        if (*count == FILES_MOST)
            return tn_fail(w->err, TARN_EINVAL, "%s: more than %d files", w->set->name,
                           FILES_MOST);
        status = make_place(memory[*count], w, file);
        wanted[*count] = (struct tn_unpack){file->path, memory[*count], file->bytes};
        ++*count;
    }
    return status;
}

static tarn_status unpack(const struct work *w, const struct tn_unpack *wanted, size_t count)
{
    char archive[PATH_SIZE];
    tarn_status status = join(archive, w->folder, w->set->archive.path, w->err);

    if (status == TARN_OK)
        status = tn_unpack_tar(archive, wanted, count, w->err);
    for (const tarn_data_file *file = w->set->files; file->path; file++)
        for (size_t i = 0; i < count && status == TARN_OK; i++)
            if (wanted[i].member == file->path &&
                (status = check_file(w, file, w->err)) == TARN_OK)
                tell(w, file, TARN_DATA_UNPACKED);
    return status;
}

static tarn_status fetch_archive(const struct work *w)
{
    struct tn_unpack wanted[FILES_MOST];
    char(*const memory)[PATH_SIZE] = malloc(FILES_MOST * sizeof *memory);
    tarn_data_state state;
    size_t count;

    if (!memory)
        return tn_fail(w->err, TARN_ENOMEM, "not enough memory for paths");
    tarn_status status = list_wanted(w, wanted, &count, memory);

    if (status == TARN_OK && count > 0 &&
        (status = get(w, &w->set->archive, &state)) == TARN_OK)
        status = unpack(w, wanted, count);
    free(memory);
    return status;
}

tarn_status tarn_data_fetch(const tarn_data_set *set, const char *folder, const char *from,
                            const tarn_data_events *events, tarn_error *err)
{
    if (!set || !folder)
        return tn_fail(err, TARN_EINVAL, "set and folder must not be NULL");
    const struct work w = {.set = set,
                           .folder = folder,
                           .from = from ? from : set->address,
                           .events = events,
                           .err = err};
    const tarn_status status = tn_make_folder(folder, err);

    if (status != TARN_OK)
        return status;
    return set->archive.path ? fetch_archive(&w) : fetch_files(&w);
}
