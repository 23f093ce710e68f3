/* SPDX-License-Identifier: MIT */
/* test_svg.c - animations: the finished grid is in the file, covers stand over what is drawn,
 * their last values uncover it, texts are escaped, and a refusal leaves no file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "file/png_file.h"
#include "support/folder.h"

enum { H = 3, W = 4, IMAGES = 5, ACROSS = 3 };

static const tarn_image_size size = {H, W, 1};

static unsigned char *some_pixels(void)
{
    static unsigned char pixels[IMAGES * H * W];

    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)(37 * i);
    return pixels;
}

static char *written(const tarn_animation *animation)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.svg");
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tarn_svg_write(path, some_pixels(), size, IMAGES, ACROSS, animation, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, 1 << 20, &err), &err);
    char *const text = calloc(bytes.size + 1, 1);

    assert_non_null(text);
    memcpy(text, bytes.data, bytes.size);
    tn_bytes_free(&bytes);
    folder_close(&folder);
    return text;
}

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;

    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static uint32_t digit(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *const at = strchr(digits, c);

    return c && at ? (uint32_t)(at - digits) : 0;
}

/* The PNG that a data URI holds. */
static struct tn_bytes embedded(const char *svg)
{
    const char *const begin = strstr(svg, "base64,") + strlen("base64,");
    const size_t length = strcspn(begin, "\"");
    struct tn_bytes bytes;
    tarn_error err;

    assert_int_equal(length % 4, 0);
    check_ok(tn_bytes_allocate(&bytes, length / 4 * 3, &err), &err);
    for (size_t i = 0; i < length / 4; i++) {
        const char *const four = begin + 4 * i;
        const uint32_t group =
            digit(four[0]) << 18 | digit(four[1]) << 12 | digit(four[2]) << 6 | digit(four[3]);

        bytes.data[3 * i] = (unsigned char)(group >> 16);
        bytes.data[3 * i + 1] = (unsigned char)(group >> 8);
        bytes.data[3 * i + 2] = (unsigned char)group;
    }
    bytes.size -= (size_t)(begin[length - 1] == '=') + (size_t)(begin[length - 2] == '=');
    return bytes;
}

static void the_finished_grid_is_in_the_file(void **state)
{
    char *const svg = written(NULL);
    struct tn_bytes found = embedded(svg);
    struct tn_text wanted;
    tarn_error err;

    (void)state;
    check_ok(tn_png_grid(&wanted, "a", some_pixels(), size, IMAGES, ACROSS, &err), &err);
    assert_int_equal(found.size, wanted.used);
    assert_memory_equal(found.data, wanted.data, wanted.used);
    assert_int_equal(count_of(svg, "<use "), IMAGES);
    assert_non_null(strstr(svg, "width=\"42\" height=\"21\"")); /* 14 x 7 pixels, 3 times */
    tn_bytes_free(&found);
    tn_text_free(&wanted);
    free(svg);
}

/* The values of the n-th animation of an attribute. */
static const char *values_of(const char *svg, const char *attribute, size_t n)
{
    for (; (svg = strstr(svg, attribute)); svg++)
        if (n-- == 0)
            return strstr(svg, "values=\"") + strlen("values=\"");
    fail_msg("no %s", attribute);
    return NULL;
}

static void check_values(const char *svg, const char *attribute, size_t n, const char *begin,
                         const char *last)
{
    const char *const values = values_of(svg, attribute, n);
    const size_t length = strcspn(values, "\"");

    if (strncmp(values, begin, strlen(begin)) != 0)
        fail_msg("%s begins with %.40s, not %s", attribute, values, begin);
    assert_memory_equal(values + length - strlen(last), last, strlen(last));
}

/* Six pixels of 3 x 4 are given: row 1 is there to its half. */
static void covers_leave_what_was_drawn(void **state)
{
    char *const svg = written(&(tarn_animation){.given = 6});

    (void)state;
    check_values(svg, "\"y\"", 0, "2;2;3;3;3;3;3;", ";3");      /* rows to come */
    check_values(svg, "\"height\"", 0, "1;1;0;0;0;0;0;", ";0"); /* none is left */
    check_values(svg, "\"y\"", 1, "1;1;2;2;2;2;2;", ";2");      /* the current row */
    check_values(svg, "\"x\"", 0, "2;3;0;1;2;3;4;", ";4");
    check_values(svg, "\"width\"", 0, "2;1;4;3;2;1;0;", ";0");
    free(svg);
}

static void still_images_have_no_cover(void **state)
{
    const bool still[IMAGES] = {true, false, false, true, false};
    char *const svg = written(&(tarn_animation){.still = still, .scale = 2});

    (void)state;
    assert_int_equal(count_of(svg, "<use "), 3);
    assert_null(strstr(svg, "x=\"0\" y=\"0\"/>"));                           /* image 0 */
    assert_non_null(strstr(svg, "<use href=\"#cover\" x=\"10\" y=\"8\"/>")); /* image 4 */
    free(svg);
}

static void bars_share_a_scale_and_labels_are_escaped(void **state)
{
    const tarn_animation_bar bars[] = {{"a < b & c\n", 1.0, 1.0}, {"d", 2.0, 4.0}};
    char *const svg = written(&(tarn_animation){
        .scale = 10, .seconds = 9.0, .caption = "bytes", .bars = bars, .bar_count = 2});

    (void)state;
    assert_non_null(strstr(svg, ">bytes</text>"));
    assert_non_null(strstr(svg, ">a &lt; b &amp; c </text>"));
    assert_non_null(strstr(svg, "width=\"35\" fill=\"#0072b2\"></rect>")); /* of 140 */
    assert_non_null(strstr(svg, "keyTimes=\"0;0.750;1\" values=\"70;140;140\""));
    free(svg);
}

static void refuse(const tarn_animation *animation, size_t columns, const char *says)
{
    struct folder folder = folder_open();
    tarn_error err = {0};

    assert_int_equal(tarn_svg_write(folder_file(&folder, "a.svg"), some_pixels(), size, IMAGES,
                                    columns, animation, &err),
                     TARN_EINVAL);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(folder_count(&folder), 0);
    folder_close(&folder);
}

static void what_makes_no_sense_is_refused(void **state)
{
    const tarn_animation_bar bad[] = {
        {NULL, 1, 1}, {"a", -1, 1}, {"a", 1, (double)NAN}, {"a", (double)INFINITY, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        refuse(&(tarn_animation){.bars = &bad[i], .bar_count = 1}, ACROSS, "bars[0]");
    refuse(&(tarn_animation){.seconds = -1.0}, ACROSS, "seconds");
    refuse(&(tarn_animation){.seconds = (double)NAN}, ACROSS, "seconds");
    refuse(&(tarn_animation){.scale = SIZE_MAX}, ACROSS, "pixels a side");
    refuse(&(tarn_animation){.scale = 10000}, ACROSS, "pixels a side");
    refuse(NULL, 0, "columns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_finished_grid_is_in_the_file),
        cmocka_unit_test(covers_leave_what_was_drawn),
        cmocka_unit_test(still_images_have_no_cover),
        cmocka_unit_test(bars_share_a_scale_and_labels_are_escaped),
        cmocka_unit_test(what_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
