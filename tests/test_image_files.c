/* SPDX-License-Identifier: MIT */
/* test_image_files.c - IDX, gzip, CIFAR-10: what is read, and that everything else is refused
 * before it costs memory. */
#include <stdlib.h>
#include <string.h>

#include "file/gzip.h"
#include "file/images.h"
#include "support/folder.h"
#include "support/image_files.h"

/* Whether `bytes` are `count` images as image_files.h makes them. */
static void check_read(const struct tn_bytes *bytes, size_t count, size_t height, size_t width,
                       size_t channels)
{
    struct tn_images images;
    tarn_error err;

    check_ok(tn_images_parse(&images, bytes, "a", NULL, &err), &err);
    assert_int_equal(images.count, count);
    assert_int_equal(images.height, height);
    assert_int_equal(images.width, width);
    assert_int_equal(images.channels, channels);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < height * width * channels; k++)
            assert_int_equal(tn_images_at(&images, i)[k], image_byte(i, k));
    tn_images_free(&images);
    assert_null(images.pixels);
    tn_images_free(&images);
}

/* An allocator that counts: what is refused must not have asked for memory, or for little. */
static size_t most_asked;

static void *allocate(void *context, size_t bytes)
{
    (void)context;
    most_asked = tn_max(most_asked, bytes);
    return bytes > 1 << 20 ? NULL : malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const tarn_allocator counting = {allocate, release, NULL};

static void check_refused(const struct tn_bytes *bytes, const char *says)
{
    struct tn_images images = {.pixels = (unsigned char *)1};
    tarn_error err = {0};

    most_asked = 0;
    assert_int_equal(tn_images_parse(&images, bytes, "the/path", &counting, &err),
                     TARN_EFORMAT);
    assert_null(images.pixels);
    assert_int_equal(images.count, 0);
    if (!strstr(err.text, "the/path: ") || !strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(tn_images_parse(&images, bytes, "the/path", &counting, NULL),
                     TARN_EFORMAT);
}

static void refuse_and_free(struct tn_bytes bytes, const char *says)
{
    check_refused(&bytes, says);
    tn_bytes_free(&bytes);
}

static void check_every_cut(const struct tn_bytes *bytes)
{
    for (size_t size = 0; size < bytes->size; size++)
        refuse_and_free(bytes_cut(bytes, size), "");
}

static void idx_is_read_plain_and_in_gzip(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {1, 28, 28}, {7, 3, 5}, {300, 9, 4}};

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct tn_bytes plain = idx_bytes(sizes[s][0], sizes[s][1], sizes[s][2]);
        struct tn_bytes packed = gzip_bytes(&plain);

        check_read(&plain, sizes[s][0], sizes[s][1], sizes[s][2], 1);
        check_read(&packed, sizes[s][0], sizes[s][1], sizes[s][2], 1);
        tn_bytes_free(&plain);
        tn_bytes_free(&packed);
    }
}

static void every_truncation_of_idx_is_refused(void **state)
{
    struct tn_bytes plain = idx_bytes(3, 4, 5), packed = gzip_bytes(&plain);

    (void)state;
    check_every_cut(&plain);
    check_every_cut(&packed);
    refuse_and_free(bytes_joined(&plain, "x", 1), "has 61 bytes of pixels; its header says 60");
    refuse_and_free(bytes_joined(&packed, "xyz", 3), "3 unexpected bytes after its end");
    refuse_and_free(bytes_joined(&packed, packed.data, packed.size),
                    "unexpected bytes after its end");
    tn_bytes_free(&plain);
    tn_bytes_free(&packed);
}

static void a_whole_gzip_of_part_of_the_images_is_refused(void **state)
{
    struct tn_bytes plain = idx_bytes(3, 4, 5);

    (void)state;
    for (size_t size = 0; size < plain.size; size++) {
        struct tn_bytes part = bytes_cut(&plain, size);

        refuse_and_free(gzip_bytes(&part), "bytes are missing");
        tn_bytes_free(&part);
    }
    tn_bytes_free(&plain);
}

static void refuse_header(const char header[16], const char *says)
{
    struct tn_bytes plain = idx_bytes(2, 4, 4), packed;

    memcpy(plain.data, header, 16);
    packed = gzip_bytes(&plain);
    check_refused(&plain, says);
    check_refused(&packed, says);
    assert_int_equal(most_asked, 0);
    tn_bytes_free(&plain);
    tn_bytes_free(&packed);
}

static void headers_of_other_things_are_refused(void **state)
{
    struct tn_bytes plain = idx_bytes(2, 4, 4);

    (void)state;
    refuse_header("\0\0\x08\x01\0\0\0\x0c\0\0\0\4\0\0\0",
                  "so these are labels; expected images");
    refuse_header("\0\0\x08\x04\0\0\0\2\0\0\0\2\0\0\0\2", "4 dimensions; expected 3");
    refuse_header("\0\0\x08\x02\0\0\0\4\0\0\0\4\0\0\0", "2 dimensions; expected 3");
    refuse_header("\0\0\x0d\x03\0\0\0\2\0\0\0\2\0\0\0\2", "type 0x0d; expected bytes");
    plain.data[0] = 1;
    check_refused(&plain, "unknown format; expected images as IDX");
    struct tn_bytes packed = gzip_bytes(&plain);

    refuse_and_free(packed, "begins with 01 00 08 03");
    tn_bytes_free(&plain);
}

static void headers_that_promise_too_much_cost_no_memory(void **state)
{
    struct tn_bytes one = idx_bytes(1, 1, 1), packed;

    (void)state;
    refuse_header("\0\0\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                  "do not fit in memory");
    refuse_header("\0\0\x08\x03\xff\xff\xff\xff\0\0\1\0\0\0\1\0",
                  "its header says 281474976645120");
    memset(one.data + 4, 0, 4);
    one.size = 16;
    check_refused(&one, "has 0 images of 1 x 1; expected at least 1");
    packed = gzip_bytes(&one);
    refuse_and_free(packed, "has 0 images");
    tn_bytes_free(&one);
}

/* 64 MB of zeros behind a header that promises a single image. */
static void a_gzip_bomb_is_not_unpacked(void **state)
{
    const size_t size = (size_t)64 << 20;
    struct tn_bytes plain, packed;

    (void)state;
    assert_int_equal(tn_bytes_allocate(&plain, size, NULL), TARN_OK);
    memset(plain.data, 0, size);
    memcpy(plain.data, "\0\0\x08\x03\0\0\0\1\0\0\0\x1c\0\0\0\x1c", 16);
    packed = gzip_bytes(&plain);
    assert_true(packed.size < size / 900);
    check_refused(&packed, "has more data than its header says");
    assert_int_equal(most_asked, 28 * 28);
    tn_bytes_free(&packed);
    tn_bytes_free(&plain);
}

/* A header that promises 3 GB, in a file that could hold them. */
static void a_gzip_that_keeps_a_large_promise_is_not_unpacked(void **state)
{
    struct tn_bytes plain = idx_bytes(1, 1, 1), begin, packed;
    void *const rest = take(4, 1 << 20);

    (void)state;
    memcpy(plain.data + 4, "\0\0\x0c\0\0\0\4\0\0\0\4\0", 12);
    begin = gzip_bytes(&plain);
    packed = bytes_joined(&begin, rest, (size_t)4 << 20);
    check_refused(&packed, "gzip of 3221225472 bytes");
    assert_int_equal(most_asked, 0);
    tn_bytes_free(&packed);
    tn_bytes_free(&begin);
    tn_bytes_free(&plain);
    free(rest);
}

static void *no_memory(void *context, unsigned count, unsigned size)
{
    (void)context;
    (void)count;
    (void)size;
    return NULL;
}

static void gzip_without_memory_names_the_file(void **state)
{
    struct tn_bytes plain = idx_bytes(3, 4, 5), packed = gzip_bytes(&plain);
    struct tn_gunzip gunzip;
    unsigned char out[16];
    tarn_error err;

    (void)state;
    check_ok(tn_gunzip_begin(&gunzip, packed.data, packed.size, false, "the/path", &err), &err);
    gunzip.stream.zalloc = no_memory;
    assert_int_equal(tn_gunzip_read(&gunzip, out, sizeof out, &err), TARN_ENOMEM);
    assert_non_null(strstr(err.text, "the/path: not enough memory"));
    tn_gunzip_free(&gunzip);
    tn_bytes_free(&plain);
    tn_bytes_free(&packed);
}

static void a_wrong_checksum_of_gzip_is_noticed(void **state)
{
    struct tn_bytes plain = idx_bytes(3, 4, 5), packed = gzip_bytes(&plain);

    (void)state;
    packed.data[packed.size - 6] ^= 1;
    check_refused(&packed, "gzip: incorrect data check");
    packed.data[packed.size - 6] ^= 1;
    packed.data[packed.size - 2] ^= 1;
    check_refused(&packed, "gzip: incorrect length check");
    tn_bytes_free(&plain);
    tn_bytes_free(&packed);
}

static void planes_of_cifar_become_pixels(void **state)
{
    struct tn_bytes bytes = cifar_bytes(12);

    (void)state;
    check_read(&bytes, 12, 32, 32, 3);
    refuse_and_free(bytes_cut(&bytes, 3072), "unknown format");
    refuse_and_free(bytes_cut(&bytes, 3074), "unknown format");
    bytes.data[11 * 3073] = 10;
    check_refused(&bytes, "unknown format");
    tn_bytes_free(&bytes);
}

static void several_files_of_cifar_are_one(void **state)
{
    struct folder folder = folder_open();
    char a[FOLDER_PATH], b[FOLDER_PATH];
    char *const paths[] = {a, b};
    struct tn_bytes bytes = cifar_bytes(5);
    struct tn_images images;
    tarn_error err;

    (void)state;
    strcpy(a, folder_file(&folder, "a"));
    strcpy(b, folder_file(&folder, "b"));
    file_put(a, bytes.data, 2 * 3073);
    file_put(b, bytes.data + 2 * 3073, 3 * 3073);
    check_ok(tn_images_read_files(&images, paths, 2, tn_cifar_parse, NULL, &err), &err);
    assert_int_equal(images.count, 5);
    for (size_t k = 0; k < 3072; k++)
        assert_int_equal(tn_images_at(&images, 4)[k], image_byte(4, k));
    tn_images_free(&images);
    file_put(b, bytes.data, 3072);
    assert_int_equal(tn_images_read_files(&images, paths, 2, tn_cifar_parse, NULL, &err),
                     TARN_EFORMAT);
    assert_non_null(strstr(err.text, "/b: has 3072 bytes; expected CIFAR-10 records"));
    file_put(b, bytes.data + 3072, 3073);
    assert_int_equal(tn_images_read_files(&images, paths, 2, tn_cifar_parse, NULL, &err),
                     TARN_EFORMAT);
    assert_non_null(strstr(err.text, "label above 9"));
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

static void pixels_are_the_allocators(void **state)
{
    struct tn_bytes plain = idx_bytes(3, 4, 5), packed = gzip_bytes(&plain);
    struct tn_bytes large = idx_bytes(2, 1024, 1024);
    struct tn_images images;
    tarn_error err;

    (void)state;
    most_asked = 0;
    check_ok(tn_images_parse(&images, &packed, "a", &counting, &err), &err);
    assert_int_equal(most_asked, 60);
    tn_images_free(&images);
    assert_int_equal(tn_images_parse(&images, &large, "a", &counting, &err), TARN_ENOMEM);
    assert_non_null(strstr(err.text, "not enough memory for 2 images of 1024 x 1024 x 1"));
    tn_bytes_free(&plain);
    tn_bytes_free(&packed);
    tn_bytes_free(&large);
}

static void paths_that_are_no_images_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_images images;
    tarn_error err;

    (void)state;
    assert_int_equal(tn_images_read(&images, path, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "No such file"));
    file_put(path, "no images at all", 16);
    assert_int_equal(tn_images_read(&images, path, NULL, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "16 bytes in an unknown format; expected images as IDX"));
    assert_int_equal(tn_images_read(&images, folder.path, NULL, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "contains no images; expected PNG"));
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idx_is_read_plain_and_in_gzip),
        cmocka_unit_test(every_truncation_of_idx_is_refused),
        cmocka_unit_test(a_whole_gzip_of_part_of_the_images_is_refused),
        cmocka_unit_test(headers_of_other_things_are_refused),
        cmocka_unit_test(headers_that_promise_too_much_cost_no_memory),
        cmocka_unit_test(a_gzip_bomb_is_not_unpacked),
        cmocka_unit_test(a_gzip_that_keeps_a_large_promise_is_not_unpacked),
        cmocka_unit_test(gzip_without_memory_names_the_file),
        cmocka_unit_test(a_wrong_checksum_of_gzip_is_noticed),
        cmocka_unit_test(planes_of_cifar_become_pixels),
        cmocka_unit_test(several_files_of_cifar_are_one),
        cmocka_unit_test(pixels_are_the_allocators),
        cmocka_unit_test(paths_that_are_no_images_are_refused),
    };

    return cmocka_run_group_tests_name("image files", tests, NULL, NULL);
}
