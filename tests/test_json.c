/* SPDX-License-Identifier: MIT */
/* test_json.c - what is written is what is read, what is not JSON is refused, and a text is
 * whole or not there whichever allocation fails. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/json_read.h"
#include "file/json_write.h"
#include "support/count_calls.h"
#include "support/testing.h"

/* ---- Reading ------------------------------------------------------------ */

/* From memory of exactly its size: sanitizers see a read behind it. */
static tarn_status parse(struct tn_json *json, const char *text, size_t length, tarn_error *err)
{
    char *const copy = take(length, 1);

    memcpy(copy, text, length);
    const tarn_status status = tn_json_parse(json, copy, length, err);

    free(copy);
    return status;
}

static void check_refused(const char *text, size_t length, const char *says)
{
    struct tn_json json;
    tarn_error err = {0};

    if (parse(&json, text, length, &err) != TARN_EFORMAT || !strstr(err.text, says))
        fail_msg("%.80s: '%s' does not say '%s'", text, err.text, says);
    assert_null(json.root);
}

static void what_json_does_not_allow_is_refused(void **state)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"", "byte 0"},
        {"  ", "byte 2"},
        {"nul", "not a JSON value"},
        {"nullx", "after the end"},
        {"True", "not a JSON value"},
        {"[1,]", "not a JSON value"},
        {"[,1]", "not a JSON value"},
        {"[1 2]", "']' expected"},
        {"[1", "']' expected"},
        {"{", "a key in quotes"},
        {"{\"a\"}", "':' expected"},
        {"{\"a\":}", "not a JSON value"},
        {"{\"a\":1,}", "a key in quotes"},
        {"{a:1}", "a key in quotes"},
        {"{\"a\":1 \"b\":2}", "'}' expected"},
        {"{\"a\":1]", "'}' expected"},
        {"{\"a\":1}}", "after the end"},
        {"{\"a\":1,\"\\u0061\":2}", "duplicate"},
        {"[{\"a\":1,\"b\":{},\"a\":3}]", "duplicate"},
        {"01", "not a JSON value"},
        {"-", "not a JSON value"},
        {"+1", "not a JSON value"},
        {".5", "not a JSON value"},
        {"1.", "after its point"},
        {"1e", "exponent"},
        {"1e+", "exponent"},
        {"1e999", "too large"},
        {"9223372036854775808", "too large"},
        {"-9223372036854775809", "too large"},
        {"0.00000000000000000000000000000000000000000000000000000000000000001", "too long"},
        {"NaN", "not a JSON value"},
        {"Infinity", "not a JSON value"},
        {"\"a", "end of a text"},
        {"\"\\", "escape"},
        {"\"\\x\"", "escape"},
        {"\"\\u12\"", "hexadecimal"},
        {"\"\\u12G4\"", "hexadecimal"},
        {"\"\\u0000\"", "zero byte"},
        {"\"\\ud800\"", "surrogate"},
        {"\"\\ud800\\n\"", "surrogate"},
        {"\"\\ud800\\ud800\"", "surrogate"},
        {"\"\\udc00\"", "surrogate"},
        {"\"a\tb\"", "control"},
        {"\"\xff\"", "not UTF-8"},
        {"\"\xc3\"", "not UTF-8"},
        {"'a'", "not a JSON value"},
        {"/* */1", "not a JSON value"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_refused(cases[i].text, strlen(cases[i].text), cases[i].says);
    check_refused("\"a\0b\"", 5, "control");
    check_refused("1\0", 2, "after the end");
    check_refused("\0", 1, "not a JSON value");
}

static void texts_are_read_as_they_are_meant(void **state)
{
    static const char text[] =
        " [\"\\\"\\\\\\/\\b\\f\\n\\r\\t\", \"\\u00e9\\u20ac\\ud83d\\ude00\","
        "\"\xc3\xa9\", \"\", \"\\u0041B\"]\n";
    static const char *const want[] = {
        "\"\\/\b\f\n\r\t", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9", "", "AB"};
    struct tn_json json;
    tarn_error err;

    (void)state;
    check_ok(parse(&json, text, strlen(text), &err), &err);
    assert_int_equal(json.root->kind, TN_JSON_ARRAY);
    assert_int_equal(json.root->size, 5);
    const struct tn_json_value *at = json.root + 1;

    for (size_t i = 0; i < 5; i++, at = tn_json_next(at)) {
        assert_int_equal(at->kind, TN_JSON_TEXT);
        assert_int_equal(at->size, strlen(want[i]));
        assert_string_equal(at->text, want[i]);
    }
    tn_json_free(&json);
    tn_json_free(&json);
}

static void values_are_found_whatever_lies_between(void **state)
{
    static const char text[] = "{\"a\":[[],{\"c\":7},[1,[2]]],\"b\":{\"a\":-1.5e2,\"d\":{}},"
                               "\"c\":-9223372036854775808,\"e\":null,\"f\":true,\"g\":\"x\"}";
    struct tn_json json;
    double number;
    int64_t whole;
    tarn_error err;

    (void)state;
    check_ok(parse(&json, text, strlen(text), &err), &err);
    const struct tn_json_value *const root = json.root, *const b = tn_json_get(root, "b");

    assert_int_equal(root->size, 6);
    assert_ptr_equal(tn_json_next(root), root + json.count);
    assert_true(tn_json_number(tn_json_get(b, "a"), &number) && number == -150.0);
    assert_false(tn_json_whole(tn_json_get(b, "a"), &whole));
    assert_int_equal(tn_json_get(b, "d")->size, 0);
    assert_true(tn_json_whole(tn_json_get(root, "c"), &whole) && whole == INT64_MIN);
    assert_true(tn_json_number(tn_json_get(root, "c"), &number) && number == -0x1p63);
    assert_int_equal(tn_json_get(root, "e")->kind, TN_JSON_NULL);
    assert_int_equal(tn_json_get(root, "f")->kind, TN_JSON_TRUE);
    assert_string_equal(tn_json_text(root, "g"), "x");
    assert_null(tn_json_text(root, "c"));
    assert_null(tn_json_get(root, "d"));
    assert_null(tn_json_get(tn_json_get(root, "a"), "c")); /* not an object */
    assert_null(tn_json_get(NULL, "c"));
    assert_false(tn_json_whole(NULL, &whole) || tn_json_number(NULL, &number));
    assert_false(tn_json_whole(tn_json_get(root, "e"), &whole));
    tn_json_free(&json);
}

static void levels_are_limited(void **state)
{
    char text[2 * TN_JSON_DEPTH + 4];
    struct tn_json json;
    tarn_error err;

    (void)state;
    for (size_t levels = TN_JSON_DEPTH; levels <= TN_JSON_DEPTH + 1; levels++) {
        memset(text, '[', levels);
        memset(text + levels, ']', levels);
        if (levels > TN_JSON_DEPTH) {
            check_refused(text, 2 * levels, "depth");
            continue;
        }
        check_ok(parse(&json, text, 2 * levels, &err), &err);
        assert_int_equal(json.count, levels);
        tn_json_free(&json);
    }
}

static void every_truncation_is_refused(void **state)
{
    static const char text[] = "{\"a\":[1,-2.5e3,true,null],\"\\u00e9\":{\"b\":\"c\"}}";

    (void)state;
    for (size_t n = 0; n < strlen(text); n++)
        check_refused(text, n, "byte");
}

/* ---- Writing ------------------------------------------------------------ */

static void put_example(struct tn_json_writer *w)
{
    tn_json_open(w, NULL, '{');
    tn_json_put_text(w, "text \"\x01\"", "a\\b\n\t\r\b\f/\xc3\xa9\x7f");
    tn_json_open(w, "numbers", '[');
    tn_json_put_whole(w, NULL, INT64_MIN);
    tn_json_put_number(w, NULL, 0.1, 0);
    tn_json_put_number(w, NULL, 1.0 / 3.0, 9);
    tn_json_put_number(w, NULL, -2.0, 9);
    tn_json_put_number(w, NULL, 1e-7, 9);
    tn_json_put_number(w, NULL, 1e20, 0);
    tn_json_put_number(w, NULL, (double)INFINITY, 9);
    tn_json_close(w, ']');
    tn_json_open(w, "empty", '{');
    tn_json_close(w, '}');
    tn_json_open(w, "flags", '[');
    tn_json_put_bool(w, NULL, true);
    tn_json_put_bool(w, NULL, false);
    tn_json_close(w, ']');
    tn_json_close(w, '}');
}

static const char example[] =
    "{\"text \\\"\\u0001\\\"\":\"a\\\\b\\n\\t\\r\\b\\f/\xc3\xa9\x7f\",\"numbers\":["
    "-9223372036854775808,0.1,0.333333333,-2.0,1e-7,1e20,null],\"empty\":{},"
    "\"flags\":[true,false]}";

static void the_text_is_this(void **state)
{
    struct tn_json_writer w = {0};
    struct tn_json json;
    char *text = NULL;
    tarn_error err;

    (void)state;
    put_example(&w);
    check_ok(tn_json_writer_end(&w, &text, "it", &err), &err);
    assert_string_equal(text, example);
    check_ok(parse(&json, text, strlen(text), &err), &err);
    assert_string_equal(tn_json_text(json.root, "text \"\x01\""),
                        "a\\b\n\t\r\b\f/\xc3\xa9\x7f");
    tn_json_free(&json);
    free(text);
}

static void numbers_come_back_exactly(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 5);
    for (size_t i = 0; i < 20000; i++) {
        const uint64_t bits = tn_random_bits(&random);
        struct tn_json_writer w = {0};
        struct tn_json json;
        double number, again;
        char *text = NULL;

        memcpy(&number, &bits, sizeof number);
        if (i < 4)
            number = ((double[]){DBL_MAX, DBL_MIN, DBL_TRUE_MIN, -0.0})[i];
        if (!isfinite(number))
            continue;
        tn_json_put_number(&w, NULL, number, 0);
        check_ok(tn_json_writer_end(&w, &text, "it", NULL), NULL);
        check_ok(parse(&json, text, strlen(text), NULL), NULL);
        assert_true(tn_json_number(json.root, &again));
        assert_memory_equal(&again, &number, sizeof number);
        tn_json_free(&json);
        free(text);
    }
}

static void text_that_is_not_utf8_is_refused(void **state)
{
    struct tn_json_writer w = {0};
    char *text = NULL;
    tarn_error err = {0};

    (void)state;
    tn_json_open(&w, NULL, '{');
    tn_json_put_whole(&w, "a\xff", 1);
    tn_json_close(&w, '}');
    assert_int_equal(tn_json_writer_end(&w, &text, "the note", &err), TARN_EINVAL);
    assert_null(text);
    assert_string_equal(err.text, "the note: contains text that is not UTF-8");
    tn_text_free(&w.out);
}

/* ---- Without memory ----------------------------------------------------- */

#ifdef COUNTS_CALLS

/* A text is whole, or TARN_ENOMEM says that it is not. */
static void whichever_allocation_fails(void **state)
{
    (void)state;
    for (size_t length = 1; length < 100; length += 98)
        for (size_t n = 0, failures = 1; failures > 0; n++) {
            struct tn_json_writer w = {0};
            struct tn_json json = {0};
            char *text = NULL;

            refuse_calls(n, length);
            put_example(&w);
            const tarn_status wrote = tn_json_writer_end(&w, &text, "it", NULL);

            refuse_calls(n, length);
            const tarn_status read = tn_json_parse(&json, example, strlen(example), NULL);

            refuse_no_calls();
            failures = (size_t)(wrote != TARN_OK) + (size_t)(read != TARN_OK);
            assert_true(wrote == TARN_OK ? strcmp(text, example) == 0
                                         : wrote == TARN_ENOMEM && !text);
            assert_true(read == TARN_OK ? json.root->size == 4
                                        : read == TARN_ENOMEM && !json.root);
            assert_true(n > 0 || failures == 2);
            tn_json_free(&json);
            free(text);
        }
}

#else

static void whichever_allocation_fails(void **state)
{
    (void)state;
    print_message("skipped: allocations are refused with glibc and without sanitizers\n");
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_json_does_not_allow_is_refused),
        cmocka_unit_test(texts_are_read_as_they_are_meant),
        cmocka_unit_test(values_are_found_whatever_lies_between),
        cmocka_unit_test(levels_are_limited),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(the_text_is_this),
        cmocka_unit_test(numbers_come_back_exactly),
        cmocka_unit_test(text_that_is_not_utf8_is_refused),
        cmocka_unit_test(whichever_allocation_fails),
    };

    return cmocka_run_group_tests_name("JSON", tests, NULL, NULL);
}
