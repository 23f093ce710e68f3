/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/png_list.h"

#include <string.h>
#include <strings.h>

#include "file/paths.h"
#include "file/png_file.h"

enum { FILE_MOST = 1 << 30 };

static bool is_png_name(const char *name)
{
    const size_t length = strlen(name);

    return length > 4 && name[0] != '.' && strcasecmp(name + length - 4, ".png") == 0;
}

/* With the system's memory: it is here for a moment only. */
static tarn_status read_one(struct tn_images *image, const char *path, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, FILE_MOST, err);

    if (status == TARN_OK && !tn_is_png(&bytes))
        status = tn_fail(err, TARN_EFORMAT, "%s: is not a PNG file", tn_path_shown(path));
    if (status == TARN_OK)
        status = tn_png_parse(image, &bytes, path, NULL, err);
    tn_bytes_free(&bytes);
    return status;
}

static tarn_status check_same(const struct tn_images *all, const struct tn_images *one,
                              const char *path, tarn_error *err)
{
    if (one->height == all->height && one->width == all->width &&
        one->channels == all->channels)
        return TARN_OK;
    return tn_fail(
        err, TARN_EFORMAT,
        "%s: is %zu high, %zu wide and %s; expected %zu, %zu and %s, like the image before it",
        tn_path_shown(path), one->height, one->width, one->channels == 3 ? "colour" : "grey",
        all->height, all->width, all->channels == 3 ? "colour" : "grey");
}

/* The first image says how large all are. */
static tarn_status put_one(struct tn_images *images, size_t i, const struct tn_paths *paths,
                           const tarn_allocator *allocator, tarn_error *err)
{
    const char *const path = paths->path[i];
    struct tn_images one = {0};
    tarn_status status = read_one(&one, path, err);

    if (status == TARN_OK && i == 0) {
        *images = one;
        images->count = paths->count;
        images->allocator = allocator;
        status = tn_images_take(images, path, err);
    }
    if (status == TARN_OK && (status = check_same(images, &one, path, err)) == TARN_OK)
        memcpy(tn_images_at(images, i), one.pixels, tn_images_size(images));
    tn_images_free(&one);
    return status;
}

static tarn_status read_all(struct tn_images *images, const struct tn_paths *paths,
                            const char *from, const tarn_allocator *allocator, tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (paths->count == 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: contains no images; expected PNG files, or the MNIST or CIFAR-10 "
                       "files under their original names",
                       tn_path_shown(from));
    for (size_t i = 0; i < paths->count && status == TARN_OK; i++)
        status = put_one(images, i, paths, allocator, err);
    if (status != TARN_OK)
        tn_images_free(images);
    return status;
}

tarn_status tn_png_folder_read(struct tn_images *images, const char *folder,
                               const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_paths paths = {0};
    tarn_status status = tn_paths_in(&paths, folder, is_png_name, err);

    *images = (struct tn_images){0};
    if (status == TARN_OK)
        status = read_all(images, &paths, folder, allocator, err);
    tn_paths_free(&paths);
    return status;
}

tarn_status tn_png_list_read(struct tn_images *images, const char *list,
                             const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_paths paths = {0};
    tarn_status status = tn_paths_of_list(&paths, list, err);

    *images = (struct tn_images){0};
    if (status == TARN_OK)
        status = read_all(images, &paths, list, allocator, err);
    tn_paths_free(&paths);
    return status;
}
