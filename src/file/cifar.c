/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#include "file/cifar.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PLANE = TN_CIFAR_SIDE * TN_CIFAR_SIDE, LABELS = 10 };

bool tn_is_cifar(const struct tn_bytes *bytes)
{
    if (bytes->size == 0 || bytes->size % TN_CIFAR_RECORD != 0)
        return false;
    for (size_t at = 0; at < bytes->size; at += TN_CIFAR_RECORD)
        if (bytes->data[at] >= LABELS)
            return false;
    return true;
}

static tarn_status check(const struct tn_bytes *bytes, const char *path, tarn_error *err)
{
    if (tn_is_cifar(bytes))
        return TARN_OK;
    if (bytes->size == 0 || bytes->size % TN_CIFAR_RECORD != 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: has %zu bytes; expected CIFAR-10 records of %d bytes each",
                       tn_path_shown(path), bytes->size, TN_CIFAR_RECORD);
    return tn_fail(err, TARN_EFORMAT,
                   "%s: a CIFAR-10 record has a label above 9; expected 0 to 9",
                   tn_path_shown(path));
}

static void interleave(unsigned char *out, const unsigned char *planes)
{
    for (size_t i = 0; i < PLANE; i++)
        for (size_t c = 0; c < 3; c++)
            *out++ = planes[c * PLANE + i];
}

/* Into images from number `first` on. */
static void copy_records(struct tn_images *images, size_t first, const struct tn_bytes *bytes)
{
    for (size_t i = 0; i < bytes->size / TN_CIFAR_RECORD; i++)
        interleave(tn_images_at(images, first + i), bytes->data + i * TN_CIFAR_RECORD + 1);
}

static struct tn_images sized(size_t records, const tarn_allocator *allocator)
{
    return (struct tn_images){.count = records,
                              .height = TN_CIFAR_SIDE,
                              .width = TN_CIFAR_SIDE,
                              .channels = 3,
                              .allocator = allocator};
}

tarn_status tn_cifar_parse(struct tn_images *images, const struct tn_bytes *bytes,
                           const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    *images = (struct tn_images){0};
    tarn_status status = check(bytes, path, err);

    if (status != TARN_OK)
        return status;
    *images = sized(bytes->size / TN_CIFAR_RECORD, allocator);
    if ((status = tn_images_take(images, path, err)) == TARN_OK)
        copy_records(images, 0, bytes);
    return status;
}

/* ---- Several files ------------------------------------------------------ */

static tarn_status count_records(size_t *records, const char *path, tarn_error *err)
{
    struct stat about;

    if (stat(path, &about) != 0)
        return tn_fail(err, TARN_EIO, "%s: %s", tn_path_shown(path), strerror(errno));
    *records += (size_t)about.st_size / TN_CIFAR_RECORD;
    return TARN_OK;
}

/* One file to image *at and on, as many as are left. */
static tarn_status append(struct tn_images *images, size_t *at, const char *path,
                          tarn_error *err)
{
    const size_t most = (images->count - *at) * TN_CIFAR_RECORD;
    struct tn_bytes bytes;
    tarn_status status = tn_bytes_read(&bytes, path, most + TN_CIFAR_RECORD - 1, err);

    if (status == TARN_OK && (status = check(&bytes, path, err)) == TARN_OK) {
        copy_records(images, *at, &bytes);
        *at += bytes.size / TN_CIFAR_RECORD;
    }
    tn_bytes_free(&bytes);
    return status;
}

tarn_status tn_cifar_read(struct tn_images *images, const char *const *paths, size_t count,
                          const tarn_allocator *allocator, tarn_error *err)
{
    size_t records = 0, at = 0;
    tarn_status status = TARN_OK;

    *images = (struct tn_images){0};
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = count_records(&records, paths[i], err);
    if (status != TARN_OK)
        return status;
    *images = sized(records, allocator);
    status = tn_images_take(images, count ? paths[0] : "CIFAR-10", err);
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = append(images, &at, paths[i], err);
    images->count = at; /* a file may have shrunk meanwhile */
    if (status != TARN_OK)
        tn_images_free(images);
    return status;
}
