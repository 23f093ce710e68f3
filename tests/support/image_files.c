/* SPDX-License-Identifier: MIT */
#include "support/image_files.h"

#include <png.h>
#include <string.h>
#include <zlib.h>

#include "support/folder.h"

unsigned char image_byte(size_t i, size_t k)
{
    return (unsigned char)(37 * i + k);
}

static struct tn_bytes bytes_of(size_t size)
{
    struct tn_bytes bytes;

    assert_int_equal(tn_bytes_allocate(&bytes, size, NULL), TARN_OK);
    return bytes;
}

static void put_number(unsigned char *at, size_t number)
{
    for (size_t i = 0; i < 4; i++)
        at[i] = (unsigned char)(number >> (24 - 8 * i));
}

struct tn_bytes idx_bytes(size_t count, size_t height, size_t width)
{
    struct tn_bytes bytes = bytes_of(16 + count * height * width);

    memcpy(bytes.data, "\0\0\x08\x03", 4);
    put_number(bytes.data + 4, count);
    put_number(bytes.data + 8, height);
    put_number(bytes.data + 12, width);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < height * width; k++)
            bytes.data[16 + i * height * width + k] = image_byte(i, k);
    return bytes;
}

/* Byte k of the image is pixel k / 3 of plane k % 3. */
struct tn_bytes cifar_bytes(size_t count)
{
    struct tn_bytes bytes = bytes_of(3073 * count);

    for (size_t i = 0; i < count; i++) {
        bytes.data[3073 * i] = (unsigned char)(i % 10);
        for (size_t k = 0; k < 3072; k++)
            bytes.data[3073 * i + 1 + k % 3 * 1024 + k / 3] = image_byte(i, k);
    }
    return bytes;
}

struct tn_bytes gzip_bytes(const struct tn_bytes *plain)
{
    struct tn_bytes bytes = bytes_of(plain->size + 1000);
    z_stream z = {.next_in = plain->data,
                  .avail_in = (uInt)plain->size,
                  .next_out = bytes.data,
                  .avail_out = (uInt)bytes.size};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY),
                     Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const struct tn_bytes exact = bytes_cut(&bytes, z.total_out);

    deflateEnd(&z);
    tn_bytes_free(&bytes);
    return exact;
}

/* ---- PNG ---------------------------------------------------------------- */

static void append(png_structp png, png_bytep data, size_t size)
{
    struct tn_bytes *const bytes = png_get_io_ptr(png);
    const struct tn_bytes longer = bytes_joined(bytes, data, size);

    tn_bytes_free(bytes);
    *bytes = longer;
}

static void flush(png_structp png)
{
    (void)png;
}

static void put_palette(png_structp png, png_infop info, struct png_form form)
{
    static const png_byte alpha[] = {255, 0};
    png_color colours[256];
    const int count = 1 << form.depth;

    for (int k = 0; k < count; k++)
        colours[k] = (png_color){(png_byte)(3 * k), (png_byte)(5 * k), (png_byte)(7 * k)};
    png_set_PLTE(png, info, colours, count);
    if (form.key)
        png_set_tRNS(png, info, alpha, 2, NULL);
}

struct tn_bytes png_bytes(struct png_form form, size_t height, size_t width,
                          const unsigned char *rows)
{
    struct tn_bytes bytes = bytes_of(0);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_color_16 one = {.red = 1, .green = 1, .blue = 1, .gray = 1};

    png_set_write_fn(png, &bytes, append, flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, form.depth,
                 form.color_type, form.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (form.color_type == PNG_COLOR_TYPE_PALETTE)
        put_palette(png, info, form);
    else if (form.key)
        png_set_tRNS(png, info, NULL, 0, &one);
    png_write_info(png, info);
    const size_t stride = png_get_rowbytes(png, info);

    for (int passes = png_set_interlace_handling(png); passes > 0; passes--)
        for (size_t y = 0; y < height; y++)
            png_write_row(png, rows + y * stride);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return bytes;
}

/* ---- Bytes -------------------------------------------------------------- */

struct tn_bytes bytes_cut(const struct tn_bytes *bytes, size_t size)
{
    struct tn_bytes cut = bytes_of(size);

    memcpy(cut.data, bytes->data, size);
    return cut;
}

struct tn_bytes bytes_joined(const struct tn_bytes *a, const void *b, size_t size)
{
    struct tn_bytes joined = bytes_of(a->size + size);

    memcpy(joined.data, a->data, a->size);
    memcpy(joined.data + a->size, b, size);
    return joined;
}

void bytes_put(const char *path, struct tn_bytes bytes)
{
    file_put(path, bytes.data, bytes.size);
    tn_bytes_free(&bytes);
}
