/* SPDX-License-Identifier: MIT */
/* test_status.c - every status has a word of its own, and a failure keeps its sentence. */
#include <string.h>

#include "support/testing.h"

enum { STATUSES = TARN_ERANK + 1 };

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = 0; i < STATUSES; i++) {
        const char *const name = tarn_status_name((tarn_status)i);

        assert_non_null(name);
        assert_true(*name != '\0');
        assert_string_not_equal(name, tarn_status_name((tarn_status)STATUSES));
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, tarn_status_name((tarn_status)j));
    }
}

static void a_number_that_is_no_status_has_a_name_too(void **state)
{
    (void)state;
    assert_string_equal(tarn_status_name((tarn_status)STATUSES), "unknown status");
    assert_string_equal(tarn_status_name((tarn_status)-1), "unknown status");
}

static void a_failure_keeps_its_status_and_its_sentence(void **state)
{
    (void)state;
    for (int i = 1; i < STATUSES; i++) {
        tarn_error err = {0};

        assert_int_equal(tn_fail(&err, (tarn_status)i, "%s: %d", "path", i), i);
        assert_int_equal(err.status, i);
        assert_memory_equal(err.text, "path: ", 6);
        assert_int_equal(tn_fail(NULL, (tarn_status)i, "nobody reads this"), i);
    }
}

static void a_sentence_that_is_too_long_is_cut(void **state)
{
    char words[2 * sizeof((tarn_error *)0)->text];
    tarn_error err = {0};

    (void)state;
    memset(words, 'a', sizeof words - 1);
    words[sizeof words - 1] = '\0';
    tn_fail(&err, TARN_EIO, "%s", words);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
}

static void a_sentence_gives_no_commands_to_a_terminal(void **state)
{
    tarn_error err = {0};

    (void)state;
    tn_fail(&err, TARN_EFORMAT, "%s", "a\x1b[2Jb\n\x7f\xc3\xa9");
    assert_string_equal(err.text, "a?[2Jb??\xc3\xa9");
    tn_fail(&err, TARN_EFORMAT, "%s", "\xc2\x9b 2J\xc2\x80\xc2\x9f\xc2\xa0\xc2");
    assert_string_equal(err.text, "? 2J??\xc2\xa0?");
}

static void text_for_display_hides_nothing(void **state)
{
    static const struct {
        const char *text, *shown;
    } cases[] = {
        {"plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
         "plain \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"a\xe2\x80\x8b"
         "b",
         "a?b"},                                           /* zero-width space */
        {"\xe2\x80\xaegnp.exe", "?gnp.exe"},               /* right-to-left override */
        {"\xe2\x81\xa6x\xe2\x81\xa9", "?x?"},              /* isolates */
        {"\xef\xbb\xbfx\xe2\x80\xa8y\xc2\xadz", "?x?y?z"}, /* mark, separator, hyphen */
        {"\xf3\xa0\x81\x81", "?"},                         /* a tag */
        {"\xff\xc3)", "\x3f\x3f)"},                        /* not UTF-8 */
    };
    char shown[64];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tarn_printable(shown, sizeof shown, cases[i].text);
        assert_string_equal(shown, cases[i].shown);
    }
    tarn_printable(shown, 4, "ab\xc3\xa9"); /* whole characters only */
    assert_string_equal(shown, "ab");
    tarn_printable(shown, 5, "ab\xc3\xa9");
    assert_string_equal(shown, "ab\xc3\xa9");
    tarn_printable(NULL, 0, "ab");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(a_number_that_is_no_status_has_a_name_too),
        cmocka_unit_test(a_failure_keeps_its_status_and_its_sentence),
        cmocka_unit_test(a_sentence_that_is_too_long_is_cut),
        cmocka_unit_test(a_sentence_gives_no_commands_to_a_terminal),
        cmocka_unit_test(text_for_display_hides_nothing),
    };

    return cmocka_run_group_tests_name("status", tests, NULL, NULL);
}
