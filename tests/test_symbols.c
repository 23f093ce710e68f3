/* SPDX-License-Identifier: MIT */
/* test_symbols.c - tables of symbols, and transcripts in numbers and back. */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "data/symbols.h"
#include "support/testing.h"

static struct tn_symbols table(const char *const *names, size_t count)
{
    struct tn_symbols symbols;
    tarn_error err;

    check_ok(tn_symbols_of(&symbols, names, count, &err), &err);
    return symbols;
}

static void symbols_are_sorted_behind_the_blank(void **state)
{
    static const char *const names[] = {"ZH", "AA", "B", "AA", "A", "\xc3\xa4", "B"};
    static const char *const expected[] = {"", "A", "AA", "B", "ZH", "\xc3\xa4"};
    struct tn_symbols symbols = table(names, 7);

    (void)state;
    assert_int_equal(symbols.count, 6);
    for (size_t i = 0; i < 6; i++)
        assert_string_equal(symbols.name[i], expected[i]);
    struct tn_symbols again = table((const char *const *)symbols.name, symbols.count);

    assert_int_equal(again.count, 6);
    tn_symbols_free(&again);
    tn_symbols_free(&symbols);
    tn_symbols_free(&symbols);
    symbols = table(NULL, 0);
    assert_int_equal(symbols.count, 1);
    tn_symbols_free(&symbols);
}

static void every_name_is_found_and_no_other(void **state)
{
    static const char *const names[] = {"A", "AA", "AAA", "B", "ab", "b"};
    struct tn_symbols symbols = table(names, 6);
    int32_t number = -1;

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        assert_true(tn_symbols_find(&symbols, &number, names[i], strlen(names[i])));
        assert_string_equal(symbols.name[number], names[i]);
    }
    assert_true(tn_symbols_find(&symbols, &number, "AAAX", 2));
    assert_string_equal(symbols.name[number], "AA");
    assert_false(tn_symbols_find(&symbols, &number, "AAAA", 4));
    assert_false(tn_symbols_find(&symbols, &number, "a", 1));
    assert_false(tn_symbols_find(&symbols, &number, "c", 1));
    assert_false(tn_symbols_find(&symbols, &number, "", 0)); /* the blank is none */
    tn_symbols_free(&symbols);
}

/* The transcript's symbols, with '|' between them. */
static void check_split(const char *transcript, enum tn_symbol_kind kind, const char *expected)
{
    char got[128] = "";
    const char *symbol, *at = transcript;
    size_t length, count = 0;

    for (; tn_symbol_next(&at, &symbol, &length, kind); count++) {
        strncat(got, symbol, length);
        strcat(got, "|");
    }
    assert_string_equal(got, expected);
    assert_int_equal(tn_symbol_count(transcript, kind), count);
}

static void transcripts_split_into_symbols(void **state)
{
    (void)state;
    check_split("AA  B\tCH ", TN_PHONES, "AA|B|CH|");
    check_split("one two", TN_WORDS, "one|two|");
    check_split("", TN_PHONES, "");
    check_split("", TN_CHARACTERS, "");
    check_split("a  b\t c ", TN_CHARACTERS, "a| |b| |c|");
    check_split("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", TN_CHARACTERS,
                "\xc3\xa4|\xe2\x82\xac|\xf0\x9f\x98\x80|");
    assert_int_equal(tn_symbol_count("  a", TN_CHARACTERS), 1);
}

static void transcripts_become_numbers(void **state)
{
    static const char *const names[] = {"A", "B", " "};
    struct tn_symbols symbols = table(names, 3);
    int32_t numbers[8];
    tarn_error err;

    (void)state;
    check_ok(tn_symbols_number(&symbols, numbers, " B A", TN_CHARACTERS, &err), &err);
    assert_int_equal(numbers[0], 3);
    assert_int_equal(numbers[1], 1);
    assert_int_equal(numbers[2], 2);
    assert_int_equal(tn_symbols_number(&symbols, numbers, "A X B", TN_WORDS, &err),
                     TARN_EUNKNOWN);
    assert_string_equal(err.text, "symbol 'X' is not one of the 3 known symbols");
    tn_symbols_free(&symbols);
}

static void only_utf8_is_utf8(void **state)
{
    static const char *const good[] = {"", "abc", "\xc3\xa4", "\xef\xbf\xbd",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",         "a\xc3",        "\xc0\x80",
                                      "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                                      "\xff",         "\xe2\x82"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(tn_is_utf8(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(tn_is_utf8(bad[i]));
}

static void every_character_is_read_as_it_was_written(void **state)
{
    char text[4];

    (void)state;
    for (uint32_t point = 0, read = 1; point < 0x110000; point += 0x1f) {
        const size_t bytes = tn_utf8_write(text, point);
        const bool surrogate = point >= 0xd800 && point < 0xe000;

        assert_int_equal(tn_utf8_read(&read, text, bytes), surrogate ? 0 : bytes);
        assert_true(surrogate || read == point);
        assert_int_equal(tn_utf8_read(&read, text, bytes - 1), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols_are_sorted_behind_the_blank),
        cmocka_unit_test(every_name_is_found_and_no_other),
        cmocka_unit_test(transcripts_split_into_symbols),
        cmocka_unit_test(transcripts_become_numbers),
        cmocka_unit_test(only_utf8_is_utf8),
        cmocka_unit_test(every_character_is_read_as_it_was_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
