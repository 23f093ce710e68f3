/* SPDX-License-Identifier: MIT */
/* png_file.c - libpng leaves by longjmp(). Functions that it may leave own nothing: all that is
 * to be freed is in a struct of their caller's. */
#include "file/png_file.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "base/written.h"
#include "file/file_writer.h"
#include "file/gzip.h"
#include "tarn/image.h"

bool tn_is_png(const struct tn_bytes *bytes)
{
    return bytes->size >= 8 && png_sig_cmp(bytes->data, 0, 8) == 0;
}

/* The status that errors end with, which stays TARN_OK until the first. */
struct job {
    const char *path;
    tarn_status status;
    tarn_error *err;
};

TN_CALLED_BACK static void on_error(png_structp png, png_const_charp text)
{
    struct job *const job = png_get_error_ptr(png);

    if (job->status == TARN_OK)
        job->status = tn_fail_path(job->err, TARN_EFORMAT, job->path, "PNG: %.80s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

/* ---- Reading ------------------------------------------------------------ */

/* Of pixels: a palette's bits become 32 times as much, which a file of a megabyte could turn
 * into more memory than there is. */
enum { BYTES_MOST = 1 << 30 };

struct reading {
    struct job job;
    png_structp png;
    png_infop info;
    const struct tn_bytes *bytes;
    size_t at;
    size_t height, width, samples; /* a pixel's, with alpha */
    struct tn_bytes rows;
};

static bool refuse(struct reading *r, const char *found)
{
    r->job.status = tn_fail_path(r->job.err, TARN_EFORMAT, r->job.path, "PNG: %s", found);
    return false;
}

TN_CALLED_BACK static void give_bytes(png_structp png, png_bytep out, size_t size)
{
    struct reading *const r = png_get_io_ptr(png);

    if (size > r->bytes->size - r->at)
        png_error(png, "truncated");
    memcpy(out, r->bytes->data + r->at, size);
    r->at += size;
}

/* Everything becomes 8 bits of grey or colour, perhaps with alpha. */
static bool read_header(struct reading *r)
{
    png_read_info(r->png, r->info);
    const size_t packed = png_get_rowbytes(r->png, r->info);

    r->height = png_get_image_height(r->png, r->info);
    r->width = png_get_image_width(r->png, r->info);
    if (png_get_bit_depth(r->png, r->info) == 16)
        return refuse(r, "has 16 bits per channel; expected at most 8");
    if (packed > tn_inflated_most(r->bytes->size) / r->height)
        return refuse(r, "is too short for the pixels its header announces");
    png_set_expand(r->png);
    return true;
}

static bool read_rows(struct reading *r)
{
    const int passes = png_set_interlace_handling(r->png);

    png_read_update_info(r->png, r->info);
    const size_t stride = png_get_rowbytes(r->png, r->info);

    r->samples = png_get_channels(r->png, r->info);
    if (stride > BYTES_MOST / r->height)
        return refuse(r, "has more than a gigabyte of pixels");
    r->job.status = tn_bytes_allocate(&r->rows, stride * r->height, r->job.err);
    if (r->job.status != TARN_OK)
        return false;
    for (int pass = 0; pass < passes; pass++)
        for (size_t y = 0; y < r->height; y++)
            png_read_row(r->png, r->rows.data + y * stride, NULL);
    png_read_end(r->png, NULL);
    TN_WRITTEN(r->rows.data, r->rows.size);
    return true;
}

static bool read_all(struct reading *r)
{
    if (setjmp(png_jmpbuf(r->png)))
        return false;
    png_set_read_fn(r->png, r, give_bytes);
    return read_header(r) && read_rows(r);
}

/* Pixels without alpha; false: one is not opaque. */
static bool copy_opaque(unsigned char *out, const struct reading *r, size_t channels)
{
    const unsigned char *in = r->rows.data;

    for (size_t i = r->height * r->width; i-- > 0; in += r->samples, out += channels) {
        if (r->samples > channels && in[channels] != 255)
            return false;
        memcpy(out, in, channels);
    }
    return true;
}

static tarn_status finish(struct tn_images *images, struct reading *r,
                          const tarn_allocator *allocator)
{
    *images = (struct tn_images){.count = 1,
                                 .height = r->height,
                                 .width = r->width,
                                 .channels = r->samples >= 3 ? 3 : 1,
                                 .allocator = allocator};
    const tarn_status status = tn_images_allocate(images, r->job.path, r->job.err);

    if (status != TARN_OK || copy_opaque(images->pixels, r, images->channels))
        return status;
    tn_images_free(images);
    refuse(r, "has transparent pixels; expected an opaque image");
    return r->job.status;
}

tarn_status tn_png_parse(struct tn_images *images, const struct tn_bytes *bytes,
                         const char *path, const tarn_allocator *allocator, tarn_error *err)
{
    struct reading r = {.job = {.path = path, .err = err}, .bytes = bytes};

    *images = (struct tn_images){0};
    r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r.job, on_error, on_warning);
    r.info = r.png ? png_create_info_struct(r.png) : NULL;
    if (!r.info)
        r.job.status = tn_fail_path(err, TARN_ENOMEM, path, "not enough memory for libpng");
    else if (read_all(&r))
        r.job.status = finish(images, &r, allocator);
    png_destroy_read_struct(&r.png, &r.info, NULL);
    tn_bytes_free(&r.rows);
    return r.job.status;
}

/* ---- Writing ------------------------------------------------------------ */

struct writing {
    struct job job;
    png_structp png;
    png_infop info;
    struct tn_text out;
};

TN_CALLED_BACK static void put_bytes(png_structp png, png_bytep data, size_t size)
{
    struct writing *const w = png_get_io_ptr(png);

    tn_text_put(&w->out, data, size);
    if (w->out.failed) {
        w->job.status = tn_fail_path(w->job.err, TARN_ENOMEM, w->job.path,
                                     "not enough memory for a PNG file");
        png_longjmp(png, 1);
    }
    TN_WRITTEN(w->out.data + w->out.used - size, size);
}

static void flush_nothing(png_structp png)
{
    (void)png;
}

static bool write_all(struct writing *w, const unsigned char *pixels, png_uint_32 height,
                      png_uint_32 width, size_t channels)
{
    if (setjmp(png_jmpbuf(w->png)))
        return false;
    png_set_write_fn(w->png, w, put_bytes, flush_nothing);
    png_set_IHDR(w->png, w->info, width, height, 8,
                 channels == 3 ? PNG_COLOR_TYPE_RGB : PNG_COLOR_TYPE_GRAY, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(w->png, w->info);
    for (size_t y = 0; y < height; y++)
        png_write_row(w->png, pixels + y * width * channels);
    png_write_end(w->png, NULL);
    return true;
}

_Static_assert((int)TARN_PNG_SIDE_MOST <= PNG_USER_WIDTH_MAX &&
                   (int)TARN_PNG_SIDE_MOST <= PNG_USER_HEIGHT_MAX,
               "libpng's limits");

static tarn_status check_sizes(const char *path, size_t height, size_t width, size_t channels,
                               tarn_error *err)
{
    if (channels != 1 && channels != 3)
        return tn_fail_path(err, TARN_EINVAL, path,
                            "cannot write %zu channels; expected 1 or 3", channels);
    if (height - 1 >= TARN_PNG_SIDE_MOST || width - 1 >= TARN_PNG_SIDE_MOST)
        return tn_fail_path(
            err, TARN_EINVAL, path,
            "cannot write an image of %zu x %zu pixels; expected sides of 1 to %d", height,
            width, TARN_PNG_SIDE_MOST);
    return TARN_OK;
}

static tarn_status encode(struct tn_text *out, const char *path, const unsigned char *pixels,
                          size_t height, size_t width, size_t channels, tarn_error *err)
{
    struct writing w = {.job = {.path = path, .err = err}};

    w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w.job, on_error, on_warning);
    w.info = w.png ? png_create_info_struct(w.png) : NULL;
    if (!w.info)
        w.job.status = tn_fail_path(err, TARN_ENOMEM, path, "not enough memory for libpng");
    else if (write_all(&w, pixels, (png_uint_32)height, (png_uint_32)width, channels))
        *out = w.out;
    if (w.job.status != TARN_OK)
        tn_text_free(&w.out);
    png_destroy_write_struct(&w.png, &w.info);
    return w.job.status;
}

/* ---- Many images in one ------------------------------------------------- */

/* Pixels of `cells` images of `pixels` each, and the gaps between; SIZE_MAX: more than that. */
static size_t extent(size_t cells, size_t pixels)
{
    size_t all;

    if (pixels > SIZE_MAX - TARN_PNG_GAP ||
        !tn_size_product(&all, (size_t[]){cells, pixels + TARN_PNG_GAP}, 2))
        return SIZE_MAX;
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

tarn_status tn_png_grid(struct tn_text *out, const char *path, const unsigned char *pixels,
                        tarn_image_size size, size_t count, size_t columns, tarn_error *err)
{
    *out = (struct tn_text){0};
    if (!path || !pixels)
        return tn_fail(err, TARN_EINVAL, "path and pixels must not be NULL");
    if (count == 0 || columns == 0 || size.height == 0 || size.width == 0)
        return tn_fail(err, TARN_EINVAL, "count, columns and every size must be at least 1");
    const size_t across = tn_min(count, columns);
    const size_t height = extent(tn_blocks(count, across), size.height);
    const size_t width = extent(across, size.width);

    tarn_status status = check_sizes(path, height, width, size.channels, err);

    if (status != TARN_OK)
        return status;
    const size_t bytes = height * width * size.channels;
    unsigned char *const grid = malloc(bytes);

    if (!grid)
        return tn_fail_path(err, TARN_ENOMEM, path, "not enough memory for %zu images", count);
    memset(grid, TARN_PNG_GREY, bytes);
    for (size_t i = 0; i < count; i++)
        place(grid, width, pixels + i * size.height * size.width * size.channels, size,
              i / across, i % across);
    status = encode(out, path, grid, height, width, size.channels, err);

    free(grid);
    return status;
}

tarn_status tarn_png_write(const char *path, const unsigned char *pixels, tarn_image_size size,
                           size_t count, size_t columns, tarn_error *err)
{
    struct tn_text png;
    tarn_status status = tn_png_grid(&png, path, pixels, size, count, columns, err);

    if (status == TARN_OK)
        status = tn_file_write(path, png.data, png.used, err);
    tn_text_free(&png);
    return status;
}
