/* SPDX-License-Identifier: MIT */
/* test_safetensors_hostile.c - files that are cut, flipped or lie are refused with a sentence,
 * and whatever is accepted lies within the file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/safetensors.h"
#include "support/folder.h"

static const char file_name[] = "some/file.safetensors";

/* ---- Reading from memory ------------------------------------------------ */

/* In memory of exactly this size, so that a sanitizer sees a read behind its end. */
static tarn_status parse(struct tn_safetensors *s, const void *data, size_t size,
                         tarn_error *err)
{
    struct tn_bytes bytes;

    check_ok(tn_bytes_allocate(&bytes, size, NULL), NULL);
    if (size > 0)
        memcpy(bytes.data, data, size);
    const tarn_status status = tn_safetensors_parse(s, &bytes, file_name, err);

    assert_true((bytes.data == NULL) == (status == TARN_OK));
    tn_bytes_free(&bytes);
    return status;
}

static void check_sentence(const struct tn_safetensors *s, tarn_status status,
                           const tarn_error *err)
{
    assert_int_equal(status, TARN_EFORMAT);
    assert_int_equal(err->status, TARN_EFORMAT);
    assert_non_null(memchr(err->text, '\0', sizeof err->text));
    assert_non_null(strstr(err->text, file_name));
    assert_null(s->bytes.data);
    assert_int_equal(s->count, 0);
}

/* Every byte of every tensor is read. */
static void check_within(const struct tn_safetensors *s)
{
    size_t sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct tn_safetensor *const t = &s->tensors[i];
        const unsigned char *const data = t->data;
        size_t bytes;

        assert_true(tn_safetensor_bytes(&bytes, t));
        assert_int_equal(bytes, t->bytes);
        assert_true(data >= s->bytes.data && data + bytes <= s->bytes.data + s->bytes.size);
        for (size_t b = 0; b < bytes; b++)
            sum += data[b];
        assert_ptr_equal(tn_safetensors_find(s, t->name), t);
    }
    assert_true(sum < SIZE_MAX);
}

/* A header and so many bytes of data. */
static struct block_of_bytes {
    unsigned char *data;
    size_t size;
} assemble(const char *header, size_t data_bytes)
{
    const size_t length = strlen(header);
    struct block_of_bytes file = {take(8 + length + data_bytes, 1), 8 + length + data_bytes};

    for (size_t i = 0; i < 8; i++)
        file.data[i] = (unsigned char)((uint64_t)length >> (8 * i) & 255);
    memcpy(file.data + 8, header, length);
    return file;
}

static void check_header_refused(const char *header, size_t data_bytes, const char *says)
{
    const struct block_of_bytes file = assemble(header, data_bytes);
    struct tn_safetensors s;
    tarn_error err = {0};
    const tarn_status status = parse(&s, file.data, file.size, &err);

    if (status == TARN_OK)
        fail_msg("accepted: %.200s", header);
    check_sentence(&s, status, &err);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    assert_int_equal(parse(&s, file.data, file.size, NULL), TARN_EFORMAT);
    free(file.data);
}

static void check_header_accepted(const char *header, size_t data_bytes)
{
    const struct block_of_bytes file = assemble(header, data_bytes);
    struct tn_safetensors s;
    tarn_error err = {0};

    check_ok(parse(&s, file.data, file.size, &err), &err);
    check_within(&s);
    tn_safetensors_free(&s);
    free(file.data);
}

/* ---- Cut and flipped ---------------------------------------------------- */

static struct tn_bytes small_file(void)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    const float numbers[6] = {1, 2, 3, 4, 5, 6};
    const struct tn_safetensor tensors[] = {
        {.name = "layers.0.weight", .rank = 2, .shape = {2, 3}, .data = numbers},
        {.name = "empty", .rank = 1, .shape = {0}},
        {.name = "mask", .dtype = TN_DTYPE_BOOL, .rank = 1, .shape = {3}, .data = "\1\0\1"},
    };
    const struct tn_safetensors_entry entry = {"tarn", "{}"};
    struct tn_bytes bytes;

    check_ok(tn_safetensors_write(path, tensors, 3, &entry, 1, NULL), NULL);
    check_ok(tn_bytes_read(&bytes, path, 10000, NULL), NULL);
    folder_close(&folder);
    return bytes;
}

static void every_truncation_is_refused(void **state)
{
    struct tn_bytes file = small_file();

    (void)state;
    for (size_t size = 0; size < file.size; size++) {
        struct tn_safetensors s;
        tarn_error err = {0};
        const tarn_status status = parse(&s, file.data, size, &err);

        check_sentence(&s, status, &err);
    }
    tn_bytes_free(&file);
}

static void bytes_behind_the_end_are_refused(void **state)
{
    struct tn_bytes file = small_file();
    unsigned char *const longer = take(file.size + 1, 1);
    struct tn_safetensors s;
    tarn_error err = {0};

    (void)state;
    memcpy(longer, file.data, file.size);
    const tarn_status status = parse(&s, longer, file.size + 1, &err);

    check_sentence(&s, status, &err);
    assert_non_null(strstr(err.text, "end"));
    free(longer);
    tn_bytes_free(&file);
}

static void every_flipped_byte_is_refused_or_harmless(void **state)
{
    struct tn_bytes file = small_file();
    size_t refused = 0;

    (void)state;
    for (size_t at = 0; at < file.size; at++)
        for (unsigned by = 1; by < 256; by++) {
            struct tn_safetensors s;
            tarn_error err = {0};

            file.data[at] ^= (unsigned char)by;
            const tarn_status status = parse(&s, file.data, file.size, &err);

            file.data[at] ^= (unsigned char)by;
            if (status == TARN_OK)
                check_within(&s);
            else
                check_sentence(&s, status, &err);
            refused += status != TARN_OK;
            tn_safetensors_free(&s);
        }
    assert_true(refused > 8 * 255);
    tn_bytes_free(&file);
}

/* ---- Lies --------------------------------------------------------------- */

#define T(dtype, shape, offsets)                                                               \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void plain_headers_are_accepted(void **state)
{
    (void)state;
    check_header_accepted("{}", 0);
    check_header_accepted("{}       \n\t ", 0);
    check_header_accepted("{\"__metadata__\":{}}", 0);
    check_header_accepted("{\"a\":" T("F32", "[]", "[0,4]") "}", 4);
    check_header_accepted(
        "{\"b\":" T("U8", "[3]", "[4,7]") ",\"a\":" T("F32", "[1]", "[0,4]") "}", 7);
    check_header_accepted("{\"a\":" T("I64", "[0,7]", "[0,0]") "}", 0);
    check_header_accepted(
        "{\"e\":" T("I8", "[0]", "[2,2]") ",\"a\":" T("I8", "[2]", "[0,2]") "}", 2);
}

static void offsets_that_lie_are_refused(void **state)
{
    static const struct {
        const char *header;
        size_t bytes;
        const char *says;
    } cases[] = {
        /* overlap, gap before, between and behind */
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[2,6]") "}", 6, "'b'"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[4]", "[0,4]") "}", 4, "'b'"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") ",\"b\":" T("U8", "[2]", "[1,3]") "}", 4, "'b'"},
        {"{\"a\":" T("U8", "[4]", "[1,5]") "}", 5, "begins at 1; expected 0"},
        {"{\"a\":" T("U8", "[2]", "[0,2]") ",\"b\":" T("U8", "[2]", "[3,5]") "}", 5, "'b'"},
        {"{\"a\":" T("U8", "[4]", "[0,4]") "}", 5, "expected 5"},
        {"{}", 1, "expected 1"},
        {"{\"e\":" T("U8", "[0]", "[1,1]") ",\"a\":" T("U8", "[2]", "[0,2]") "}", 2, "'e'"},
        /* out of range, out of order, not whole */
        {"{\"a\":" T("U8", "[4]", "[0,4]") "}", 3, "up to 3"},
        {"{\"a\":" T("U8", "[4]", "[4,0]") "}", 4, "[4, 0]"},
        {"{\"a\":" T("U8", "[4]", "[-4,0]") "}", 4, "[-4, 0]"},
        {"{\"a\":" T("U8", "[4]", "[0.0,4]") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "[0,4.0]") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "[0]") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "[0,4,4]") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "{}") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "[0,9223372036854775807]") "}", 4, "'a'"},
        {"{\"a\":" T("U8", "[4]", "[0,99999999999999999999]") "}", 4, "header, byte"},
        {"{\"a\":" T("U8", "[0,-1]", "[0,0]") "}", 0, "whole numbers"},
        {"{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "8 dimensions"},
        /* another size than dtype and shape have */
        {"{\"a\":" T("F32", "[4]", "[0,15]") "}", 15, "need 16"},
        {"{\"a\":" T("F64", "[2]", "[0,8]") "}", 8, "need 16"},
        {"{\"a\":" T("U8", "[]", "[0,0]") "}", 0, "need 1"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        check_header_refused(cases[c].header, cases[c].bytes, cases[c].says);
}

static void shapes_that_lie_are_refused(void **state)
{
    static const char *const shapes[] = {
        "[1,1,1,1,1,1,1,1,1]",
        "[-4]",
        "[4.0]",
        "[\"4\"]",
        "[null]",
        "4",
        "{}",
        "[9223372036854775807]",
        "[9223372036854775807,2]",
        "[4294967296,4294967296]",
        "[4294967296,4294967296,0]",
        "[3037000500,3037000500,4]",
        "[4611686018427387905]", /* times 4 is 4, if it wraps */
    };

    (void)state;
    for (size_t c = 0; c < sizeof shapes / sizeof shapes[0]; c++) {
        char header[200];

        snprintf(header, sizeof header, "{\"a\":" T("F32", "%s", "[0,4]") "}", shapes[c]);
        check_header_refused(header, 4, "tensor 'a'");
    }
}

static void headers_that_are_no_tensors_are_refused(void **state)
{
    static const struct {
        const char *header, *says;
    } cases[] = {
        {"", "no JSON header"},
        {" {}", "no JSON header"},
        {"[]", "no JSON header"},
        {"null", "no JSON header"},
        {"{", "header, byte"},
        {"{}{}", "header, byte"},
        {"{}x", "header, byte"},
        {"{,}", "header, byte"},
        {"{'a':1}", "header, byte"},
        {"{\"a\":NaN}", "header, byte"},
        {"{\"a\\u0000b\":1}", "header, byte"},
        {"{\"\xff\":1}", "header, byte"},
        {"{\"a\":1}", "tensor 'a'"},
        {"{\"a\":[]}", "tensor 'a'"},
        {"{\"a\":{}}", "tensor 'a'"},
        {"{\"\":" T("U8", "[0]", "[0,0]") "}", "name"},
        {"{\"a\":" T("F33", "[0]", "[0,0]") "}", "'F33'"},
        {"{\"a\":" T("f32", "[0]", "[0,0]") "}", "'f32'"},
        {"{\"a\":" T("", "[0]", "[0,0]") "}", "dtype"},
        {"{\"a\":{\"dtype\":7,\"shape\":[0],\"data_offsets\":[0,0]}}", "tensor 'a'"},
        {"{\"a\":{\"shape\":[0],\"data_offsets\":[0,0]}}", "dtype"},
        {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", "shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", "data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"more\":1}}", "more"},
        {"{\"a\":" T("U8", "[0]", "[0,0]") ",\"a\":" T("U8", "[0]", "[0,0]") "}", "duplicate"},
        {"{\"a\":" T("U8", "[0]", "[0,0]") ",\"\\u0061\":" T("U8", "[0]", "[0,0]") "}",
         "duplicate"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
         "duplicate"},
        {"{\"__metadata__\":[]}", "__metadata__"},
        {"{\"__metadata__\":{\"k\":1}}", "'k'"},
        {"{\"__metadata__\":{\"k\":{}}}", "'k'"},
        {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", "duplicate"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        check_header_refused(cases[c].header, 0, cases[c].says);
}

static void names_that_are_too_long_are_refused(void **state)
{
    char name[TN_SAFETENSOR_NAME + 2], header[TN_SAFETENSOR_NAME + 100];

    (void)state;
    memset(name, 'n', sizeof name);
    for (size_t length = TN_SAFETENSOR_NAME; length <= TN_SAFETENSOR_NAME + 1; length++) {
        snprintf(header, sizeof header, "{\"%.*s\":" T("U8", "[0]", "[0,0]") "}", (int)length,
                 name);
        if (length > TN_SAFETENSOR_NAME)
            check_header_refused(header, 0, "name");
        else
            check_header_accepted(header, 0);
    }
}

static void lengths_that_lie_are_refused(void **state)
{
    static const uint64_t lengths[] = {
        3, 100, 99999999, 100000000, 100000001, UINT64_C(1) << 63, UINT64_MAX, UINT64_MAX - 7,
    };

    (void)state;
    for (size_t c = 0; c < sizeof lengths / sizeof lengths[0]; c++) {
        const struct block_of_bytes file = assemble("{}", 0);
        struct tn_safetensors s;
        tarn_error err = {0};

        for (size_t i = 0; i < 8; i++)
            file.data[i] = (unsigned char)(lengths[c] >> (8 * i) & 255);
        const tarn_status status = parse(&s, file.data, file.size, &err);

        check_sentence(&s, status, &err);
        assert_non_null(strstr(err.text, lengths[c] > TN_SAFETENSORS_HEADER
                                             ? "not a safetensors, PyTorch or NumPy file"
                                             : "more than the 2 that follow"));
        free(file.data);
    }
}

/* Blanks to the limit are read; one more is refused though the file has them. */
static void a_header_beyond_the_limit_is_refused(void **state)
{
    const size_t most = TN_SAFETENSORS_HEADER;
    struct tn_safetensors s;
    tarn_error err = {0};

    (void)state;
    for (size_t length = most; length <= most + 1; length++) {
        struct tn_bytes bytes;

        check_ok(tn_bytes_allocate(&bytes, 8 + length, NULL), NULL);
        memset(bytes.data + 8, ' ', length);
        memcpy(bytes.data + 8, "{}", 2);
        for (size_t i = 0; i < 8; i++)
            bytes.data[i] = (unsigned char)(length >> (8 * i) & 255);
        const tarn_status status = tn_safetensors_parse(&s, &bytes, file_name, &err);

        if (length > most)
            check_sentence(&s, status, &err);
        else
            check_ok(status, &err);
        tn_bytes_free(&bytes);
        tn_safetensors_free(&s);
    }
}

static void deep_nesting_is_refused(void **state)
{
    enum { DEPTH = 1000000 };
    char *const header = take(2 * DEPTH + 10, 1);

    (void)state;
    memcpy(header, "{\"a\":", 5);
    memset(header + 5, '[', DEPTH);
    memset(header + 5 + DEPTH, ']', DEPTH);
    header[5 + 2 * DEPTH] = '}';
    check_header_refused(header, 0, "depth");
    header[0] = '{';
    for (size_t i = 0; i < DEPTH / 5; i++)
        memcpy(header + 5 * i, "{\"a\":", 5);
    header[DEPTH] = '\0';
    check_header_refused(header, 0, "depth");
    free(header);
}

static void a_file_that_is_missing_or_no_file_is_refused(void **state)
{
    struct folder folder = folder_open();
    struct tn_safetensors s;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_safetensors_read(&s, folder_file(&folder, "a"), &err), TARN_EIO);
    assert_non_null(strstr(err.text, folder_file(&folder, "a")));
    assert_int_equal(tn_safetensors_read(&s, folder.path, &err), TARN_EIO);
    file_put(folder_file(&folder, "a"), "", 0);
    assert_int_equal(tn_safetensors_read(&s, folder_file(&folder, "a"), &err), TARN_EFORMAT);
    assert_null(s.bytes.data);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(bytes_behind_the_end_are_refused),
        cmocka_unit_test(every_flipped_byte_is_refused_or_harmless),
        cmocka_unit_test(plain_headers_are_accepted),
        cmocka_unit_test(offsets_that_lie_are_refused),
        cmocka_unit_test(shapes_that_lie_are_refused),
        cmocka_unit_test(headers_that_are_no_tensors_are_refused),
        cmocka_unit_test(names_that_are_too_long_are_refused),
        cmocka_unit_test(lengths_that_lie_are_refused),
        cmocka_unit_test(a_header_beyond_the_limit_is_refused),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(a_file_that_is_missing_or_no_file_is_refused),
    };

    return cmocka_run_group_tests_name("hostile safetensors", tests, NULL, NULL);
}
