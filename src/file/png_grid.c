/* SPDX-License-Identifier: MIT */
/* png_grid.c - many images in one picture. */
#include <stdlib.h>
#include <string.h>

#include "file/file_writer.h"
#include "file/png_file.h"
#include "tarn/image.h"

/* Pixels of `cells` images of `pixels` each, and the gaps between; 0: they do not fit. */
static size_t extent(size_t cells, size_t pixels)
{
    size_t all;

    if (pixels > SIZE_MAX - TARN_PNG_GAP ||
        !tn_size_product(&all, (size_t[]){cells, pixels + TARN_PNG_GAP}, 2))
        return 0;
    return all - TARN_PNG_GAP;
}

static void place(unsigned char *grid, size_t grid_width, const unsigned char *image,
                  tarn_image_size size, size_t row, size_t column)
{
    const size_t y = row * (size.height + TARN_PNG_GAP),
                 x = column * (size.width + TARN_PNG_GAP);
    const size_t line = size.width * size.channels;

    for (size_t i = 0; i < size.height; i++)
        memcpy(grid + ((y + i) * grid_width + x) * size.channels, image + i * line, line);
}

tarn_status tn_png_grid(struct tn_bytes *out, const char *path, const unsigned char *pixels,
                        tarn_image_size size, size_t count, size_t columns, tarn_error *err)
{
    size_t bytes;

    *out = (struct tn_bytes){0};
    if (!path || !pixels)
        return tn_fail(err, TARN_EINVAL, "path and pixels must not be NULL");
    if (count == 0 || columns == 0 || size.height == 0 || size.width == 0)
        return tn_fail(err, TARN_EINVAL, "count, columns and every size must be at least 1");
    const size_t across = tn_min(count, columns);
    const size_t height = extent(tn_blocks(count, across), size.height);
    const size_t width = extent(across, size.width);

    if (height == 0 || width == 0 ||
        !tn_size_product(&bytes, (size_t[]){height, width, size.channels}, 3))
        return tn_fail(err, TARN_EINVAL, "count is %zu; so many images do not fit in memory",
                       count);
    unsigned char *const grid = malloc(bytes);

    if (!grid)
        return tn_fail(err, TARN_ENOMEM, "%s: not enough memory for %zu images",
                       tn_path_shown(path), count);
    memset(grid, TARN_PNG_GREY, bytes);
    for (size_t i = 0; i < count; i++)
        place(grid, width, pixels + i * size.height * size.width * size.channels, size,
              i / across, i % across);
    const tarn_status status =
        tn_png_encode(out, path, grid, height, width, size.channels, err);

    free(grid);
    return status;
}

tarn_status tarn_png_write(const char *path, const unsigned char *pixels, tarn_image_size size,
                           size_t count, size_t columns, tarn_error *err)
{
    struct tn_bytes bytes;
    tarn_status status = tn_png_grid(&bytes, path, pixels, size, count, columns, err);

    if (status == TARN_OK)
        status = tn_file_write(path, bytes.data, bytes.size, err);
    tn_bytes_free(&bytes);
    return status;
}
