/* SPDX-License-Identifier: MIT */
/* test_speech_formats.c - what folders of speech say that they hold. No audio is read here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/speech_list.h"
#include "support/speech_folder.h"

static struct tn_speech_list list_of(const struct folder *folder, const char *format,
                                     enum tn_split split, enum tn_symbol_kind kind)
{
    const struct tn_speech_format *found = NULL;
    struct tn_speech_list list = {0};
    tarn_error err;

    check_ok(tn_speech_format_of(&found, folder->path, &err), &err);
    assert_string_equal(found->name, format);
    check_ok(found->list(&list, folder->path, split, kind, &err), &err);
    return list;
}

static void check_row(const struct folder *folder, const struct tn_speech_list *list, size_t i,
                      const char *audio, const char *speaker, const char *transcript,
                      size_t line)
{
    const size_t prefix = strlen(folder->path) + 1;

    assert_true(i < list->count);
    const struct tn_utterance *const row = &list->utterance[i];

    assert_memory_equal(row->audio, folder->path, prefix - 1);
    assert_string_equal(row->audio + prefix, audio);
    assert_string_equal(row->speaker, speaker);
    assert_string_equal(row->transcript, transcript);
    assert_int_equal(row->line, line);
}

static void check_skipped(const struct tn_speech_list *list, size_t i, const char *file,
                          size_t line, const char *reason)
{
    assert_true(i < list->skipped_count);
    assert_non_null(strstr(list->skipped[i].file, file));
    assert_int_equal(list->skipped[i].line, line);
    if (!strstr(list->skipped[i].reason, reason))
        fail_msg("'%s'; expected '%s'", list->skipped[i].reason, reason);
}

/* The folder must be refused, with these words. */
static void check_refused(const struct folder *folder, const char *words)
{
    const struct tn_speech_format *format = NULL;
    struct tn_speech_list list = {0};
    tarn_error err = {TARN_OK, ""};
    tarn_status status = tn_speech_format_of(&format, folder->path, &err);

    if (status == TARN_OK)
        status = format->list(&list, folder->path, TN_TRAINING, TN_PHONES, &err);
    assert_int_not_equal(status, TARN_OK);
    if (!strstr(err.text, words))
        fail_msg("'%s'; expected '%s'", err.text, words);
    tn_speech_list_free(&list);
}

/* ---- Tables ------------------------------------------------------------- */

static void columns_are_found_by_their_names(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "train.tsv",
             "text\tnote\taudio\tphones\tspeaker\r\n"
             "OH NO\tx\ta.wav\t OW  N OW \tjo\r\n"
             "\n"
             "HI\t\tb/c.flac\tHH AY\tal");
    struct tn_speech_list list = list_of(&folder, "tsv", TN_TRAINING, TN_PHONES);

    assert_int_equal(list.count, 2);
    check_row(&folder, &list, 0, "a.wav", "jo", "OW  N OW", 2);
    check_row(&folder, &list, 1, "b/c.flac", "al", "HH AY", 4);
    tn_speech_list_free(&list);
    list = list_of(&folder, "tsv", TN_TRAINING, TN_CHARACTERS);
    check_row(&folder, &list, 0, "a.wav", "jo", "OH NO", 2);
    tn_speech_list_free(&list);
    list = list_of(&folder, "tsv", TN_VALIDATION, TN_PHONES);
    assert_int_equal(list.count, 0);
    tn_speech_list_free(&list);
    tree_close(&folder);
}

static void rows_that_are_wrong_are_skipped_with_their_line(void **state)
{
    static const char text[] = "audio\tphones\n"
                               "a.wav\tA\n"
                               "b.wav\n"
                               "\tB\n"
                               "d.wav\t\xff\n"
                               "e.wav\tE\0\n"
                               "/f.wav\t\n";
    struct folder folder = folder_open();

    (void)state;
    file_put(folder_file(&folder, "test.tsv"), text, sizeof text - 1);
    struct tn_speech_list list = list_of(&folder, "tsv", TN_VALIDATION, TN_PHONES);

    assert_int_equal(list.count, 2);
    check_row(&folder, &list, 0, "a.wav", "", "A", 2);
    assert_string_equal(list.utterance[1].audio, "/f.wav");
    assert_string_equal(list.utterance[1].transcript, "");
    assert_int_equal(list.skipped_count, 4);
    check_skipped(&list, 0, "test.tsv", 3, "has 1 columns; expected as many as the first line");
    check_skipped(&list, 1, "test.tsv", 4, "the audio column is empty");
    check_skipped(&list, 2, "test.tsv", 5, "the transcript is not UTF-8");
    check_skipped(&list, 3, "test.tsv", 6, "contains a zero byte");
    tn_speech_list_free(&list);
    list.strict = true;
    tarn_error err;

    assert_int_equal(tn_speech_list_skip(&list, "x.tsv", 7, &err, "is %s", "bad"),
                     TARN_EFORMAT);
    assert_string_equal(err.text, "x.tsv:7: is bad");
    tree_close(&folder);
}

static void tables_without_the_columns_are_refused(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "train.tsv", "");
    check_refused(&folder, "train.tsv: is empty; expected column names");
    text_put(&folder, "train.tsv", "audio\ttext\na.wav\tx\n");
    check_refused(&folder, "train.tsv:1: has no column 'phones'");
    text_put(&folder, "train.tsv", "a.wav A B C\n");
    check_refused(&folder, "train.tsv:1: has no column 'audio'");
    tree_close(&folder);
}

static void a_folder_of_something_else_is_refused(void **state)
{
    struct folder folder = folder_open();
    const struct tn_speech_format *format;
    tarn_error err;

    (void)state;
    text_put(&folder, "readme", "nothing");
    check_refused(&folder, "contains no speech; expected train.tsv or test.tsv; or wav.scp and "
                           "text; or .phn files beside audio");
    assert_int_equal(tn_speech_format_of(&format, folder_file(&folder, "readme"), &err),
                     TARN_EIO);
    assert_non_null(strstr(err.text, "is not a folder"));
    tree_close(&folder);
}

/* ---- Kaldi -------------------------------------------------------------- */

static void kaldi_joins_its_files_by_utterance(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "wav.scp", "u2 b.wav\nu1  /x/a b.wav \nu\x1b c.wav\nu5\n");
    text_put(&folder, "text", "u1 AA B\nu2\tCH\nu4 D\nu5 E\n");
    text_put(&folder, "utt2spk", "u1 jo\n");
    struct tn_speech_list list = list_of(&folder, "kaldi", TN_TRAINING, TN_PHONES);

    assert_int_equal(list.count, 2);
    assert_string_equal(list.utterance[1].audio, "/x/a b.wav");
    assert_string_equal(list.utterance[1].speaker, "jo");
    assert_string_equal(list.utterance[1].transcript, "AA B");
    check_row(&folder, &list, 0, "b.wav", "", "CH", 2);
    assert_int_equal(list.skipped_count, 3);
    check_skipped(&list, 0, "wav.scp", 3, "utterance 'u?' has no line in ");
    check_skipped(&list, 1, "wav.scp", 4, "has no path");
    check_skipped(&list, 2, "text", 3, "utterance 'u4' has no line in wav.scp");
    tn_speech_list_free(&list);
    tree_close(&folder);
}

static void kaldi_has_parts_in_folders(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "train/wav.scp", "a a.wav\n");
    text_put(&folder, "train/text", "a A\n");
    text_put(&folder, "dev/wav.scp", "b b.wav\n");
    text_put(&folder, "dev/text", "b B\n");
    struct tn_speech_list list = list_of(&folder, "kaldi", TN_TRAINING, TN_PHONES);

    check_row(&folder, &list, 0, "train/a.wav", "", "A", 1);
    assert_int_equal(list.count, 1);
    tn_speech_list_free(&list);
    list = list_of(&folder, "kaldi", TN_VALIDATION, TN_PHONES);
    check_row(&folder, &list, 0, "dev/b.wav", "", "B", 1);
    assert_int_equal(list.count, 1);
    tn_speech_list_free(&list);
    tree_close(&folder);
}

static void commands_and_doubles_in_kaldi_are_refused(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "wav.scp", "a a.wav\nb sph2pipe -f wav b.sph |\n");
    text_put(&folder, "text", "a A\nb B\n");
    check_refused(&folder, "wav.scp:2: is a command, and commands are not executed; expected "
                           "the path of an audio file");
    text_put(&folder, "wav.scp", "a a.wav\nb b.wav\na c.wav\n");
    check_refused(&folder, "utterance 'a' appears twice");
    text_put(&folder, "segments", "");
    check_refused(&folder, "segments: segments are not supported");
    tree_close(&folder);
}

/* ---- TIMIT -------------------------------------------------------------- */

static void timit_is_found_in_folders_below(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "TRAIN/DR1/FAB0/SA1.PHN", "0 3050 h#\n3050 4559 sh\r\n4559 5723 ix\n");
    text_put(&folder, "TRAIN/DR1/FAB0/SA1.WAV", "");
    text_put(&folder, "TRAIN/DR1/FAB0/SA1.TXT", "0 5723 She had.\n");
    text_put(&folder, "TRAIN/DR1/FAB0/SA2.PHN", "0 10 h#\n10 xx aa\n");
    text_put(&folder, "TRAIN/DR1/FAB0/SA2.WAV", "");
    text_put(&folder, "TRAIN/DR2/MCD0/SX3.PHN", "0 10 h#\n");
    text_put(&folder, "TEST/DR1/MXY0/sa1.phn", "0 10 q\n");
    text_put(&folder, "TEST/DR1/MXY0/sa1.flac", "");
    struct tn_speech_list list = list_of(&folder, "timit", TN_TRAINING, TN_PHONES);

    assert_int_equal(list.count, 1);
    check_row(&folder, &list, 0, "TRAIN/DR1/FAB0/SA1.WAV", "FAB0", "h# sh ix", 0);
    assert_int_equal(list.skipped_count, 2);
    check_skipped(&list, 0, "SA2.PHN", 2, "expected two sample numbers and a name");
    check_skipped(&list, 1, "SX3.PHN", 0, "has no audio file beside it");
    tn_speech_list_free(&list);
    list = list_of(&folder, "timit", TN_TRAINING, TN_CHARACTERS);
    check_row(&folder, &list, 0, "TRAIN/DR1/FAB0/SA1.WAV", "FAB0", "She had.", 0);
    check_skipped(&list, 0, "SA2.WAV", 0, "has no text file (.txt) beside it");
    tn_speech_list_free(&list);
    list = list_of(&folder, "timit", TN_VALIDATION, TN_PHONES);
    check_row(&folder, &list, 0, "TEST/DR1/MXY0/sa1.flac", "MXY0", "q", 0);
    assert_int_equal(list.count, 1);
    tn_speech_list_free(&list);
    tree_close(&folder);
}

static void timit_without_parts_is_all_training(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    text_put(&folder, "b/y.phn", "0 1 a\n");
    text_put(&folder, "b/y.wav", "");
    text_put(&folder, "a/x.phn", "0 1 b\n");
    text_put(&folder, "a/x.wav", "");
    struct tn_speech_list list = list_of(&folder, "timit", TN_TRAINING, TN_PHONES);

    assert_int_equal(list.count, 2);
    check_row(&folder, &list, 0, "a/x.wav", "a", "b", 0);
    tn_speech_list_free(&list);
    list = list_of(&folder, "timit", TN_VALIDATION, TN_PHONES);
    assert_int_equal(list.count, 0);
    tn_speech_list_free(&list);
    tree_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_are_found_by_their_names),
        cmocka_unit_test(rows_that_are_wrong_are_skipped_with_their_line),
        cmocka_unit_test(tables_without_the_columns_are_refused),
        cmocka_unit_test(a_folder_of_something_else_is_refused),
        cmocka_unit_test(kaldi_joins_its_files_by_utterance),
        cmocka_unit_test(kaldi_has_parts_in_folders),
        cmocka_unit_test(commands_and_doubles_in_kaldi_are_refused),
        cmocka_unit_test(timit_is_found_in_folders_below),
        cmocka_unit_test(timit_without_parts_is_all_training),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
