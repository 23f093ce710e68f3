/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/images.h"

#include <string.h>
#include <strings.h>

#include "file/cifar.h"
#include "file/gzip.h"
#include "file/idx.h"
#include "file/paths.h"
#include "file/png_file.h"
#include "file/png_list.h"

tarn_status tn_images_take(struct tn_images *images, const char *path, tarn_error *err)
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
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has %zu images of %zu x %zu; expected at least 1",
                       tn_path_shown(path), want.count, want.height, want.width);
    return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for %zu images of %zu x %zu x %zu",
                   tn_path_shown(path), want.count, want.height, want.width, want.channels);
}

void tn_images_free(struct tn_images *images)
{
    if (images->pixels)
        tn_release(images->allocator, images->pixels);
    *images = (struct tn_images){0};
}

/* ---- By content --------------------------------------------------------- */

/* CIFAR's records begin with nothing that tells them, so they are asked last. */
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
    return tn_fail(err, TARN_EFORMAT,
                   "%s: has %zu bytes in an unknown format; expected images as IDX, gzipped "
                   "IDX, CIFAR-10 records, PNG, or a .txt list of PNG files",
                   tn_path_shown(path), bytes->size);
}

static bool is_list(const char *path)
{
    const size_t length = strlen(path);

    return length > 4 && strcasecmp(path + length - 4, ".txt") == 0;
}

tarn_status tn_images_read(struct tn_images *images, const char *path,
                           const tarn_allocator *allocator, tarn_error *err)
{
    struct tn_bytes bytes;

    *images = (struct tn_images){0};
    if (tn_is_folder(path))
        return tn_png_folder_read(images, path, allocator, err);
    if (is_list(path))
        return tn_png_list_read(images, path, allocator, err);
    tarn_status status = tn_bytes_read(&bytes, path, PTRDIFF_MAX, err);

    if (status == TARN_OK)
        status = tn_images_parse(images, &bytes, path, allocator, err);
    tn_bytes_free(&bytes);
    return status;
}
