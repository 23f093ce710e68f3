/* SPDX-License-Identifier: MIT */
/* test_speech_profile.c - what a model knows of its data comes back as it was, and nothing that
 * is damaged does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/speech_profile.h"
#include "support/testing.h"

static struct tn_speech_profile make_profile(void)
{
    static const char *const names[] = {"AA", "\xc3\xa4", "\"quoted\\", "zz"};
    struct tn_speech_profile profile = {.kind = TN_WORDS, .normalise = TN_NORMALISE_SPEAKER};
    tarn_error err;

    check_ok(tn_symbols_of(&profile.symbols, names, 4, &err), &err);
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        profile.norm.mean[b] = -7.1f + (float)b / 3.0f;
        profile.norm.scale[b] = 1.0f / (3.0f + (float)b);
    }
    return profile;
}

static void a_profile_comes_back_as_it_was(void **state)
{
    struct tn_speech_profile profile = make_profile(), back;
    char *json;
    tarn_error err;

    (void)state;
    check_ok(tn_speech_profile_write(&json, &profile, &err), &err);
    check_ok(tn_speech_profile_read(&back, json, "file", &err), &err);
    assert_int_equal(back.kind, profile.kind);
    assert_int_equal(back.normalise, profile.normalise);
    assert_memory_equal(&back.norm, &profile.norm, sizeof back.norm);
    assert_int_equal(back.symbols.count, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(back.symbols.name[i], profile.symbols.name[i]);
    tn_speech_profile_free(&back);
    tn_speech_profile_free(&profile);
    tn_speech_profile_free(&profile);
    free(json);
}

static void every_truncation_is_refused(void **state)
{
    struct tn_speech_profile profile = make_profile(), back;
    char *json;

    (void)state;
    check_ok(tn_speech_profile_write(&json, &profile, NULL), NULL);
    for (size_t n = strlen(json); n-- > 0;) {
        tarn_error err;

        json[n] = '\0';
        assert_int_equal(tn_speech_profile_read(&back, json, "file", &err), TARN_EFORMAT);
        assert_int_equal(back.symbols.count, 0);
        assert_non_null(strstr(err.text, "file: "));
    }
    tn_speech_profile_free(&profile);
    free(json);
}

/* One piece of a good profile in the place of another. */
static void check_refused(const char *from, const char *to, const char *says)
{
    struct tn_speech_profile profile = make_profile(), back;
    char *json;
    tarn_error err = {0};

    check_ok(tn_speech_profile_write(&json, &profile, &err), &err);
    const size_t size = strlen(json) + strlen(to) + 1;
    char *const damaged = take(size, 1), *const at = strstr(json, from);

    assert_non_null(at);
    snprintf(damaged, size, "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    if (tn_speech_profile_read(&back, damaged, "file", &err) != TARN_EFORMAT ||
        !strstr(err.text, says))
        fail_msg("'%s' for '%s': '%s' does not say '%s'", to, from, err.text, says);
    free(damaged);
    free(json);
    tn_speech_profile_free(&profile);
}

static void what_is_no_profile_is_refused(void **state)
{
    (void)state;
    check_refused("\"version\":1", "\"version\":2", "version");
    check_refused("\"version\":1", "\"version\":\"1\"", "version");
    check_refused("log-mel 1", "log-mel 99", "log-mel 99");
    check_refused("\"features\":\"log-mel 1\"", "\"features\":1", "expected 'log-mel 1'");
    check_refused("\"words\"", "\"letters\"", "kind");
    check_refused("\"words\"", "null", "kind");
    check_refused("\"speaker\"", "\"nobody\"", "normalisation");
    check_refused("\"mean\":[", "\"mean\":[1,", "40 means");
    check_refused("\"mean\":[", "\"mean\":[\"1\",", "40 means");
    check_refused("\"mean\":[-7.0", "\"mean\":[1e300,-7.0", "40 means");
    check_refused("\"scale\":[0.3", "\"scale\":[-0.3", "40 means");
    check_refused("\"scale\":[0.333333343", "\"scale\":[0", "40 means");
    check_refused("\"scale\":[0.333333343", "\"scale\":[1e-50", "40 means"); /* 0 as a float */
    check_refused("\"scale\"", "\"scales\"", "40 means");
    check_refused("\"zz\"", "\"\"", "symbols");
    check_refused("\"zz\"", "7", "symbols");
    check_refused("\"zz\"", "\"A\"", "not sorted");
    check_refused("\"zz\"", "\"zz\",\"zz\"", "not sorted");
    check_refused("\"zz\"", "\"z\\u0000z\"", "JSON");
    check_refused("\"zz\"", "\"z\\u001b[2J\"", "symbols"); /* which would clear a screen */
    check_refused("\"zz\"", "\"z\\u009b2J\"", "symbols");
    check_refused("{", "[", "JSON");
    check_refused("\"kind\"", "\"version\"", "JSON");
}

static void a_long_name_is_refused(void **state)
{
    char name[2 * TN_SYMBOL_BYTES];

    (void)state;
    memset(name, 'z', sizeof name);
    name[0] = name[TN_SYMBOL_BYTES + 1] = '"';
    name[TN_SYMBOL_BYTES + 2] = '\0';
    check_refused("\"zz\"", name, "symbols");
}

/* A recording alone: by the numbers of everyone, by its own, or not at all. */
static void features_are_normalised_as_the_profile_says(void **state)
{
    struct tn_speech_profile profile = make_profile();
    float frames[3 * TN_MEL_BANDS], want[3 * TN_MEL_BANDS], mean = 0.0f;

    (void)state;
    for (size_t i = 0; i < 3 * TN_MEL_BANDS; i++)
        want[i] = frames[i] = (float)(i % 7) - (float)i / 9.0f;
    profile.normalise = TN_NORMALISE_NONE;
    tn_speech_profile_apply(&profile, frames, 3);
    assert_memory_equal(frames, want, sizeof frames);
    profile.normalise = TN_NORMALISE_GLOBAL;
    tn_speech_profile_apply(&profile, frames, 3);
    for (size_t i = 0; i < 3 * TN_MEL_BANDS; i++) {
        const size_t b = i % TN_MEL_BANDS;

        assert_true(frames[i] == (want[i] - profile.norm.mean[b]) * profile.norm.scale[b]);
    }
    profile.normalise = TN_NORMALISE_SPEAKER;
    tn_speech_profile_apply(&profile, frames, 3);
    for (size_t t = 0; t < 3; t++)
        mean += frames[t * TN_MEL_BANDS + 5];
    assert_true(fabsf(mean) < 1e-4f);
    tn_speech_profile_free(&profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_profile_comes_back_as_it_was),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_no_profile_is_refused),
        cmocka_unit_test(a_long_name_is_refused),
        cmocka_unit_test(features_are_normalised_as_the_profile_says),
    };

    return cmocka_run_group_tests_name("speech profile", tests, NULL, NULL);
}
