/* SPDX-License-Identifier: MIT */
/* test_speech_set.c - speech as batches: every utterance once, the same to the bit however it
 * is read; on real speech where TARN_DATA names some. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/speech_set.h"
#include "support/speech_batches.h"
#include "support/speech_folder.h"

static void every_utterance_is_trained_on_once_an_epoch(void **state)
{
    struct folder folder = folder_open();
    const struct tn_speech_settings settings = speech_defaults();
    size_t first[2][3];

    (void)state;
    speech_folder_fill(&folder, 23, 5, 3, 0.3);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch owned = speech_batch_open(&set, 4);

    assert_int_equal(set.count[TN_TRAINING], 23);
    assert_int_equal(set.count[TN_VALIDATION], 5);
    assert_string_equal(set.format, "tsv");
    assert_int_equal(tn_speech_set_batches(&set, TN_TRAINING, 4), 6);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
        bool seen[23] = {false};
        size_t count = 0;

        for (uint64_t i = 0; i < 6; i++) {
            speech_batch_fill(&set, &owned, TN_TRAINING, 6 * epoch + i);
            check_speech_batch(&set, &owned.batch, TN_TRAINING);
            for (size_t b = 0; b < owned.batch.count; b++, count++) {
                assert_false(seen[owned.batch.utterances[b]]);
                seen[owned.batch.utterances[b]] = true;
            }
            if (epoch < 2 && i < 3)
                first[epoch][i] = owned.batch.utterances[0];
        }
        assert_int_equal(count, 23);
    }
    assert_memory_not_equal(first[0], first[1], sizeof first[0]);
    free(owned.memory);
    tn_speech_set_free(&set);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

static void validation_goes_over_every_utterance_once(void **state)
{
    struct folder folder = folder_open();
    const struct tn_speech_settings settings = speech_defaults();
    bool seen[7] = {false};
    size_t before = SIZE_MAX;

    (void)state;
    speech_folder_fill(&folder, 4, 7, 2, 0.3);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch owned = speech_batch_open(&set, 3);

    for (uint64_t i = 0; i < 5; i++) {
        speech_batch_fill(&set, &owned, TN_VALIDATION, i);
        check_speech_batch(&set, &owned.batch, TN_VALIDATION);
        assert_int_equal(owned.batch.count, i < 2 ? 3 : i == 2 ? 1 : 0);
        for (size_t b = 0; b < owned.batch.count; b++) {
            assert_false(seen[owned.batch.utterances[b]]);
            seen[owned.batch.utterances[b]] = true;
            assert_true(owned.batch.lengths[b] <= before);
            before = owned.batch.lengths[b];
        }
    }
    free(owned.memory);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

static void augment(struct tn_speech_settings *settings)
{
    settings->speeds[0] = 0.9;
    settings->speeds[1] = 1.0;
    settings->speeds[2] = 1.1;
    settings->speed_count = 3;
    settings->mask = (struct tn_spec_mask){2, 5, 0.0, 2, 8};
}

/* Kept in memory, read again, from a cache cold and warm, by one thread or four; filled in
 * order or not: the same batches. */
static void a_batch_is_the_same_however_it_is_read(void **state)
{
    static const uint64_t places[] = {9, 0, 3, 4, 3, 11};
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    speech_folder_fill(&folder, 17, 3, 2, 0.3);
    augment(&settings);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch expected = speech_batch_open(&set, 4);
    char cache[FOLDER_PATH];

    strcpy(cache, folder_file(&folder, "cache"));
    for (int way = 0; way < 4; way++) {
        settings.memory = way == 0 ? settings.memory : way == 1 ? 20000 : 0;
        settings.cache = way >= 2 ? cache : NULL;
        settings.threads = way == 0 ? 4 : 1;
        struct tn_speech_set other = speech_set_open(folder.path, &settings);
        struct owned_batch owned = speech_batch_open(&other, 4);

        assert_memory_equal(&set.norm, &other.norm, sizeof set.norm);
        for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
            speech_batch_fill(&set, &expected, TN_TRAINING, places[p]);
            speech_batch_fill(&other, &owned, TN_TRAINING, places[p]);
            check_speech_batch(&other, &owned.batch, TN_TRAINING);
            assert_true(speech_batches_equal(&expected.batch, &owned.batch));
        }
        if (way == 3)
            assert_int_equal(other.cache->made, 0);
        free(owned.memory);
        tn_speech_set_free(&other);
    }
    free(expected.memory);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

static void batches_depend_on_place_and_seed(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    speech_folder_fill(&folder, 40, 3, 2, 0.1);
    augment(&settings);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch a = speech_batch_open(&set, 4), b = speech_batch_open(&set, 4);

    speech_batch_fill(&set, &a, TN_TRAINING, 3);
    speech_batch_fill(&set, &b, TN_TRAINING, 13); /* the next epoch */
    assert_false(speech_batches_equal(&a.batch, &b.batch));
    speech_batch_fill(&set, &b, TN_TRAINING, 3); /* and back */
    assert_true(speech_batches_equal(&a.batch, &b.batch));
    set.settings.seed++;
    speech_batch_fill(&set, &b, TN_TRAINING, 3);
    assert_false(speech_batches_equal(&a.batch, &b.batch));
    set.settings.seed--;
    speech_batch_fill(&set, &b, TN_TRAINING, 3);
    assert_true(speech_batches_equal(&a.batch, &b.batch));
    free(a.memory);
    free(b.memory);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

/* Each speed is drawn, lengths follow it, and validation has neither speeds nor masks. */
static void speeds_and_masks_are_for_training(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();
    size_t drawn[3] = {0}, hidden[2] = {0};

    (void)state;
    speech_folder_fill(&folder, 10, 10, 2, 0.3);
    augment(&settings);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);
    struct owned_batch owned = speech_batch_open(&set, 5);
    struct tn_speech_batch *const batch = &owned.batch;

    for (uint64_t i = 0; i < 20; i++) {
        const enum tn_split split = i < 18 ? TN_TRAINING : TN_VALIDATION;

        speech_batch_fill(&set, &owned, split, split == TN_TRAINING ? i : i - 18);
        check_speech_batch(&set, batch, split);
        for (size_t b = 0; b < batch->count; b++) {
            const struct tn_spoken *const spoken = &set.spoken[split][batch->utterances[b]];
            const double speed = batch->speed[b];
            const float *const row = batch->features + b * batch->N * TN_MEL_BANDS;

            assert_int_equal(batch->lengths[b],
                             tn_features_frames(spoken->samples, 16000, speed));
            if (split == TN_TRAINING)
                drawn[speed < 0.95 ? 0 : speed > 1.05 ? 2 : 1]++;
            else
                assert_true(speed == 1.0);
            for (size_t k = 0; k < batch->lengths[b] * TN_MEL_BANDS; k++)
                hidden[split] += row[k] == 0.0f;
        }
    }
    for (size_t s = 0; s < 3; s++)
        assert_true(drawn[s] > 10);
    assert_true(hidden[TN_TRAINING] > 1000 && hidden[TN_VALIDATION] == 0);
    assert_true(set.most_frames[TN_TRAINING] > 50);
    free(owned.memory);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

/* ---- Normalisation ------------------------------------------------------ */

/* Sums over an epoch, of the utterances of one speaker or (NULL) of all. */
static struct tn_feature_sums sums_of(const struct tn_speech_set *set, enum tn_split split,
                                      const char *speaker)
{
    struct owned_batch owned = speech_batch_open(set, 4);
    struct tn_feature_sums sums = {0};

    for (uint64_t i = 0; i < tn_speech_set_batches(set, split, 4); i++) {
        speech_batch_fill(set, &owned, split, i);
        for (size_t b = 0; b < owned.batch.count; b++)
            if (!speaker ||
                strcmp(set->spoken[split][owned.batch.utterances[b]].row.speaker, speaker) == 0)
                tn_feature_sums_add(&sums,
                                    owned.batch.features + b * owned.batch.N * TN_MEL_BANDS,
                                    owned.batch.lengths[b]);
    }
    free(owned.memory);
    return sums;
}

static bool is_normal(const struct tn_feature_sums *sums)
{
    bool normal = sums->count > 0.0;

    for (size_t b = 0; b < TN_MEL_BANDS; b++)
        normal = normal && fabs(sums->sum[b] / sums->count) < 1e-3 &&
                 fabs(sums->square[b] / sums->count - 1.0) < 1e-3;
    return normal;
}

static void normalisation_is_over_everyone_or_a_speaker(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();
    struct tn_feature_sums all, jo;
    struct tn_feature_norm norm;

    (void)state;
    speech_folder_fill(&folder, 9, 6, 2, 0.3);
    for (int kind = TN_NORMALISE_NONE; kind <= TN_NORMALISE_SPEAKER; kind++) {
        settings.normalise = (enum tn_normalise)kind;
        struct tn_speech_set set = speech_set_open(folder.path, &settings);

        all = sums_of(&set, TN_TRAINING, NULL);
        jo = sums_of(&set, TN_TRAINING, "train1");
        assert_int_equal(is_normal(&all), kind != TN_NORMALISE_NONE);
        assert_int_equal(is_normal(&jo), kind == TN_NORMALISE_SPEAKER);
        jo = sums_of(&set, TN_VALIDATION, "test1");
        assert_int_equal(is_normal(&jo), kind == TN_NORMALISE_SPEAKER);
        assert_int_equal(set.norm_count, kind == TN_NORMALISE_SPEAKER ? 4 : 1);
        norm = set.norm;
        tn_speech_set_free(&set);
    }
    settings.normalise = TN_NORMALISE_GLOBAL;
    norm.mean[3] += 5.0f;
    settings.norm = &norm; /* a model's, used as it is */
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    all = sums_of(&set, TN_TRAINING, NULL);
    assert_true(fabs(all.sum[3] / all.count + 5.0 * (double)norm.scale[3]) < 1e-2);
    assert_memory_equal(&set.norm, &norm, sizeof norm);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

/* ---- Symbols ------------------------------------------------------------ */

static void symbols_come_from_training_or_from_outside(void **state)
{
    static const char *const expected[] = {"", "AA", "B", "CH"};
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    speech_folder_fill(&folder, 6, 2, 2, 0.1);
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    assert_int_equal(set.symbols.count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(set.symbols.name[i], expected[i]);
    settings.symbols = &set.symbols;
    settings.norm = &set.norm;
    settings.validation = 1.0; /* to evaluate: the training part is not looked at */
    struct tn_speech_set other = speech_set_open(folder.path, &settings);

    assert_int_equal(other.count[TN_TRAINING], 0);
    assert_int_equal(other.count[TN_VALIDATION], 2);
    assert_int_equal(other.symbols.count, 4);
    tn_speech_set_free(&other);
    tn_speech_set_free(&set);
    settings.symbols = NULL;
    check_speech_refused(folder.path, &settings, "symbols: none are given");
    settings = speech_defaults();
    settings.kind = TN_CHARACTERS;
    set = speech_set_open(folder.path, &settings);
    assert_string_equal(set.symbols.name[1], " ");
    assert_int_equal(set.spoken[0][0].label_count, 4); /* "no 0" */
    tn_speech_set_free(&set);
    tree_close(&folder);
}

static void a_folder_without_parts_is_split(void **state)
{
    struct folder folder = folder_open();
    struct tn_speech_settings settings = speech_defaults();

    (void)state;
    speech_folder_fill(&folder, 20, 0, 2, 0.1);
    settings.validation = 0.25;
    struct tn_speech_set set = speech_set_open(folder.path, &settings);

    assert_int_equal(set.count[TN_TRAINING], 15);
    assert_int_equal(set.count[TN_VALIDATION], 5);
    assert_non_null(strstr(set.spoken[TN_VALIDATION][0].row.audio, "/15.wav"));
    settings.evaluates = true;
    settings.symbols = &set.symbols;
    struct tn_speech_set evaluated = speech_set_open(folder.path, &settings);

    assert_int_equal(evaluated.count[TN_TRAINING], 0);
    assert_int_equal(evaluated.count[TN_VALIDATION], 5);
    assert_non_null(strstr(evaluated.spoken[TN_VALIDATION][0].row.audio, "/15.wav"));
    tn_speech_set_free(&evaluated);
    tn_speech_set_free(&set);
    tree_close(&folder);
}

/* ---- Real speech -------------------------------------------------------- */

static void real_speech_is_read(void **state)
{
    const char *const data = getenv("TARN_DATA");
    struct tn_speech_settings settings = speech_defaults();
    char path[FOLDER_PATH];
    size_t real = 0, padded = 0;

    (void)state;
    snprintf(path, sizeof path, "%s/speech", data ? data : "");
    if (!data || access(path, R_OK) != 0) {
        print_message("TARN_DATA names no folder with speech/: not tested on real speech\n");
        skip();
    }
    struct tn_speech_set set = speech_set_open(path, &settings);

    assert_int_equal(set.count[TN_TRAINING], 686);
    assert_int_equal(set.count[TN_VALIDATION], 270);
    assert_int_equal(set.symbols.count, 40);
    assert_int_equal(set.list.skipped_count, 0);
    struct owned_batch owned = speech_batch_open(&set, 16);

    for (uint64_t i = 0; i < tn_speech_set_batches(&set, TN_TRAINING, 16); i++) {
        speech_batch_fill(&set, &owned, TN_TRAINING, i);
        check_speech_batch(&set, &owned.batch, TN_TRAINING);
        padded += owned.batch.count * owned.batch.N;
        for (size_t b = 0; b < owned.batch.count; b++)
            real += owned.batch.lengths[b];
    }
    print_message("padding: %.1f %% of the frames\n",
                  100.0 * (1.0 - (double)real / (double)padded));
    assert_true((double)real > 0.85 * (double)padded);
    free(owned.memory);
    tn_speech_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_utterance_is_trained_on_once_an_epoch),
        cmocka_unit_test(validation_goes_over_every_utterance_once),
        cmocka_unit_test(a_batch_is_the_same_however_it_is_read),
        cmocka_unit_test(batches_depend_on_place_and_seed),
        cmocka_unit_test(speeds_and_masks_are_for_training),
        cmocka_unit_test(normalisation_is_over_everyone_or_a_speaker),
        cmocka_unit_test(symbols_come_from_training_or_from_outside),
        cmocka_unit_test(a_folder_without_parts_is_split),
        cmocka_unit_test(real_speech_is_read),
    };

    return cmocka_run_group_tests_name("speech_set", tests, NULL, NULL);
}
