/* SPDX-License-Identifier: MIT */
/* test_recognizer.c - what is heard as it arrives is what a whole recording gives; and what
 * cannot be heard is refused. */
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/edit_distance.h"
#include "generate/recognizer.h"
#include "support/audio_files.h"
#include "support/batches.h"
#include "support/folder.h"
#include "support/layer_case.h"
#include "support/model_case.h"
#include "support/speech_folder.h"
#include "support/tones.h"
#include "tarn/train.h"

/* ---- Models ------------------------------------------------------------- */

enum { SYMBOLS = 6 };

static char *note_of(enum tn_symbol_kind kind, enum tn_normalise normalise, size_t symbols)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct tn_speech_profile profile = {.kind = kind, .normalise = normalise};
    tarn_error err;
    char *note;

    check_ok(tn_symbols_of(&profile.symbols, names, symbols - 1, &err), &err);
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        profile.norm.mean[b] = -5.0f;
        profile.norm.scale[b] = 0.3f + 0.01f * (float)b;
    }
    check_ok(tn_speech_profile_write(&note, &profile, &err), &err);
    tn_speech_profile_free(&profile);
    return note;
}

static void give_note(tarn_model *model, enum tn_symbol_kind kind, enum tn_normalise normalise,
                      size_t symbols)
{
    char *const note = note_of(kind, normalise, symbols);
    tarn_error err;

    check_ok(tn_model_note(model, note, &err), &err);
    free(note);
}

/* Settings are pairs, ended by NULL. Predictions are made large, so that symbols take turns. */
static tarn_model *speech_model(const char *const *settings)
{
    tarn_config config;
    tarn_model *model;
    tarn_error err;

    check_ok(tarn_config_start(&config, "speech", "speech-tiny", &err), &err);
    config.causal = true;
    config.symbols = SYMBOLS;
    for (; settings && *settings; settings += 2)
        check_ok(tarn_config_set(&config, settings[0], settings[1], &err), &err);
    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    for (size_t i = 0; i < model->arch.head.outputs * config.width; i++)
        model->weights.predictor[i] *= 10.0f;
    for (size_t i = 0; i < config.frames * config.stack * model->arch.position.embedding; i++)
        model->weights.frames[i] *= 10.0f;
    give_note(model, TN_PHONES, TN_NORMALISE_GLOBAL, SYMBOLS);
    return model;
}

static tarn_recognizer *recognizer_of(const tarn_model *model, size_t beam)
{
    const tarn_recognizer_desc desc = {.beam = beam,
                                       .host = {.threads = 1, .cpu = forced_cpu()}};
    tarn_recognizer *recognizer;
    tarn_error err;

    check_ok(tarn_recognizer_create(&recognizer, model, &desc, &err), &err);
    return recognizer;
}

/* ---- As it arrives ------------------------------------------------------ */

struct heard {
    tarn_heard symbols[4096];
    size_t count;
};

static void add(struct heard *all, const tarn_heard *more, size_t count)
{
    assert_true(all->count + count <= 4096);
    for (size_t i = 0; i < count; i++)
        all->symbols[all->count++] = more[i];
}

/* In pieces of up to `most` samples. */
static void hear(tarn_recognizer *r, struct heard *all, const float *samples, size_t n,
                 size_t rate, size_t most, uint64_t seed)
{
    const tarn_heard *heard;
    struct tn_random random;
    size_t count;
    tarn_error err;

    all->count = 0;
    tn_random_seed(&random, seed);
    check_ok(tarn_recognizer_begin(r, rate, &err), &err);
    for (size_t at = 0; at < n;) {
        const size_t piece = tn_min(n - at, below(&random, most + 1));

        check_ok(tarn_recognizer_push(r, &heard, &count, samples + at, piece, &err), &err);
        add(all, heard, count);
        at += piece;
    }
    check_ok(tarn_recognizer_end(r, &heard, &count, &err), &err);
    add(all, heard, count);
}

static void check_same(const struct heard *got, const tarn_transcript *want)
{
    assert_int_equal(got->count, want->count);
    for (size_t i = 0; i < want->count; i++) {
        assert_string_equal(got->symbols[i].symbol, want->symbols[i].symbol);
        assert_true(got->symbols[i].begin == want->symbols[i].begin);
        assert_true(fabs(got->symbols[i].confidence - want->symbols[i].confidence) < 1e-3);
    }
}

/* Each kind of attention that has steps, each way that positions enter, stacks that end full or
 * not, rates that are resampled or not. */
static void sounds_that_arrive_are_heard_as_recordings_are(void **state)
{
    static const char *const variants[][5] = {
        {NULL},
        {"stack", "1", "feature_map", "relu", NULL},
        {"stack", "4", "position", "add", NULL},
        {"attention", "softmax", "norm", "pre", NULL},
        {"position", "none", "stack", "2", NULL},
    };
    static const size_t rates[] = {16000, 11025};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "sound.wav");
    struct heard *const got = take(1, sizeof *got);
    size_t symbols = 0;

    (void)state;
    for (size_t v = 0; v < 2 * sizeof variants / sizeof variants[0]; v++) {
        tarn_model *const model = speech_model(variants[v / 2]);
        const size_t rate = rates[v % 2];
        size_t n;
        float *const samples =
            tones_make((const size_t[]){0, 2, 1, 3, 0, 1, 2, 0, 3}, 9, v, &n);
        tarn_recognizer *const r = recognizer_of(model, 0);
        tarn_transcript whole;
        tarn_error err;

        audio_put(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rate, 1, samples, n);
        for (size_t i = 0; i < 3; i++) {
            hear(r, got, samples, n, rate, (const size_t[]){300, 5000, 100000}[i], i);
            check_ok(tarn_recognizer_file(r, &whole, path, &err), &err);
            symbols += whole.count;
            check_same(got, &whole);
        }
        tarn_recognizer_free(r);
        tarn_model_free(model);
        free(samples);
    }
    assert_true(symbols > 200); /* some have few: weights were drawn */
    free(got);
    folder_close(&folder);
}

/* ---- Error rates -------------------------------------------------------- */

/* Edits of all transcripts over all labels, by hand. */
static double rate_by_hand(const tarn_model *model, const struct folder *folder, size_t count,
                           size_t beam)
{
    tarn_recognizer *const r = recognizer_of(model, beam);
    char line[512], audio[64], labels[64];
    FILE *const table = fopen(folder_file(folder, "test.tsv"), "r");
    size_t edits = 0;
    size_t wanted_all = 0;
    tarn_error err;

    assert_non_null(table);
    assert_non_null(fgets(line, sizeof line, table));
    for (size_t i = 0; i < count; i++) {
        int32_t wanted[3], *found;
        tarn_transcript transcript;

        assert_non_null(fgets(line, sizeof line, table));
        assert_int_equal(sscanf(line, "%63s %*s %*s %63[^\t]", audio, labels), 2);
        check_ok(tn_symbols_number(&r->profile.symbols, wanted, labels, TN_PHONES, &err), &err);
        check_ok(tarn_recognizer_file(r, &transcript, folder_file(folder, audio), &err), &err);
        found = take(transcript.count + 1, sizeof *found);
        for (size_t k = 0; k < transcript.count; k++)
            assert_true(tn_symbols_find(&r->profile.symbols, &found[k],
                                        transcript.symbols[k].symbol,
                                        strlen(transcript.symbols[k].symbol)));
        void *const scratch = take(tn_edit_scratch_size(transcript.count), 1);

        edits += tn_edits_sum(tn_edit_distance(wanted, 3, found, transcript.count, scratch));
        wanted_all += 3;
        free(scratch);
        free(found);
    }
    fclose(table);
    tarn_recognizer_free(r);
    return (double)edits / (double)wanted_all;
}

/* A model as training leaves it, whose every file is transcribed alone. */
static void an_evaluation_has_the_edits_of_all_transcripts(void **state)
{
    struct folder data = folder_open(), out = folder_open();
    tarn_config config;
    tarn_settings settings;
    tarn_validation validation;
    tarn_model *model;
    tarn_error err;

    (void)state;
    speech_folder_fill(&data, 8, 5, 2, 0.3);
    check_ok(tarn_config_start(&config, "speech", "speech-tiny", &err), &err);
    check_ok(tarn_settings_start(&settings, "speech", &err), &err);
    check_ok(tarn_settings_set(&settings, "data", data.path, &err), &err);
    settings.steps = 3;
    settings.batch = 3;
    check_ok(tarn_train(&config, &settings,
                        &(tarn_train_desc){.out = out.path,
                                           .host = {.threads = 1, .cpu = forced_cpu()}},
                        &err),
             &err);
    check_ok(tarn_model_load(&model, folder_file(&out, "model.safetensors"), NULL, &err), &err);
    assert_int_equal(model->arch.config.symbols, 4);
    assert_string_equal(model->arch.config.task, "speech:symbols=4");
    for (size_t i = 0; i < model->arch.head.outputs * model->arch.config.width; i++)
        model->weights.predictor[i] *= 10.0f;
    for (size_t beam = 0; beam < 4; beam += 3) {
        const tarn_evaluate_desc desc = {.host = {.threads = 1, .cpu = forced_cpu()},
                                         .beam = beam};

        check_ok(tarn_evaluate(&validation, model, &settings, &desc, &err), &err);
        assert_true(validation.positions == 5.0 && validation.sums.labels == 15.0);
        assert_true(validation.metric > 0.0);
        assert_true(fabs(validation.metric - rate_by_hand(model, &data, 5, beam)) < 1e-12);
    }
    tarn_model_free(model);
    tree_close(&data);
    folder_close(&out);
}

/* ---- Lengths ------------------------------------------------------------ */

/* 148 frames by threes are 50 positions, though memory is taken for 192. */
static void recordings_may_be_as_long_as_learned_positions(void **state)
{
    static const char *const settings[] = {"position", "learned", "positions", "50",
                                           "stack",    "3",       NULL};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "sound.wav");
    tarn_model *const model = speech_model(settings);
    tarn_recognizer *const r = recognizer_of(model, 0);
    tarn_transcript transcript;
    tarn_error err;

    (void)state;
    speech_put(path, 24000, 3);
    check_ok(tarn_recognizer_file(r, &transcript, path, &err), &err);
    speech_put(path, 32000, 3);
    assert_int_equal(tarn_recognizer_file(r, &transcript, path, &err), TARN_EINVAL);
    tarn_recognizer_free(r);
    tarn_model_free(model);
    folder_close(&folder);
}

/* ---- Refusals ----------------------------------------------------------- */

static void a_file_that_cannot_be_read_leaves_the_recognizer_as_it_was(void **state)
{
    struct folder folder = folder_open();
    tarn_model *const model = speech_model(NULL);
    tarn_recognizer *const r = recognizer_of(model, 0);
    const char *const good = folder_file(&folder, "good.wav"), *const bad = folder_file(
                                                                   &folder, "bad.wav");
    tarn_transcript transcript;
    tarn_error err;

    (void)state;
    speech_put(good, 8000, 3);
    file_put(bad, "RIFFnothing", 11);
    check_ok(tarn_recognizer_file(r, &transcript, good, &err), &err);
    char *const text = strdup(transcript.text);

    assert_int_equal(tarn_recognizer_file(r, &transcript, bad, &err), TARN_EFORMAT);
    assert_int_equal(transcript.count, 0);
    speech_put(bad, 300, 3);
    assert_int_equal(tarn_recognizer_file(r, &transcript, bad, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "300 samples"));
    assert_int_equal(tarn_recognizer_file(r, &transcript, folder.path, &err), TARN_EIO);
    check_ok(tarn_recognizer_file(r, &transcript, good, &err), &err);
    assert_string_equal(transcript.text, text);
    assert_true(fabs(transcript.seconds - 0.5) < 1e-9);
    free(text);
    tarn_recognizer_free(r);
    tarn_model_free(model);
    folder_close(&folder);
}

/* Not a transcript of whatever NaN compares to. */
static void weights_that_overflow_are_an_error_of_either_way(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    tarn_model *const model = speech_model(NULL);
    float *const samples = sound(16000, 5);
    const tarn_heard *heard;
    tarn_transcript transcript;
    tarn_error err = {0};
    size_t count;

    (void)state;
    speech_put(path, 16000, 5);
    for (size_t i = 0; i < model->count; i++)
        model->values[i] = 3e38f;
    tarn_recognizer *const r = recognizer_of(model, 0);

    assert_int_equal(tarn_recognizer_file(r, &transcript, path, &err), TARN_ENUMBER);
    assert_non_null(strstr(err.text, "not finite"));
    check_ok(tarn_recognizer_begin(r, 16000, &err), &err);
    assert_int_equal(tarn_recognizer_push(r, &heard, &count, samples, 16000, &err),
                     TARN_ENUMBER);
    tarn_recognizer_free(r);
    tarn_model_free(model);
    free(samples);
    folder_close(&folder);
}

static void check_refused(const tarn_model *model, tarn_status status, const char *says)
{
    tarn_recognizer *r = (tarn_recognizer *)(uintptr_t)64;
    tarn_error err = {0};

    assert_int_equal(tarn_recognizer_create(&r, model, &(tarn_recognizer_desc){0}, &err),
                     status);
    assert_null(r);
    assert_non_null(strstr(err.text, says));
}

static void models_that_are_none_of_speech_are_refused(void **state)
{
    tarn_model *const model = speech_model(NULL), *const symbols =
                                                      model_of(model_variant_at(0));
    tarn_error err;

    (void)state;
    check_refused(symbols, TARN_EINVAL, "reads 0 floats per frame");
    assert_int_equal(tarn_recognizer_create(&(tarn_recognizer *){NULL}, model,
                                            &(tarn_recognizer_desc){.host.cpu = "z80"}, &err),
                     TARN_EUNKNOWN);
    give_note(model, TN_PHONES, TN_NORMALISE_GLOBAL, SYMBOLS - 1);
    check_refused(model, TARN_EFORMAT, "names 5 symbols, but it has 6");
    check_ok(tn_model_note(model, "{}", &err), &err);
    check_refused(model, TARN_EFORMAT, "version");
    check_ok(tn_model_note(model, NULL, &err), &err);
    check_refused(model, TARN_EFORMAT, "has no speech metadata");
    tarn_model_free(model);
    tarn_model_free(symbols);
}

static void check_no_stream(tarn_model *model, size_t beam, const char *says)
{
    tarn_recognizer *const r = recognizer_of(model, beam);
    const tarn_heard *heard;
    size_t count;
    tarn_error err = {0};

    assert_int_equal(tarn_recognizer_begin(r, 16000, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, says));
    assert_int_equal(tarn_recognizer_push(r, &heard, &count, NULL, 0, &err), TARN_EINVAL);
    assert_int_equal(tarn_recognizer_end(r, &heard, &count, &err), TARN_EINVAL);
    tarn_recognizer_free(r);
}

static void what_cannot_be_heard_as_it_arrives_is_refused(void **state)
{
    static const char *const not_causal[] = {"causal", "false", NULL};
    static const char *const lsh[] = {"attention", "lsh", NULL};
    tarn_model *const model = speech_model(NULL), *const both = speech_model(not_causal),
                      *const hashed = speech_model(lsh);

    (void)state;
    check_no_stream(both, 0, "is not causal");
    check_no_stream(hashed, 0, "recurrent form");
    check_no_stream(model, 4, "beam is 4; it must be 0");
    give_note(model, TN_PHONES, TN_NORMALISE_SPEAKER, SYMBOLS);
    check_no_stream(model, 0, "normalised per speaker");
    tarn_model_free(model);
    tarn_model_free(both);
    tarn_model_free(hashed);
}

static void characters_have_nothing_between_them(void **state)
{
    tarn_model *const model = speech_model(NULL);
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    tarn_transcript transcript;
    tarn_error err;

    (void)state;
    speech_put(path, 16000, 3);
    for (int kind = TN_PHONES; kind <= TN_WORDS; kind++) {
        give_note(model, (enum tn_symbol_kind)kind, TN_NORMALISE_NONE, SYMBOLS);
        tarn_recognizer *const r = recognizer_of(model, 0);

        check_ok(tarn_recognizer_file(r, &transcript, path, &err), &err);
        assert_true(transcript.count > 1);
        assert_int_equal(strlen(transcript.text),
                         kind == TN_CHARACTERS ? transcript.count : 2 * transcript.count - 1);
        tarn_recognizer_free(r);
    }
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sounds_that_arrive_are_heard_as_recordings_are),
        cmocka_unit_test(an_evaluation_has_the_edits_of_all_transcripts),
        cmocka_unit_test(recordings_may_be_as_long_as_learned_positions),
        cmocka_unit_test(a_file_that_cannot_be_read_leaves_the_recognizer_as_it_was),
        cmocka_unit_test(weights_that_overflow_are_an_error_of_either_way),
        cmocka_unit_test(models_that_are_none_of_speech_are_refused),
        cmocka_unit_test(what_cannot_be_heard_as_it_arrives_is_refused),
        cmocka_unit_test(characters_have_nothing_between_them),
    };

    return cmocka_run_group_tests_name("recognizer", tests, NULL, NULL);
}
