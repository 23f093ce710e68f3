/* SPDX-License-Identifier: MIT */
#include "file/images.h"

#include <string.h>

#include "file/gzip.h"
#include "file/paths.h"
#include "file/png_file.h"

tarn_status tn_images_allocate(struct tn_images *images, const char *path, tarn_error *err)
{
    const struct tn_images want = *images;
    size_t bytes;
    const bool fits = tn_size_product(
        &bytes, (size_t[]){want.count, want.height, want.width, want.channels}, 4);

    images->pixels = NULL;
    if (fits && bytes > 0 && bytes <= PTRDIFF_MAX)
        images->pixels = tn_allocate(want.allocator, bytes);
    if (images->pixels)
        return TARN_OK;
    *images = (struct tn_images){0};
    if (fits && bytes == 0)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "has %zu images of %zu x %zu; expected at least 1", want.count,
                            want.height, want.width);
    return tn_fail_path(err, TARN_ENOMEM, path,
                        "not enough memory for %zu images of %zu x %zu x %zu", want.count,
                        want.height, want.width, want.channels);
}

void tn_images_free(struct tn_images *images)
{
    if (images->pixels)
        tn_release(images->allocator, images->pixels);
    *images = (struct tn_images){0};
}

/* ---- By content --------------------------------------------------------- */

/* CIFAR-10 records have no mark at their beginning, so they are recognised last. */
tarn_status tn_images_parse(struct tn_images *images, const struct tn_bytes *bytes,
                            const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    *images = (struct tn_images){0};
    if (tn_is_png(bytes))
        return tn_png_parse(images, bytes, path, allocator, err);
    if (tn_is_gzip(bytes) || tn_is_idx(bytes))
        return tn_idx_parse(images, bytes, path, allocator, err);
    if (tn_is_cifar(bytes))
        return tn_cifar_parse(images, bytes, path, allocator, err);
    return tn_fail_path(err, TARN_EFORMAT, path,
                        "has %zu bytes in an unknown format; expected images as IDX, gzipped "
                        "IDX, CIFAR-10 records, PNG, or a .txt list of PNG files",
                        bytes->size);
}

/* ---- Several files ------------------------------------------------------ */

static tarn_status read_file(struct tn_images *images, const char *path,
                             tn_images_parser *parse, const tarn_allocator *allocator,
                             tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, PTRDIFF_MAX, err);

    *images = (struct tn_images){0};
    if (status == TARN_OK)
        status = parse(images, &bytes, path, allocator, err);
    tn_bytes_free(&bytes);
    return status;
}

static tarn_status check_same(const struct tn_images *all, const struct tn_images *one,
                              const char *path, tarn_error *err)
{
    if (one->height == all->height && one->width == all->width &&
        one->channels == all->channels)
        return TARN_OK;
    return tn_fail_path(
        err, TARN_EFORMAT, path,
        "is %zu high, %zu wide and %s; expected %zu, %zu and %s, like the image before it",
        one->height, one->width, one->channels == 3 ? "colour" : "grey", all->height,
        all->width, all->channels == 3 ? "colour" : "grey");
}

/* Memory for `count` images in the place of the memory for the first images->count. */
static tarn_status grow(struct tn_images *images, size_t count, const char *path,
                        tarn_error *err)
{
    struct tn_images larger = *images;

    larger.count = count;
    const tarn_status status = tn_images_allocate(&larger, path, err);

    if (status != TARN_OK)
        return status;
    if (images->pixels)
        memcpy(larger.pixels, images->pixels, images->count * tn_images_size(images));
    larger.count = images->count;
    tn_images_free(images);
    *images = larger;
    return TARN_OK;
}

/* Files of a set mostly contain equally many images: the first decides how many there is memory
 * for. */
tarn_status tn_images_read_files(struct tn_images *images, char *const *paths, size_t count,
                                 tn_images_parser *parse, const tarn_allocator *allocator,
                                 tarn_error *err)
{
    struct tn_images all = {.allocator = allocator}, one;
    size_t room = 0;
    tarn_status status = TARN_OK;

    if (count == 1)
        return read_file(images, paths[0], parse, allocator, err);
    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        if ((status = read_file(&one, paths[i], parse, NULL, err)) != TARN_OK)
            break;
        if (i == 0) {
            all.height = one.height;
            all.width = one.width;
            all.channels = one.channels;
        }
        status = check_same(&all, &one, paths[i], err);
        if (status == TARN_OK && one.count > room - all.count) {
            room = all.count + one.count * (count - i);
            status = grow(&all, room, paths[i], err);
        }
        if (status == TARN_OK) {
            memcpy(tn_images_at(&all, all.count), one.pixels, one.count * tn_images_size(&one));
            all.count += one.count;
        }
        tn_images_free(&one);
    }
    if (status != TARN_OK)
        tn_images_free(&all);
    *images = all;
    return status;
}

/* ---- Paths -------------------------------------------------------------- */

static bool is_png_name(const char *name)
{
    return name[0] != '.' && tn_ends_in(name, ".png");
}

static tarn_status parse_png(struct tn_images *images, const struct tn_bytes *bytes,
                             const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    if (!tn_is_png(bytes))
        return tn_fail_path(err, TARN_EFORMAT, path, "is not a PNG file");
    return tn_png_parse(images, bytes, path, allocator, err);
}

tarn_status tn_images_read(struct tn_images *images, const char *path,
                           const tarn_allocator *allocator, tarn_error *err)
{
    const bool folder = tn_is_folder(path);
    struct tn_paths paths = {0};
    tarn_status status;

    *images = (struct tn_images){0};
    if (!folder && !tn_ends_in(path, ".txt"))
        return read_file(images, path, tn_images_parse, allocator, err);
    status = folder ? tn_paths_in(&paths, path, is_png_name, err)
                    : tn_paths_of_list(&paths, path, err);
    if (status == TARN_OK && paths.count == 0)
        status = tn_fail_path(err, TARN_EFORMAT, path,
                              "contains no images; expected PNG files, or the MNIST or "
                              "CIFAR-10 files under their original names");
    if (status == TARN_OK)
        status =
            tn_images_read_files(images, paths.path, paths.count, parse_png, allocator, err);
    tn_paths_free(&paths);
    return status;
}
