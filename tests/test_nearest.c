/* SPDX-License-Identifier: MIT */
/* test_nearest.c - which name was meant. */
#include <string.h>

#include "base/nearest.h"
#include "support/testing.h"

static const char *nearest_of(const char *word, const char *const *names)
{
    struct tn_nearest nearest = {.word = word, .length = strlen(word)};

    for (; *names; names++)
        tn_nearest_try(&nearest, *names);
    return nearest.name;
}

static void slips_of_the_fingers_are_near(void **state)
{
    static const char *const names[] = {"softmax", "linear", "lsh", "full", NULL};
    static const struct {
        const char *word, *meant;
    } cases[] = {
        {"linaer", "linear"},
        {"liner", "linear"},
        {"linearr", "linear"},
        {"lineer", "linear"},
        {"softmx", "softmax"},
        {"sofmtax", "softmax"},
        {"softmaxxx", "softmax"},
        {"hsl", NULL},
        {"lhs", "lsh"},
        {"l", NULL},
        {"", NULL},
        {"foo", NULL},
        {"ful", "full"},
        {"nilear", "linear"},
        {"transformer", NULL},
        {"linear", "linear"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const found = nearest_of(cases[i].word, names);

        if ((found == NULL) != (cases[i].meant == NULL) ||
            (found && strcmp(found, cases[i].meant) != 0))
            fail_msg("'%s' is near '%s'", cases[i].word, found ? found : "nothing");
    }
}

static void the_nearest_wins_and_the_first_of_equals(void **state)
{
    static const char *const names[] = {"mnist1", "mnist", "mnisp", NULL};

    (void)state;
    assert_string_equal(nearest_of("mnis", names), "mnist");
    assert_string_equal(nearest_of("minst", names), "mnist");
}

static void words_of_any_length_are_compared(void **state)
{
    static const char *const names[] = {"a-name-that-is-longer-than-any-that-we-have", "short",
                                        NULL};
    char word[1000];

    (void)state;
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = '\0';
    assert_null(nearest_of(word, names));
    assert_null(nearest_of("a-name-that-is-longer-than-any-that-we-haev", names));
    assert_string_equal(nearest_of("shrot", names), "short");
}

static void only_the_length_that_was_said_is_read(void **state)
{
    struct tn_nearest nearest = {.word = "linaer:rounds=4", .length = 6};

    (void)state;
    tn_nearest_try(&nearest, "linear");
    assert_string_equal(nearest.name, "linear");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slips_of_the_fingers_are_near),
        cmocka_unit_test(the_nearest_wins_and_the_first_of_equals),
        cmocka_unit_test(words_of_any_length_are_compared),
        cmocka_unit_test(only_the_length_that_was_said_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
