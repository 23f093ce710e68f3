/* SPDX-License-Identifier: MIT */
/* test_png.c - PNG files: there and back, the forms that become 8 bits, and those that do
 * not. */
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "file/png_file.h"
#include "support/folder.h"
#include "support/image_files.h"

static struct tn_images parse(struct tn_bytes bytes)
{
    struct tn_images images;
    tarn_error err;

    assert_true(tn_is_png(&bytes));
    check_ok(tn_images_parse(&images, &bytes, "a", NULL, &err), &err);
    assert_int_equal(images.count, 1);
    tn_bytes_free(&bytes);
    return images;
}

static void refuse(struct tn_bytes bytes, const char *says)
{
    struct tn_images images = {.pixels = (unsigned char *)1};
    tarn_error err = {0};

    assert_int_equal(tn_png_parse(&images, &bytes, "the/path", NULL, &err), TARN_EFORMAT);
    assert_null(images.pixels);
    if (!strstr(err.text, "the/path: PNG: ") || !strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(tn_png_parse(&images, &bytes, "the/path", NULL, NULL), TARN_EFORMAT);
    tn_bytes_free(&bytes);
}

static void what_is_written_is_read_again(void **state)
{
    static const size_t sizes[][3] = {
        {1, 1, 1}, {1, 1, 3}, {28, 28, 1}, {32, 32, 3}, {3, 70, 3}};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    unsigned char pixels[4096];
    struct tn_images images;
    tarn_error err;

    (void)state;
    for (size_t k = 0; k < sizeof pixels; k++)
        pixels[k] = image_byte(k / 256, 7 * k);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const size_t *const size = sizes[s];

        check_ok(tarn_png_write(path, pixels, (tarn_image_size){size[0], size[1], size[2]}, 1,
                                1, &err),
                 &err);
        check_ok(tn_images_read(&images, path, NULL, &err), &err);
        assert_int_equal(images.height, size[0]);
        assert_int_equal(images.width, size[1]);
        assert_int_equal(images.channels, size[2]);
        assert_memory_equal(images.pixels, pixels, tn_images_size(&images));
        tn_images_free(&images);
    }
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void refuse_write(const char *path, size_t height, size_t width, size_t channels,
                         tarn_status status, const char *says)
{
    static const unsigned char pixels[12];
    tarn_error err = {0};

    assert_int_equal(
        tarn_png_write(path, pixels, (tarn_image_size){height, width, channels}, 1, 1, &err),
        status);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void what_cannot_be_written_leaves_nothing(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");

    (void)state;
    refuse_write(path, 2, 2, 2, TARN_EINVAL, "2 channels; expected 1 or 3");
    refuse_write(path, 0, 2, 1, TARN_EINVAL, "every size must be at least 1");
    refuse_write(path, 2, 0, 1, TARN_EINVAL, "every size must be at least 1");
    refuse_write(path, 2, (size_t)1 << 33, 1, TARN_EINVAL, "expected sides of 1 to");
    refuse_write(folder_file(&folder, "none/a"), 2, 2, 1, TARN_EIO, "No such file");
    assert_int_equal(folder_count(&folder), 0);
    if (access("/dev/full", W_OK) == 0)
        refuse_write("/dev/full", 2, 2, 1, TARN_EIO, "device");
    folder_close(&folder);
}

static void every_truncation_is_refused(void **state)
{
    static const struct png_form forms[] = {
        {PNG_COLOR_TYPE_GRAY, 8, false, false},
        {PNG_COLOR_TYPE_RGB, 8, true, false},
        {PNG_COLOR_TYPE_PALETTE, 4, false, false},
    };
    unsigned char rows[5 * 6 * 3];

    (void)state;
    for (size_t k = 0; k < sizeof rows; k++)
        rows[k] = image_byte(0, 11 * k);
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        struct tn_bytes whole = png_bytes(forms[f], 5, 6, rows);

        for (size_t size = 8; size < whole.size; size++)
            refuse(bytes_cut(&whole, size), "");
        tn_bytes_free(&whole);
    }
}

static void a_flipped_bit_of_what_matters_is_noticed(void **state)
{
    static const unsigned char rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    struct tn_bytes whole =
        png_bytes((struct png_form){PNG_COLOR_TYPE_GRAY, 8, false, false}, 3, 3, rows);

    (void)state;
    for (size_t at = 8; at < whole.size; at++) {
        struct tn_bytes changed = bytes_cut(&whole, whole.size);

        changed.data[at] ^= 4;
        refuse(changed, "");
    }
    tn_bytes_free(&whole);
}

static void forms_of_fewer_bits_are_widened(void **state)
{
    /* Each row of 8 pixels of a bit is a byte. */
    static const unsigned char bits[] = {0x80, 0x01};
    struct tn_images images =
        parse(png_bytes((struct png_form){PNG_COLOR_TYPE_GRAY, 1, false, false}, 2, 8, bits));

    (void)state;
    assert_int_equal(images.channels, 1);
    for (size_t k = 0; k < 16; k++)
        assert_int_equal(images.pixels[k], k == 0 || k == 15 ? 255 : 0);
    tn_images_free(&images);

    static const unsigned char nibbles[] = {0x0f, 0x3a};

    images = parse(
        png_bytes((struct png_form){PNG_COLOR_TYPE_PALETTE, 4, false, false}, 2, 2, nibbles));
    assert_int_equal(images.channels, 3);
    assert_memory_equal(images.pixels, "\0\0\0\x2d\x4b\x69\x09\x0f\x15\x1e\x32\x46", 12);
    tn_images_free(&images);
}

static void alpha_that_hides_nothing_is_dropped(void **state)
{
    const struct png_form rgba = {PNG_COLOR_TYPE_RGB_ALPHA, 8, false, false};
    const struct png_form grey = {PNG_COLOR_TYPE_GRAY_ALPHA, 8, true, false};
    struct tn_images images =
        parse(png_bytes(rgba, 1, 2, (const unsigned char *)"abc\377def\377"));

    (void)state;
    assert_int_equal(images.channels, 3);
    assert_memory_equal(images.pixels, "abcdef", 6);
    tn_images_free(&images);
    images = parse(png_bytes(grey, 2, 1, (const unsigned char *)"a\377b\377"));
    assert_int_equal(images.channels, 1);
    assert_memory_equal(images.pixels, "ab", 2);
    tn_images_free(&images);
    refuse(png_bytes(rgba, 1, 2, (const unsigned char *)"abc\377def\376"), "transparent");
    refuse(png_bytes(grey, 2, 1, (const unsigned char *)"a\0b\377"), "transparent");
}

static void a_transparent_colour_is_refused_where_it_is_used(void **state)
{
    const struct png_form grey = {PNG_COLOR_TYPE_GRAY, 8, false, true};
    const struct png_form palette = {PNG_COLOR_TYPE_PALETTE, 8, false, true};
    struct tn_images images = parse(png_bytes(grey, 1, 2, (const unsigned char *)"\0\2"));

    (void)state;
    assert_memory_equal(images.pixels, "\0\2", 2);
    tn_images_free(&images);
    refuse(png_bytes(grey, 1, 2, (const unsigned char *)"\0\1"), "transparent");
    refuse(png_bytes(palette, 1, 2, (const unsigned char *)"\2\1"), "transparent");
}

static void sixteen_bits_are_refused(void **state)
{
    (void)state;
    refuse(png_bytes((struct png_form){PNG_COLOR_TYPE_GRAY, 16, false, false}, 1, 2,
                     (const unsigned char *)"abcd"),
           "16 bits per channel; expected at most 8");
}

/* Another IHDR, with its checksum made anew. */
static void put_header(struct tn_bytes *bytes, const unsigned char ihdr[17])
{
    const unsigned long sum = crc32(0, ihdr, 17);

    memcpy(bytes->data + 12, ihdr, 17);
    for (size_t i = 0; i < 4; i++)
        bytes->data[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
}

/* 900000 x 900000. */
static void a_header_that_promises_too_much_costs_no_memory(void **state)
{
    static const unsigned char ihdr[17] = {'I',  'H',  'D',  'R', 0, 0x0d, 0xbb, 0xa0, 0,
                                           0x0d, 0xbb, 0xa0, 8,   0, 0,    0,    0};
    struct tn_bytes bytes = png_bytes((struct png_form){PNG_COLOR_TYPE_GRAY, 8, false, false},
                                      1, 1, (const unsigned char *)"");

    (void)state;
    put_header(&bytes, ihdr);
    refuse(bytes, "too short for the pixels its header announces");
}

/* 30000 x 30000 of a bit, which 110 KB of deflate can hold, are 2.7 GB as colours. */
static void a_palette_that_unfolds_too_far_costs_no_memory(void **state)
{
    static const unsigned char ihdr[17] = {'I', 'H',  'D',  'R', 0, 0, 0x75, 0x30, 0,
                                           0,   0x75, 0x30, 1,   3, 0, 0,    0};
    static const unsigned char padding[1 << 17];
    struct tn_bytes small =
        png_bytes((struct png_form){PNG_COLOR_TYPE_PALETTE, 1, false, false}, 1, 1, padding);
    struct tn_bytes bytes = bytes_joined(&small, padding, sizeof padding);

    (void)state;
    put_header(&bytes, ihdr);
    refuse(bytes, "more than a gigabyte of pixels");
    tn_bytes_free(&small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(what_cannot_be_written_leaves_nothing),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_flipped_bit_of_what_matters_is_noticed),
        cmocka_unit_test(forms_of_fewer_bits_are_widened),
        cmocka_unit_test(alpha_that_hides_nothing_is_dropped),
        cmocka_unit_test(a_transparent_colour_is_refused_where_it_is_used),
        cmocka_unit_test(sixteen_bits_are_refused),
        cmocka_unit_test(a_header_that_promises_too_much_costs_no_memory),
        cmocka_unit_test(a_palette_that_unfolds_too_far_costs_no_memory),
    };

    return cmocka_run_group_tests_name("png", tests, NULL, NULL);
}
