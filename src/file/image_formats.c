/* SPDX-License-Identifier: MIT */
/* image_formats.c - files of many images.
 *
 *     IDX         0, 0, 8 (bytes), 3 (dimensions), count, height, width (32 bits, big-endian),
 *                 pixels; also in gzip, as MNIST is published
 *     CIFAR-10    records of a label and 3 planes of 32 x 32 bytes: red, green, blue */
#include <string.h>

#include "file/cursor.h"
#include "file/gzip.h"
#include "file/images.h"

enum { HEADER = 16, TYPE_BYTES = 8, UNPACKED_MOST = 1 << 30 }; /* 22 times MNIST */

bool tn_is_idx(const struct tn_bytes *bytes)
{
    return bytes->size >= 4 && bytes->data[0] == 0 && bytes->data[1] == 0 &&
           bytes->data[2] >= TYPE_BYTES && bytes->data[2] <= 14 && bytes->data[3] > 0;
}

/* ---- IDX: the header ---------------------------------------------------- */

static tarn_status check_magic(const unsigned char *magic, const char *path, tarn_error *err)
{
    const char *const shown = tn_path_shown(path);

    if (magic[0] != 0 || magic[1] != 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: begins with %02x %02x %02x %02x; expected 00 00 08 03, IDX images",
                       shown, magic[0], magic[1], magic[2], magic[3]);
    if (magic[2] != TYPE_BYTES)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: IDX with elements of type 0x%02x; expected bytes, 0x08", shown,
                       magic[2]);
    if (magic[3] == 1)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: IDX with one dimension, so these are labels; expected images, such "
                       "as train-images-idx3-ubyte",
                       shown);
    if (magic[3] != 3)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: IDX with %d dimensions; expected 3: images, rows and columns",
                       shown, magic[3]);
    return TARN_OK;
}

/* Sizes without memory; *bytes is what the pixels take. */
static tarn_status read_header(struct tn_images *images, size_t *bytes,
                               const unsigned char header[HEADER], const char *path,
                               tarn_error *err)
{
    const tarn_status status = check_magic(header, path, err);

    if (status != TARN_OK)
        return status;
    images->count = tn_big_endian(header + 4);
    images->height = tn_big_endian(header + 8);
    images->width = tn_big_endian(header + 12);
    images->channels = 1;
    if (!tn_size_product(bytes, (size_t[]){images->count, images->height, images->width}, 3) ||
        *bytes > PTRDIFF_MAX)
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "IDX with %zu images of %zu x %zu, which do not fit in memory",
                            images->count, images->height, images->width);
    return TARN_OK;
}

static tarn_status refuse_size(size_t found, size_t promised, const char *what,
                               const char *path, tarn_error *err)
{
    return tn_fail_path(err, TARN_EFORMAT, path, "has %zu bytes%s; its header says %zu", found,
                        what, promised);
}

/* ---- IDX: pixels -------------------------------------------------------- */

static tarn_status parse_plain(struct tn_images *images, const struct tn_bytes *bytes,
                               const char *path, tarn_error *err)
{
    size_t size;

    if (bytes->size < HEADER) {
        const tarn_status magic = check_magic(bytes->data, path, err);

        return magic == TARN_OK ? refuse_size(bytes->size, HEADER, "", path, err) : magic;
    }
    tarn_status status = read_header(images, &size, bytes->data, path, err);

    if (status != TARN_OK)
        return status;
    if (bytes->size - HEADER != size)
        return refuse_size(bytes->size - HEADER, size, " of pixels", path, err);
    if ((status = tn_images_allocate(images, path, err)) == TARN_OK)
        memcpy(images->pixels, bytes->data + HEADER, size);
    return status;
}

/* A few bytes may announce a lot: more than deflate can contain, or than a set of images has,
 * is refused before memory is allocated for it. */
static tarn_status unpack(struct tn_images *images, struct tn_gunzip *gunzip, size_t packed,
                          const char *path, tarn_error *err)
{
    unsigned char header[HEADER];
    size_t size;
    tarn_status status = tn_gunzip_read(gunzip, header, HEADER, err);

    if (status != TARN_OK ||
        (status = read_header(images, &size, header, path, err)) != TARN_OK)
        return status;
    if (size > tn_inflated_most(packed))
        return refuse_size(packed, size, " of gzip, too few", path, err);
    if (size > UNPACKED_MOST)
        return tn_fail_path(
            err, TARN_EFORMAT, path,
            "gzip of %zu bytes of images; expected at most %d: decompress the file first", size,
            UNPACKED_MOST);
    if ((status = tn_images_allocate(images, path, err)) != TARN_OK ||
        (status = tn_gunzip_read(gunzip, images->pixels, size, err)) != TARN_OK)
        return status;
    return tn_gunzip_end(gunzip, err);
}

tarn_status tn_idx_parse(struct tn_images *images, const struct tn_bytes *bytes,
                         const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    tarn_status status;

    *images = (struct tn_images){.allocator = allocator};
    if (tn_is_gzip(bytes)) {
        struct tn_gunzip gunzip;

        if ((status = tn_gunzip_begin(&gunzip, bytes->data, bytes->size, false, path, err)) ==
            TARN_OK)
            status = unpack(images, &gunzip, bytes->size, path, err);
        tn_gunzip_free(&gunzip);
    } else if (bytes->size < 4) {
        status = refuse_size(bytes->size, HEADER, "", path, err);
    } else {
        status = parse_plain(images, bytes, path, err);
    }
    if (status != TARN_OK)
        tn_images_free(images);
    return status;
}

/* ---- CIFAR-10 ----------------------------------------------------------- */

enum { SIDE = 32, PLANE = SIDE * SIDE, RECORD = 1 + 3 * PLANE, LABELS = 10 };

static bool has_records(const struct tn_bytes *bytes)
{
    return bytes->size > 0 && bytes->size % RECORD == 0;
}

bool tn_is_cifar(const struct tn_bytes *bytes)
{
    for (size_t at = 0; has_records(bytes) && at < bytes->size; at += RECORD)
        if (bytes->data[at] >= LABELS)
            return false;
    return has_records(bytes);
}

/* Planes become r, g, b, r, g, b, ... */
static void interleave(unsigned char *out, const unsigned char *planes)
{
    for (size_t i = 0; i < PLANE; i++)
        for (size_t c = 0; c < 3; c++)
            *out++ = planes[c * PLANE + i];
}

tarn_status tn_cifar_parse(struct tn_images *images, const struct tn_bytes *bytes,
                           const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    *images = (struct tn_images){0};
    if (!has_records(bytes))
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "has %zu bytes; expected CIFAR-10 records of %d bytes each",
                            bytes->size, RECORD);
    if (!tn_is_cifar(bytes))
        return tn_fail_path(err, TARN_EFORMAT, path,
                            "a CIFAR-10 record has a label above 9; expected 0 to 9");
    *images = (struct tn_images){.count = bytes->size / RECORD,
                                 .height = SIDE,
                                 .width = SIDE,
                                 .channels = 3,
                                 .allocator = allocator};
    const tarn_status status = tn_images_allocate(images, path, err);

    for (size_t i = 0; i < images->count; i++)
        interleave(tn_images_at(images, i), bytes->data + i * RECORD + 1);
    return status;
}
