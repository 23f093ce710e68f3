/* SPDX-License-Identifier: MIT */
/* test_npz.c - NumPy's archives: written and read again, and refused where they are not whole.
 * */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "file/npz.h"
#include "file/tensor_file.h"
#include "support/folder.h"
#include "support/zip_maker.h"
#include "tarn/file.h"

static tarn_status parse(struct tn_safetensors *s, const void *data, size_t size,
                         tarn_error *err)
{
    struct tn_bytes bytes;
    enum tn_tensor_format format;

    check_ok(tn_bytes_allocate(&bytes, size, NULL), NULL);
    if (size > 0)
        memcpy(bytes.data, data, size);
    const tarn_status status = tn_tensor_file_parse(s, &format, &bytes, "a/file", err);

    tn_bytes_free(&bytes);
    return status;
}

/* ---- Out and in --------------------------------------------------------- */

static const float floats[] = {0, -1, 2.5f, 3, 1e-30f, 5};
static const int64_t longs[] = {-7, 1};
static const double one = 0.1;

static const struct tn_safetensor tensors[] = {
    {.name = "b.weight", .dtype = TN_DTYPE_F32, .rank = 2, .shape = {2, 3}, .data = floats},
    {.name = "a", .dtype = TN_DTYPE_I64, .rank = 1, .shape = {2}, .data = longs},
    {.name = "one", .dtype = TN_DTYPE_F64, .rank = 0, .data = &one},
    {.name = "none", .dtype = TN_DTYPE_F16, .rank = 2, .shape = {0, 4}, .data = floats},
    {.name = "bytes", .dtype = TN_DTYPE_U8, .rank = 3, .shape = {1, 2, 2}, .data = floats},
};

enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static struct tn_bytes written(const struct folder *folder)
{
    const struct tn_safetensors_entry text = {"tarn", "{\"a\": 1}"};
    const char *const path = folder_file(folder, "some.npz");
    struct tn_bytes bytes;
    tarn_error err;

    check_ok(tn_npz_write(path, tensors, TENSORS, &text, 1, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    return bytes;
}

static void arrays_come_back_as_they_were(void **state)
{
    struct folder folder = folder_open();
    struct tn_bytes bytes = written(&folder), again = written(&folder);
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    assert_int_equal(bytes.size, again.size);
    assert_memory_equal(bytes.data, again.data, bytes.size);
    check_ok(parse(&s, bytes.data, bytes.size, &err), &err);
    assert_int_equal(s.count, TENSORS);
    assert_string_equal(tn_safetensors_metadata(&s, "tarn"), "{\"a\": 1}");
    for (size_t i = 0; i < TENSORS; i++) {
        const struct tn_safetensor *const t = tn_safetensors_find(&s, tensors[i].name);
        size_t size;

        assert_non_null(t);
        assert_true(tn_safetensor_bytes(&size, &tensors[i]));
        assert_int_equal(t->dtype, tensors[i].dtype);
        assert_int_equal(t->rank, tensors[i].rank);
        assert_int_equal(t->bytes, size);
        assert_memory_equal(t->shape, tensors[i].shape, sizeof t->shape);
        assert_memory_equal(t->data, tensors[i].data, size);
    }
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
    tn_bytes_free(&again);
    folder_close(&folder);
}

/* A model's note may name thousands of symbols. */
static void text_of_any_length_comes_back(void **state)
{
    static const size_t lengths[] = {0, 4095, 4096, 1000000};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "some.npz");

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char *const text = take(lengths[i] + 1, 1);
        const struct tn_safetensors_entry entry = {"note", text};
        tarn_file *file;
        tarn_error err;

        memset(text, 'n', lengths[i]);
        check_ok(tn_npz_write(path, tensors, TENSORS, &entry, 1, &err), &err);
        check_ok(tarn_file_open(&file, path, &err), &err);
        assert_non_null(tarn_file_text(file, "note"));
        assert_string_equal(tarn_file_text(file, "note"), text);
        tarn_file_free(file);
        free(text);
    }
    folder_close(&folder);
}

/* Files of tarn before had texts as they are; the other ones are arrays, also where NumPy wrote
 * them. What is called so and has other numbers is a tensor. */
static void text_is_read_as_it_is_and_as_an_array(void **state)
{
    static const char text[] = "\x93NUMPY\1\0\x3b\0"
                               "{'descr': '|u1', 'fortran_order': False, 'shape': (4,), } \n";
    static const char numbers[] =
        "\x93NUMPY\1\0\x3b\0"
        "{'descr': '|i1', 'fortran_order': False, 'shape': (4,), } \n";
    unsigned char arrays[2][sizeof text + 3];
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    memcpy(arrays[0], text, sizeof text - 1);
    memcpy(arrays[0] + sizeof text - 1, "text", 4);
    memcpy(arrays[1], numbers, sizeof numbers - 1);
    memcpy(arrays[1] + sizeof numbers - 1, "text", 4);
    struct tn_bytes zip =
        zip_make((struct zip_made[]){{"now.json.npy", arrays[0], sizeof arrays[0], 0},
                                     {"before.json", "old", 3, 0},
                                     {"tensor.json.npy", arrays[1], sizeof arrays[1], 0}},
                 3);

    check_ok(parse(&s, zip.data, zip.size, &err), &err);
    assert_string_equal(tn_safetensors_metadata(&s, "now"), "text");
    assert_string_equal(tn_safetensors_metadata(&s, "before"), "old");
    assert_int_equal(s.count, 1);
    assert_non_null(tn_safetensors_find(&s, "tensor.json"));
    tn_safetensors_free(&s);
    tn_bytes_free(&zip);
}

static void what_is_no_text_is_left_out(void **state)
{
    static const char *const wrong[] = {"a\0b", "a\xff b"};
    const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (), }";
    unsigned char array[256] = "\x93NUMPY\1";
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    array[8] = sizeof header - 1;
    memcpy(array + 10, header, sizeof header - 1);
    for (size_t i = 0; i < 2; i++) {
        struct tn_bytes zip =
            zip_make((struct zip_made[]){{"a.npy", array, 10 + sizeof header - 1 + 4, 0},
                                         {"note.json", wrong[i], 3, 0}},
                     2);

        check_ok(parse(&s, zip.data, zip.size, &err), &err);
        assert_null(tn_safetensors_metadata(&s, "note"));
        tn_safetensors_free(&s);
        tn_bytes_free(&zip);
    }
}

static void every_truncation_is_refused(void **state)
{
    struct folder folder = folder_open();
    struct tn_bytes bytes = written(&folder);
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    for (size_t size = 0; size < bytes.size; size++) {
        assert_int_equal(parse(&s, bytes.data, size, &err), TARN_EFORMAT);
        assert_non_null(strstr(err.text, "a/file"));
    }
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

static void what_numpy_has_not_is_refused(void **state)
{
    struct folder folder = folder_open();
    struct tn_safetensor tensor = tensors[0];
    tarn_error err;

    (void)state;
    tensor.dtype = TN_DTYPE_BF16;
    assert_int_equal(tn_npz_write(folder_file(&folder, "bf16.npz"), &tensor, 1, NULL, 0, &err),
                     TARN_EINVAL);
    assert_int_equal(folder_count(&folder), 0);
    assert_int_equal(tn_npz_write("/nowhere/a.npz", tensors, 1, NULL, 0, &err), TARN_EIO);
    folder_close(&folder);
}

/* ---- Headers ------------------------------------------------------------ */

/* An array of `header` and 24 bytes of numbers. */
static tarn_status parse_header(const char *header, unsigned char version, tarn_error *err)
{
    const size_t length = strlen(header), width = version == 1 ? 2 : 4;
    unsigned char array[1024] = "\x93NUMPY";
    struct tn_safetensors s;

    array[6] = version;
    array[8] = (unsigned char)length;
    memcpy(array + 8 + width, header, length);
    memcpy(array + 8 + width + length, floats, sizeof floats);
    struct tn_bytes zip = zip_make(
        (struct zip_made[]){{"a.npy", array, 8 + width + length + sizeof floats, 0}}, 1);
    const tarn_status status = parse(&s, zip.data, zip.size, err);

    tn_safetensors_free(&s);
    tn_bytes_free(&zip);
    return status;
}

static void headers_are_those_of_numpy(void **state)
{
    static const char *const right[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }    \n",
        "{'shape':(1,2,3),'fortran_order':False,'descr':'<f4'}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }\n",
    };
    static const char *const wrong[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), ",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }\n",
        "{'descr': '|O', 'fortran_order': False, 'shape': (3,), }\n",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6, }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 6, }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296, 6), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6), }\n",
        "{'descr': '<f4', 'descr': '<f4', 'shape': (6,), }\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } x\n",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}\n",
    };
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        for (unsigned char version = 1; version <= 3; version++)
            check_ok(parse_header(right[i], version, &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (parse_header(wrong[i], 1, &err) != TARN_EFORMAT ||
            !strstr(err.text, "a/file: array 'a'"))
            fail_msg("%s: %s", wrong[i], err.text);
    assert_int_equal(parse_header(right[0], 4, &err), TARN_EFORMAT);
}

/* ---- Archives ----------------------------------------------------------- */

/* An array of six floats. */
static const char array[] = "\x93NUMPY\1\0\x3b\0"
                            "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } \n"
                            "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";

static void check_array(const struct tn_bytes *zip)
{
    struct tn_safetensors s;
    tarn_error err;

    check_ok(parse(&s, zip->data, zip->size, &err), &err);
    assert_int_equal(s.count, 2);
    const struct tn_safetensor *const t = tn_safetensors_find(&s, "x");

    assert_non_null(t);
    assert_memory_equal(t->data, array + sizeof array - 24, 24);
    tn_safetensors_free(&s);
}

static struct tn_bytes make_arrays(unsigned how)
{
    return zip_make_as((struct zip_made[]){{"x.npy", array, sizeof array, 0},
                                           {"folder/", "", 0, 0},
                                           {"folder/y.npy", array, sizeof array, 0},
                                           {"empty", "", 0, 0}},
                       4, how);
}

static void entries_are_stored_or_deflated_small_or_large(void **state)
{
    (void)state;
    for (unsigned how = 0; how <= (ZIP_DEFLATED | ZIP_64); how++) {
        struct tn_bytes zip = make_arrays(how);

        check_array(&zip);
        tn_bytes_free(&zip);
    }
}

/* A change is found, or means nothing: times, versions, comments. */
static void every_change_is_found_or_means_nothing(void **state)
{
    size_t found = 0, all = 0;

    (void)state;
    for (unsigned how = 0; how <= (ZIP_DEFLATED | ZIP_64); how++) {
        struct tn_bytes zip = make_arrays(how);

        for (size_t bit = 0; bit < 8 * zip.size; bit++) {
            struct tn_safetensors s;
            tarn_error err = {0};

            zip.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            const tarn_status status = parse(&s, zip.data, zip.size, &err);

            if (status == TARN_OK) {
                const struct tn_safetensor *const t = tn_safetensors_find(&s, "x");

                assert_true(!t || memcmp(t->data, array + sizeof array - 24, 24) == 0);
            } else
                assert_int_equal(status, TARN_EFORMAT);
            found += status != TARN_OK;
            all++;
            tn_safetensors_free(&s);
            zip.data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        for (size_t size = 0; size < zip.size; size++) {
            struct tn_safetensors s;

            assert_int_equal(parse(&s, zip.data, size, NULL), TARN_EFORMAT);
        }
        tn_bytes_free(&zip);
    }
    assert_true(found > all / 2);
}

/* What one program takes for an entry is what every program does. */
static void entries_are_what_the_directory_says(void **state)
{
    struct tn_bytes zip = make_arrays(ZIP_PLAIN);
    struct tn_bytes longer =
        zip_make((struct zip_made[]){{"x.npy", array, sizeof array, 1000}}, 1);
    struct tn_safetensors s;
    tarn_error err = {0};

    (void)state;
    zip.data[30] = 'z'; /* the first letter of the first local header's name */
    assert_int_equal(parse(&s, zip.data, zip.size, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "'x.npy': has another name before its data"));
    assert_int_equal(parse(&s, longer.data, longer.size, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "'x.npy': extends past the end of the data"));
    tn_bytes_free(&zip);
    tn_bytes_free(&longer);
}

/* The two counts of the end, 12 and 14 bytes before it. */
static void entries_beyond_those_claimed_are_refused(void **state)
{
    struct tn_bytes zip = zip_make((struct zip_made[]){{"a.npy", array, sizeof array, 0},
                                                       {"b.npy", array, sizeof array, 0}},
                                   2);
    enum tn_tensor_format format;
    struct tn_safetensors s;
    tarn_error err = {0};

    (void)state;
    zip.data[zip.size - 14] = zip.data[zip.size - 12] = 1;
    assert_int_equal(tn_tensor_file_parse(&s, &format, &zip, "a/file", &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "more entries than it says"));
    tn_bytes_free(&zip);
}

/* More entries than 16 bits count. */
static void an_archive_may_have_many_entries(void **state)
{
    enum { MANY = 65600 };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "many.npz");
    struct tn_safetensor *const many = take(MANY, sizeof *many);
    char(*const names)[8] = take(MANY, sizeof *names);
    const unsigned char byte = 7;
    struct tn_bytes bytes;
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        many[i] = (struct tn_safetensor){
            .name = names[i], .dtype = TN_DTYPE_U8, .rank = 2, .shape = {1, 1}, .data = &byte};
    }
    check_ok(tn_npz_write(path, many, MANY, NULL, 0, &err), &err);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    check_ok(parse(&s, bytes.data, bytes.size, &err), &err);
    assert_int_equal(s.count, MANY);
    assert_non_null(tn_safetensors_find(&s, "65599"));
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
    free(names);
    free(many);
    folder_close(&folder);
}

/* As on a full disk: the archive is not there, and what was there is. */
static void an_archive_that_does_not_fit_is_not_there(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "some.npz");
    struct tn_bytes whole = written(&folder);
    struct rlimit before;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    file_put(path, "old", 3);
    for (size_t size = 0; size < whole.size; size += 50) {
        const struct rlimit small = {size, before.rlim_max};

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        const tarn_status status = tn_npz_write(path, tensors, TENSORS, NULL, 0, &err);

        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
        if (status == TARN_OK)
            break;
        assert_int_equal(status, TARN_EIO);
        assert_non_null(strstr(err.text, "File too large"));
        file_check(path, "old", 3);
        assert_int_equal(folder_count(&folder), 1);
    }
    tn_bytes_free(&whole);
    folder_close(&folder);
}

/* 1 MB and 64 times the file is what may be unpacked. */
static void a_bomb_is_refused(void **state)
{
    /* numpy.savez_compressed() of two million zeros would be such; here the size only says so.
     * */
    struct tn_bytes zip =
        zip_make((struct zip_made[]){{"a.npy", floats, sizeof floats, 2u << 20}}, 1);
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    assert_int_equal(parse(&s, zip.data, zip.size, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "the file can contain"));
    tn_bytes_free(&zip);
}

static void programs_see_the_format(void **state)
{
    struct folder folder = folder_open();
    struct tn_bytes bytes = written(&folder);
    tarn_file *file;
    tarn_error err;

    (void)state;
    check_ok(tarn_file_open(&file, folder_file(&folder, "some.npz"), &err), &err);
    assert_string_equal(tarn_file_format(file), "npz");
    tarn_file_free(file);
    check_ok(tarn_file_open(&file, TEST_VECTORS "views.pth", &err), &err);
    assert_string_equal(tarn_file_format(file), "pth");
    tarn_file_free(file);
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_come_back_as_they_were),
        cmocka_unit_test(text_of_any_length_comes_back),
        cmocka_unit_test(text_is_read_as_it_is_and_as_an_array),
        cmocka_unit_test(what_is_no_text_is_left_out),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_numpy_has_not_is_refused),
        cmocka_unit_test(headers_are_those_of_numpy),
        cmocka_unit_test(entries_are_stored_or_deflated_small_or_large),
        cmocka_unit_test(every_change_is_found_or_means_nothing),
        cmocka_unit_test(entries_are_what_the_directory_says),
        cmocka_unit_test(entries_beyond_those_claimed_are_refused),
        cmocka_unit_test(an_archive_may_have_many_entries),
        cmocka_unit_test(an_archive_that_does_not_fit_is_not_there),
        cmocka_unit_test(a_bomb_is_refused),
        cmocka_unit_test(programs_see_the_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
