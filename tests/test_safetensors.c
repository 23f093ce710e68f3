/* SPDX-License-Identifier: MIT */
/* test_safetensors.c - what is written is what is read. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "support/folder.h"

static void same_tensor(const struct tn_safetensor *a, const struct tn_safetensor *b)
{
    size_t bytes;

    assert_string_equal(a->name, b->name);
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (size_t d = 0; d < a->rank; d++)
        assert_int_equal(a->shape[d], b->shape[d]);
    assert_true(tn_safetensor_bytes(&bytes, a));
    assert_int_equal(b->bytes, bytes);
    if (bytes > 0)
        assert_memory_equal(a->data, b->data, bytes);
}

static void every_type_comes_back(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.safetensors");
    struct tn_safetensor tensors[TN_DTYPE_COUNT];
    char names[TN_DTYPE_COUNT][16];
    unsigned char data[15 * 8];
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37 + 1);
    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        snprintf(names[i], sizeof names[i], "t%d", i);
        tensors[i] = (struct tn_safetensor){.name = names[i],
                                            .dtype = (enum tn_dtype)i,
                                            .rank = 2,
                                            .shape = {3, 5},
                                            .data = data};
    }
    check_ok(tn_safetensors_write(path, tensors, TN_DTYPE_COUNT, NULL, 0, &err), &err);
    check_ok(tn_safetensors_read(&s, path, &err), &err);
    assert_int_equal(s.count, TN_DTYPE_COUNT);
    for (int i = 0; i < TN_DTYPE_COUNT; i++) {
        const struct tn_safetensor *const found = tn_safetensors_find(&s, names[i]);

        assert_non_null(found);
        same_tensor(&tensors[i], found);
        assert_int_equal((uintptr_t)found->data % tn_dtype_size((enum tn_dtype)i), 0);
    }
    assert_int_equal((uintptr_t)s.tensors[0].data % 64, 0);
    assert_null(tn_safetensors_find(&s, "t10"));
    assert_null(tn_safetensors_find(&s, ""));
    tn_safetensors_free(&s);
    tn_safetensors_free(&s);
    assert_null(tn_safetensors_find(&s, "t1"));
    folder_close(&folder);
}

static void the_bytes_are_these(void **state)
{
    static const char header[] =
        "{\"__metadata__\":{\"format\":\"pt\",\"tarn_crc32\":\"{\\\"b\\\":"
        "\\\"c3872656\\\",\\\"a\\\":\\\"9e6bffd3\\\",\\\"__metadata__\\\":\\\"68e5a7ae\\\"}\"},"
        "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}";
    const size_t length = 256 - 8; /* of 8 + 221 bytes, the next multiple of 64 */
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    const float numbers[2] = {1.0f, -2.0f};
    const struct tn_safetensor tensors[2] = {
        {.name = "a", .dtype = TN_DTYPE_U8, .data = "!"},
        {.name = "b", .dtype = TN_DTYPE_F32, .rank = 1, .shape = {2}, .data = numbers},
    };
    const struct tn_safetensors_entry entry = {"format", "pt"};
    unsigned char want[256 + 9] = {(unsigned char)length};

    (void)state;
    memset(want + 8, ' ', length);
    memcpy(want + 8, header, sizeof header - 1);
    memcpy(want + 256, "\0\0\x80\x3f\0\0\0\xc0!", 9);
    for (int i = 0; i < 2; i++) {
        check_ok(tn_safetensors_write(path, tensors, 2, &entry, 1, NULL), NULL);
        file_check(path, want, sizeof want);
    }
    folder_close(&folder);
}

/* A file with two tensors and a pair of metadata whose bytes are changed; NULL: it is read. */
static void check_damage(const char *path, const struct tn_bytes *whole, size_t at,
                         const char *from, const char *to, const char *says)
{
    unsigned char *const bytes = take(whole->size, 1);
    struct tn_safetensors s;
    tarn_error err = {0};

    memcpy(bytes, whole->data, whole->size);
    for (; from && memcmp(bytes + at, from, strlen(from)) != 0; at++)
        assert_true(at < whole->size);
    memcpy(bytes + at, to, strlen(to));
    file_put(path, bytes, whole->size);
    const tarn_status status = tn_safetensors_read(&s, path, &err);

    assert_int_equal(status, says ? TARN_EFORMAT : TARN_OK);
    if (says && !strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    tn_safetensors_free(&s);
    free(bytes);
}

static void checksums_are_verified(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    const float numbers[2] = {1.0f, -2.0f};
    const struct tn_safetensor tensors[2] = {
        {.name = "first", .dtype = TN_DTYPE_F32, .rank = 1, .shape = {2}, .data = numbers},
        {.name = "empty", .dtype = TN_DTYPE_U8, .rank = 1, .shape = {0}, .data = ""},
    };
    const struct tn_safetensors_entry entries[] = {{"z", "pt"}, {"a", "yes"}};
    struct tn_bytes whole;

    (void)state;
    check_ok(tn_safetensors_write(path, tensors, 2, entries, 2, NULL), NULL);
    check_ok(tn_bytes_read(&whole, path, SIZE_MAX, NULL), NULL);
    check_damage(path, &whole, 0, "\"tarn_crc32\"", "\"xarn_crc32\"", NULL);
    for (size_t back = 1; back <= sizeof numbers; back++)
        check_damage(path, &whole, whole.size - back, NULL, "\x55",
                     "is damaged: tensor 'first' has the CRC-32 ");
    check_damage(path, &whole, 0, "\"yes\"", "\"yet\"", "the metadata has the CRC-32 ");
    check_damage(path, &whole, 0, "\"z\":\"pt\",\"a\":\"yes\"", "\"a\":\"yes\",\"z\":\"pt\"",
                 NULL);
    check_damage(path, &whole, 0, "empty\":{", "impty\":{", "but no such tensor");
    check_damage(path, &whole, 0, "{\\\"first\\\":\\\"", "[\\\"first\\\":\\\"", "tarn_crc32");
    check_damage(path, &whole, 0, "\\\"empty\\\":\\\"00000000\\\",", "                       ",
                 "is not a checksum for each of 2 tensors");
    tn_bytes_free(&whole);
    folder_close(&folder);
}

static void metadata_comes_back(void **state)
{
    static const struct tn_safetensors_entry entries[] = {
        {"tarn", "{\"layers\": 4, \"text\": \"\\\"\"}"},
        {"", "empty key"},
        {"empty value", ""},
        {"\xc3\xa9", "line\nline\ttab"},
    };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    check_ok(tn_safetensors_write(path, NULL, 0, entries, 4, &err), &err);
    check_ok(tn_safetensors_read(&s, path, &err), &err);
    assert_int_equal(s.count, 0);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(tn_safetensors_metadata(&s, entries[i].key), entries[i].value);
    assert_null(tn_safetensors_metadata(&s, "other"));
    assert_null(tn_safetensors_find(&s, "__metadata__"));
    tn_safetensors_free(&s);
    check_ok(tn_safetensors_write(path, NULL, 0, NULL, 0, &err), &err);
    check_ok(tn_safetensors_read(&s, path, &err), &err);
    assert_null(tn_safetensors_metadata(&s, "tarn"));
    tn_safetensors_free(&s);
    folder_close(&folder);
}

static void every_rank_and_empty_tensors_come_back(void **state)
{
    static const size_t shape[TN_SAFETENSOR_RANK] = {2, 1, 3, 1, 2, 1, 1, 2};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_safetensor tensors[2 * (TN_SAFETENSOR_RANK + 1)];
    char names[2 * (TN_SAFETENSOR_RANK + 1)][8];
    const float data[24] = {0.5f, 1.5f};
    const size_t n = sizeof tensors / sizeof tensors[0];
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "%zu", i);
        tensors[i] = (struct tn_safetensor){.name = names[i], .rank = i / 2, .data = data};
        memcpy(tensors[i].shape, shape, sizeof shape);
        if (i % 2 && i / 2 > 0) {
            tensors[i].shape[i / 2 - 1] = 0;
            tensors[i].data = NULL;
        }
    }
    check_ok(tn_safetensors_write(path, tensors, n, NULL, 0, &err), &err);
    check_ok(tn_safetensors_read(&s, path, &err), &err);
    assert_int_equal(s.count, n);
    for (size_t i = 0; i < n; i++)
        same_tensor(&tensors[i], tn_safetensors_find(&s, names[i]));
    tn_safetensors_free(&s);
    folder_close(&folder);
}

/* ---- Numbers ------------------------------------------------------------ */

static float one_float(enum tn_dtype dtype, const void *data)
{
    const struct tn_safetensor t = {.dtype = dtype, .data = data};
    float out = -77.0f;

    assert_true(tn_safetensor_floats(&t, &out));
    return out;
}

static void halves_are_what_their_bits_say(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint16_t half = (uint16_t)bits;
        const int exponent = (int)(bits >> 10 & 31), fraction = (int)(bits & 1023);
        const float sign = bits & 0x8000 ? -1.0f : 1.0f, got = one_float(TN_DTYPE_F16, &half);
        const float want = exponent == 0 ? ldexpf((float)fraction, -24)
                                         : ldexpf((float)(1024 + fraction), exponent - 25);

        assert_int_equal(!!signbit(got), sign < 0.0f);
        if (exponent < 31)
            assert_true(got == sign * want);
        else
            assert_true(fraction ? isnan(got) : isinf(got));
    }
}

static void brain_floats_are_the_upper_half_of_floats(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint16_t brain = (uint16_t)bits;
        const uint32_t whole = bits << 16;
        const float got = one_float(TN_DTYPE_BF16, &brain);
        float want;

        memcpy(&want, &whole, sizeof want);
        assert_true(isnan(want) ? isnan(got) : memcmp(&got, &want, sizeof got) == 0);
    }
}

static void floats_and_doubles_are_read_wherever_they_lie(void **state)
{
    static const double values[] = {0.0, -1.5, 3.25e10, 1e-40, 1e300, -1e300};
    unsigned char place[9];

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        const float narrow = (float)values[i];

        memcpy(place + 1, &values[i], 8);
        assert_true(one_float(TN_DTYPE_F64, place + 1) == narrow);
        memcpy(place + 1, &narrow, 4);
        assert_true(one_float(TN_DTYPE_F32, place + 1) == narrow);
    }
}

static void whole_numbers_are_no_floats(void **state)
{
    const int64_t number = 1;

    (void)state;
    for (int i = TN_DTYPE_I64; i < TN_DTYPE_COUNT; i++) {
        const struct tn_safetensor t = {.dtype = (enum tn_dtype)i, .data = &number};
        float out = -77.0f;

        assert_false(tn_safetensor_floats(&t, &out));
        assert_true(out == -77.0f);
    }
}

/* ---- What cannot be written --------------------------------------------- */

static void check_not_written(const struct tn_safetensor *tensors, size_t n,
                              const struct tn_safetensors_entry *metadata, size_t entries,
                              const char *says)
{
    struct folder folder = folder_open();
    tarn_error err = {0};

    assert_int_equal(
        tn_safetensors_write(folder_file(&folder, "a"), tensors, n, metadata, entries, &err),
        TARN_EINVAL);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say %s", err.text, says);
    assert_int_equal(folder_count(&folder), 0);
    folder_close(&folder);
}

static void what_a_file_cannot_hold_is_not_written(void **state)
{
    const float x[4] = {0};
    char lengthy[TN_SAFETENSOR_NAME + 2];
    const struct tn_safetensor twice[] = {{.name = "a", .data = x}, {.name = "a", .data = x}};
    const struct tn_safetensor bad[] = {
        {.name = "", .data = x},
        {.name = NULL, .data = x},
        {.name = "__metadata__", .data = x},
        {.name = lengthy, .data = x},
        {.name = "\xff\xfe", .data = x},
        {.name = "a", .data = NULL},
        {.name = "a", .data = x, .dtype = TN_DTYPE_COUNT},
        {.name = "a", .data = x, .rank = TN_SAFETENSOR_RANK + 1},
        {.name = "a", .data = x, .rank = 2, .shape = {SIZE_MAX, 2}},
        {.name = "a", .data = x, .rank = 1, .shape = {SIZE_MAX / 2}},
    };
    const struct tn_safetensor huge[] = {
        {.name = "a", .data = x, .dtype = TN_DTYPE_U8, .rank = 1, .shape = {SIZE_MAX / 2}},
        {.name = "b", .data = x, .dtype = TN_DTYPE_U8, .rank = 1, .shape = {SIZE_MAX / 2}},
    };
    const struct tn_safetensors_entry same[] = {{"k", "1"}, {"k", "2"}}, broken = {"k", "\xff"};

    (void)state;
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        check_not_written(&bad[i], 1, NULL, 0, "tensor '");
    check_not_written(twice, 2, NULL, 0, "duplicate keys");
    check_not_written(huge, 2, NULL, 0, "too large");
    check_not_written(NULL, 0, same, 2, "duplicate keys");
    check_not_written(NULL, 0, &broken, 1, "UTF-8");
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_safetensors_write("/nowhere/at/all", NULL, 0, NULL, 0, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "/nowhere/at/all"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_comes_back),
        cmocka_unit_test(the_bytes_are_these),
        cmocka_unit_test(checksums_are_verified),
        cmocka_unit_test(metadata_comes_back),
        cmocka_unit_test(every_rank_and_empty_tensors_come_back),
        cmocka_unit_test(halves_are_what_their_bits_say),
        cmocka_unit_test(brain_floats_are_the_upper_half_of_floats),
        cmocka_unit_test(floats_and_doubles_are_read_wherever_they_lie),
        cmocka_unit_test(whole_numbers_are_no_floats),
        cmocka_unit_test(what_a_file_cannot_hold_is_not_written),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests_name("safetensors", tests, NULL, NULL);
}
