/* SPDX-License-Identifier: MIT */
/* test_number.c - numbers as text are read and written with '.', whatever the locale's point.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/option.h"
#include "model/config.h"
#include "support/comma.h"

static const double numbers[] = {
    0.0,     0.1,       -0.1,      1.0 / 3.0,          2.5e-300, DBL_MAX,
    DBL_MIN, 0x1p-1074, 123456.75, 9007199254740992.0, 1e22,     -DBL_MAX,
};

/* Through text and back, which has no point but '.'. */
static void check_round_trips(void)
{
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char text[TN_NUMBER_TEXT];
        double again = (double)NAN;

        tn_number_text(text, numbers[i]);
        assert_int_equal(strspn(text, "0123456789+-.e"), strlen(text));
        assert_true(tn_number_read(&again, text, strlen(text)));
        assert_memory_equal(&again, &numbers[i], sizeof again);
    }
}

static void text_gives_the_same_number_again(void **state)
{
    char text[TN_NUMBER_TEXT];

    (void)state;
    check_round_trips();
    tn_number_text(text, 0.1);
    assert_string_equal(text, "0.1");
    tn_number_text(text, 0.1 + 0.2);
    assert_string_equal(text, "0.30000000000000004");
}

static void only_a_decimal_number_is_read(void **state)
{
    static const char *const refused[] = {"",    " 1",    "1 ",   "0x10", "nan", "inf",
                                          "1,5", "1e",    "1.5.", "-",    ".",   "1+1",
                                          "e5",  "1.2.3", "1\n",  "1d"};
    static const char *const read[] = {"1", "+1", "-.5", "5.", "1e-3", "1E+5", "007"};
    double x;

    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        assert_false(tn_number_read(&x, refused[i], strlen(refused[i])));
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        assert_true(tn_number_read(&x, read[i], strlen(read[i])));
    assert_true(tn_number_read(&x, "1.25,rest", 4));
    assert_true(x == 1.25);
    assert_false(tn_number_read(&x, "1\0", 2));
}

static void text_as_long_as_the_memory_is_refused(void **state)
{
    char text[2 * TN_NUMBER_TEXT];
    double x;

    (void)state;
    memset(text, '1', sizeof text);
    assert_true(tn_number_read(&x, text, TN_NUMBER_TEXT - 1));
    assert_false(tn_number_read(&x, text, TN_NUMBER_TEXT));
    assert_false(tn_number_read(&x, text, sizeof text));
}

/* As under German and Arabic locales, whose point is one byte and two. */
static void any_point_may_stand_for_the_other(void **state)
{
    char out[TN_NUMBER_TEXT], longest[TN_NUMBER_TEXT] = ".";

    (void)state;
    assert_true(tn_number_point(out, "-1.5e3", ".", ","));
    assert_string_equal(out, "-1,5e3");
    assert_true(tn_number_point(out, "0.25", ".", "\xd9\xab"));
    assert_string_equal(out, "0\xd9\xab"
                             "25");
    assert_true(tn_number_point(out,
                                "0\xd9\xab"
                                "25",
                                "\xd9\xab", "."));
    assert_string_equal(out, "0.25");
    assert_true(tn_number_point(out, "12", ".", ","));
    assert_string_equal(out, "12");
    memset(longest + 1, '1', sizeof longest - 2);
    assert_true(tn_number_point(out, longest, ".", ","));
    assert_false(tn_number_point(out, longest, ".", "\xd9\xab"));
}

static void settings_and_options_are_the_same_under_a_comma(void **state)
{
    const locale_t before = use_comma();
    tarn_config config;
    tarn_error err;
    char text[TARN_NAME_SIZE];

    (void)state;
    check_round_trips();
    check_ok(tarn_config_preset(&config, "tiny", &err), &err);
    check_ok(tarn_config_set(&config, "dropout", "0.1", &err), &err);
    check_ok(tarn_config_text(&config, text, sizeof text, "dropout", &err), &err);
    drop_comma(before);
    assert_true(config.dropout == 0.1);
    assert_string_equal(text, "0.1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_gives_the_same_number_again),
        cmocka_unit_test(only_a_decimal_number_is_read),
        cmocka_unit_test(text_as_long_as_the_memory_is_refused),
        cmocka_unit_test(any_point_may_stand_for_the_other),
        cmocka_unit_test(settings_and_options_are_the_same_under_a_comma),
    };

    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
