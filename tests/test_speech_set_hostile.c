/* SPDX-License-Identifier: MIT */
/* test_speech_set_hostile.c - speech that cannot be used: what is skipped, what is refused, and
 * in which words. */
#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/audio_files.h"
#include "support/speech_batches.h"
#include "support/speech_folder.h"

static void unknown_symbols_are_named_with_file_and_line(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    speech_folder_fill(&folder, 6, 2, 2, 0.1);
    text_put(&folder, "test.tsv", "audio\tphones\ntest/0.wav\tAA\ntest/1.wav\tAA ZH\n");
    check_speech_refused(folder.path, &settings,
                         "test.tsv:3: symbol 'ZH' is not one of the 3 known symbols");
    settings.skip_unknown = true;
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    assert_int_equal(set.count[TN_VALIDATION], 1);
    assert_int_equal(set.list.skipped_count, 1);
    assert_int_equal(set.list.skipped[0].line, 3);
    assert_non_null(strstr(set.list.skipped[0].reason, "symbol 'ZH'"));
    tn_speech_set_free(&set);
    tree_close(&folder);
}

/* Training would end with a model that nobody can read. */
static void symbols_that_no_model_can_hold_are_refused(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();
    char table[400] = "audio\ttext\ntrain/0.wav\t";

    (void)state;
    settings.kind = TN_WORDS;
    speech_folder_fill(&folder, 2, 2, 2, 0.1);
    memset(table + strlen(table), 'x', 255);
    text_put(&folder, "train.tsv", table);
    text_put(&folder, "test.tsv", table);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    tn_speech_set_free(&set);
    table[strlen(table)] = 'x';
    text_put(&folder, "train.tsv", table);
    check_speech_refused(folder.path, &settings, "train.tsv:2: has a symbol of 256 bytes");
    text_put(&folder, "train.tsv", "audio\ttext\ntrain/0.wav\ta \x1b[2J\n");
    check_speech_refused(folder.path, &settings, "control characters");
    tree_close(&folder);
}

static void put_hard_files(const struct folder *folder)
{
    float *const samples = sound(16000, 1), silence[8000] = {0};

    audio_put(folder_file(folder, "silence.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1,
              silence, 8000);
    audio_put(folder_file(folder, "u8.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 8000, 1, samples,
              8000);
    audio_put(folder_file(folder, "float.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 48000, 2,
              samples, 8000);
    audio_put(folder_file(folder, "nist.wav"), SF_FORMAT_NIST | SF_FORMAT_PCM_16, 16000, 1,
              samples, 8000);
    audio_put(folder_file(folder, "none.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1,
              samples, 0);
    audio_put(folder_file(folder, "short.wav"), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1,
              samples, 720);
    samples[100] = NAN;
    audio_put(folder_file(folder, "nan.wav"), SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 1,
              samples, 8000);
    file_put(folder_file(folder, "zero.wav"), "", 0);
    speech_put(folder_file(folder, "long.wav"), 48000, 3);
    free(samples);
}

static const char hard_table[] = "audio\tphones\n"
                                 "silence.wav\t\n"
                                 "u8.wav\tA B\n"
                                 "float.wav\tA B\n"
                                 "nist.wav\tA B\n"
                                 "none.wav\tA\n"
                                 "short.wav\tA B A\n" /* 3 frames: just enough */
                                 "short.wav\tA B A B\n"
                                 "short.wav\tA A B\n" /* a blank between */
                                 "nan.wav\tA\n"
                                 "zero.wav\tA\n"
                                 "missing.wav\tA\n"
                                 "long.wav\tA\n";

static void one_bad_file_does_not_end_a_run(void **state)
{
    static const struct {
        size_t line;
        const char *reason;
    } expected[] = {
        {6, "none.wav: has 0 samples at 16000 Hz; expected at least 25 ms of audio"},
        {8, "has 3 frames of 10 ms; its transcript of 4 symbols needs 4"},
        {9, "has 3 frames of 10 ms; its transcript of 3 symbols needs 4"},
        {10, "nan.wav: sample 100 is"},
        {11, "zero.wav: is empty"},
        {12, "missing.wav: No such file"},
        {13, "long.wav: is at least "},
    };
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    put_hard_files(&folder);
    text_put(&folder, "train.tsv", hard_table);
    text_put(&folder, "test.tsv", "audio\tphones\nu8.wav\tA\n");
    settings.longest = 2.0;
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    assert_int_equal(set.count[TN_TRAINING], 5);
    assert_int_equal(set.list.skipped_count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < set.list.skipped_count; i++) {
        assert_int_equal(set.list.skipped[i].line, expected[i].line);
        assert_non_null(strstr(set.list.skipped[i].file, "train.tsv"));
        if (!strstr(set.list.skipped[i].reason, expected[i].reason))
            fail_msg("'%s'; expected '%s'", set.list.skipped[i].reason, expected[i].reason);
    }
    struct owned_batch owned = speech_batch_open(&set, 5);

    speech_batch_fill(&set, &owned, TN_TRAINING, 0);
    check_speech_batch(&set, &owned.batch, TN_TRAINING);
    free(owned.memory);
    tn_speech_set_free(&set);
    settings.strict = true;
    check_speech_refused(folder.path, &settings, "train.tsv:6: ");
    tree_close(&folder);
}

static void files_that_vanish_are_counted_or_a_failure(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();
    tarn_error err;

    (void)state;
    speech_folder_fill(&folder, 4, 2, 2, 0.1);
    settings.memory = 0;
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch owned = speech_batch_open(&set, 4);

    assert_int_equal(unlink(folder_file(&folder, "train/2.wav")), 0);
    speech_put(folder_file(&folder, "train/1.wav"), 2000, 3);
    speech_batch_fill(&set, &owned, TN_TRAINING, 0);
    assert_int_equal(owned.batch.failed, 2);
    assert_non_null(strstr(owned.batch.problem.text, "train/"));
    for (size_t b = 0; b < 4; b++) {
        const size_t i = owned.batch.utterances[b];

        assert_int_equal(owned.batch.lengths[b] == 0, i == 1 || i == 2);
        assert_int_equal(owned.batch.label_counts[b], i == 1 || i == 2 ? 0 : 3);
    }
    set.settings.strict = true;
    assert_int_not_equal(tn_speech_set_fill(&set, &owned.batch, TN_TRAINING, 0, &err), TARN_OK);
    assert_non_null(strstr(err.text, "train/"));
    free(owned.memory);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

static void sets_that_cannot_be_used_are_refused(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    check_speech_refused(folder.path, &settings, "contains no speech");
    text_put(&folder, "test.tsv", "audio\tphones\nx.wav\tA\n");
    check_speech_refused(folder.path, &settings,
                         "0 training utterances, 1 validation utterances");
    text_put(&folder, "train.tsv", "audio\tphones\nx.wav\tA\ny.wav\tB\n");
    check_speech_refused(folder.path, &settings,
                         "0 training utterances, 0 validation utterances");
    check_speech_refused(folder.path, &settings, "the first: ");
    text_put(&folder, "train.tsv", "audio\tphones\nx.wav\t\n");
    check_speech_refused(folder.path, &settings, "transcripts contain no symbols");
    settings.validation = 0.0;
    check_speech_refused(folder.path, &settings, "validation is 0");
    settings = speech_defaults();
    settings.speeds[0] = (double)NAN;
    settings.speed_count = 1;
    check_speech_refused(folder.path, &settings, "speeds: one is ");
    settings = speech_defaults();
    settings.longest = -1.0;
    check_speech_refused(folder.path, &settings, "longest is -1");
    tree_close(&folder);
}

/* A table of no rows: there is not even memory for its list. */
static void an_empty_set_cannot_be_evaluated(void **state)
{
    const char *names[] = {"", "A"};
    const struct tn_symbols symbols = {.name = names, .count = 2};
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    text_put(&folder, "train.tsv", "audio\tphones\n");
    settings.symbols = &symbols;
    settings.evaluates = true;
    check_speech_refused(folder.path, &settings,
                         "0 training utterances, 0 validation utterances");
    tree_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_symbols_are_named_with_file_and_line),
        cmocka_unit_test(symbols_that_no_model_can_hold_are_refused),
        cmocka_unit_test(one_bad_file_does_not_end_a_run),
        cmocka_unit_test(files_that_vanish_are_counted_or_a_failure),
        cmocka_unit_test(sets_that_cannot_be_used_are_refused),
        cmocka_unit_test(an_empty_set_cannot_be_evaluated),
    };

    return cmocka_run_group_tests_name("speech_set_hostile", tests, NULL, NULL);
}
