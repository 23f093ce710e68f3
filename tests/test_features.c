/* SPDX-License-Identifier: MIT */
/* test_features.c - log-mel frames against their definition (vectors/log_mel.py), resampling
 * against sines, and sounds in pieces against whole ones. */
#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

#include "data/features.h"
#include "support/audio_files.h"
#include "support/folder.h"
#include "tarn/speech.h"
#include "vectors/log_mel_vectors.h"

enum { VECTOR_SAMPLES = sizeof log_mel_samples / sizeof log_mel_samples[0] };

static void frames_are_those_of_the_definition(void **state)
{
    const size_t expected = sizeof log_mel_frames / sizeof log_mel_frames[0] / TN_MEL_BANDS;
    float samples[VECTOR_SAMPLES], frames[TN_MEL_BANDS * 16];
    struct tn_log_mel mel;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < VECTOR_SAMPLES; i++)
        samples[i] = (float)log_mel_samples[i] / 32768.0f;
    check_ok(tn_log_mel_open(&mel, &err), &err);
    assert_int_equal(tn_log_mel_ready(&mel, VECTOR_SAMPLES), expected);
    assert_int_equal(tn_log_mel_push(&mel, frames, samples, VECTOR_SAMPLES), expected);
    for (size_t i = 0; i < expected * TN_MEL_BANDS; i++)
        if (!(fabsf(frames[i] - log_mel_frames[i]) < 2e-4f))
            fail_msg("frame %zu, band %zu: %g; expected %g", i / TN_MEL_BANDS, i % TN_MEL_BANDS,
                     (double)frames[i], (double)log_mel_frames[i]);
    tn_log_mel_close(&mel);
    tn_log_mel_close(&mel);
}

/* The frames of one sound, pushed in pieces of drawn sizes up to `piece`. */
static size_t push_all(struct tn_features *features, float *frames, size_t room,
                       const float *samples, size_t count, size_t piece, uint64_t seed)
{
    struct tn_random random;
    size_t made = 0;

    tn_random_seed(&random, seed);
    while (count > 0) {
        const size_t n = tn_min(count, 1 + below(&random, piece));

        assert_true(made + tn_features_most(features, n) <= room);
        made += tn_features_push(features, frames + made * TN_MEL_BANDS, samples, n);
        samples += n;
        count -= n;
    }
    assert_true(made + tn_features_most(features, 0) <= room);
    return made + tn_features_end(features, frames + made * TN_MEL_BANDS);
}

static void pieces_give_the_frames_of_the_whole_to_the_bit(void **state)
{
    static const size_t rates[] = {16000, 8000, 11025, 44100, 48000, 16000, 192000, 1000000};
    static const double speeds[] = {1.0, 1.0, 1.0, 0.9, 1.0, 1.1, 1.0, 2.0};
    enum { COUNT = 30000, ROOM = 2000 };
    float *const samples = sound(COUNT, 5);
    float *const whole = take(ROOM * TN_MEL_BANDS, sizeof *whole);
    float *const parts = take(ROOM * TN_MEL_BANDS, sizeof *parts);

    (void)state;
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        struct tn_features features;
        tarn_error err;

        check_ok(tn_features_open(&features, rates[r], speeds[r], &err), &err);
        const size_t count = push_all(&features, whole, ROOM, samples, COUNT, COUNT, 1);

        assert_int_equal(count, tn_features_frames(COUNT, rates[r], speeds[r]));
        for (size_t piece = 1; piece < 20000; piece = 3 * piece + 1) {
            memset(parts, 255, count * TN_MEL_BANDS * sizeof *parts);
            assert_int_equal(push_all(&features, parts, ROOM, samples, COUNT, piece, piece),
                             count);
            assert_memory_equal(parts, whole, count * TN_MEL_BANDS * sizeof *parts);
        }
        tn_features_close(&features);
        if (speeds[r] == 1.0) {
            memset(parts, 255, count * TN_MEL_BANDS * sizeof *parts);
            assert_int_equal(tarn_features_count(COUNT, rates[r]), count);
            check_ok(tarn_features(parts, samples, COUNT, rates[r], &err), &err);
            assert_memory_equal(parts, whole, count * TN_MEL_BANDS * sizeof *parts);
        }
    }
    assert_int_equal(tarn_features(parts, samples, COUNT, 1, NULL), TARN_EINVAL);
    assert_int_equal(tarn_features(parts, NULL, COUNT, 16000, NULL), TARN_EINVAL);
    free(samples);
    free(whole);
    free(parts);
}

static void short_sounds_have_no_frames(void **state)
{
    (void)state;
    assert_int_equal(tn_log_mel_frames(0), 0);
    assert_int_equal(tn_log_mel_frames(399), 0);
    assert_int_equal(tn_log_mel_frames(400), 1);
    assert_int_equal(tn_log_mel_frames(559), 1);
    assert_int_equal(tn_log_mel_frames(560), 2);
    assert_int_equal(tn_features_frames(16000, 16000, 1.0), 98);
    assert_int_equal(tn_features_frames(8000, 8000, 1.0), 98);
}

static size_t resample(struct tn_resampler *resampler, float *out, const float *samples,
                       size_t count)
{
    size_t total = 0, made = 1;

    while (count > 0) {
        const size_t taken = tn_resampler_push(resampler, out + total, &made, samples, count);

        assert_true(made <= resampler->most);
        samples += taken;
        count -= taken;
        total += made;
    }
    while ((made = tn_resampler_end(resampler, out + total)) > 0)
        total += made;
    return total;
}

/* A sine stays one, at every rate, where the filter passes; its end is where it should be. */
static void a_resampled_sine_is_that_sine(void **state)
{
    static const double ratios[] = {2.0, 16000.0 / 11025, 16000.0 / 44100, 1.0 / 3, 1.0 / 1.1};
    enum { COUNT = 20000 };
    float *const in = take(COUNT, sizeof *in), *const out = take(6 * COUNT, sizeof *out);

    (void)state;
    for (size_t r = 0; r < sizeof ratios / sizeof ratios[0]; r++) {
        const double slow = fmin(1.0, ratios[r]);
        const double step = 3.14159265358979 * 0.8 * slow; /* where 0.01 dB are lost at most */
        struct tn_resampler resampler;
        tarn_error err;

        for (size_t i = 0; i < COUNT; i++)
            in[i] = (float)sin(step * (double)i);
        check_ok(tn_resampler_open(&resampler, ratios[r], &err), &err);
        const size_t made = resample(&resampler, out, in, COUNT);

        assert_int_equal(made, tn_resampled(COUNT, ratios[r]));
        for (size_t i = 1000; i < made - 1000; i++)
            assert_true(fabs((double)out[i] - sin(step * (double)i / ratios[r])) < 1e-3);
        tn_resampler_close(&resampler);
        tn_resampler_close(&resampler);
    }
    free(in);
    free(out);
}

/* What the slower rate cannot hold is gone, not folded down. */
static void tones_above_the_band_are_removed(void **state)
{
    enum { COUNT = 30000 };
    float *const in = take(COUNT, sizeof *in), *const out = take(COUNT, sizeof *out);
    struct tn_resampler resampler;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        in[i] = (float)sin(3.14159265358979 * 0.5 * (double)i);
    check_ok(tn_resampler_open(&resampler, 16000.0 / 44100, &err), &err);
    const size_t made = resample(&resampler, out, in, COUNT);

    for (size_t i = 1000; i < made - 1000; i++)
        assert_true(fabsf(out[i]) < 1e-4f);
    tn_resampler_close(&resampler);
    free(in);
    free(out);
}

static void a_file_has_the_frames_of_its_samples(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    float *const samples = sound(20000, 6);
    float *const frames = take(400 * TN_MEL_BANDS, sizeof *frames);
    static const size_t rates[] = {16000, 44100};
    tarn_error err;

    (void)state;
    for (size_t r = 0; r < 2; r++) {
        struct tn_features features;
        struct tn_frames got;

        audio_put(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, rates[r], 1, samples, 20000);
        check_ok(tn_features_read(&got, path, 1.1, 1000, &err), &err);
        check_ok(tn_features_open(&features, rates[r], 1.1, &err), &err);
        const size_t count = push_all(&features, frames, 400, samples, 20000, 20000, 1);

        assert_int_equal(got.count, count);
        assert_int_equal(got.count, tn_features_frames(20000, rates[r], 1.1));
        assert_int_equal(got.samples, 20000);
        assert_int_equal(got.rate, rates[r]);
        assert_memory_equal(got.data, frames, count * TN_MEL_BANDS * sizeof *frames);
        tn_features_close(&features);
        tn_frames_free(&got);
        tn_frames_free(&got);
    }
    free(samples);
    free(frames);
    folder_close(&folder);
}

static void silence_is_finite(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    float samples[8000] = {0};
    struct tn_frames got;
    tarn_error err;

    (void)state;
    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, samples, 8000);
    check_ok(tn_features_read(&got, path, 1.0, 1000, &err), &err);
    assert_int_equal(got.count, 48);
    for (size_t i = 0; i < got.count * TN_MEL_BANDS; i++)
        assert_true(fabsf(got.data[i] - logf(1.1920929e-7f)) < 1e-6f);
    tn_frames_free(&got);
    folder_close(&folder);
}

static void what_is_too_long_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    struct tn_frames got;
    tarn_error err;

    (void)state;
    speech_put(path, 32000, 7);
    check_ok(tn_features_read(&got, path, 1.0, 198, &err), &err);
    tn_frames_free(&got);
    assert_int_equal(tn_features_read(&got, path, 1.0, 197, &err), TARN_EINVAL);
    assert_non_null(
        strstr(err.text, "a.wav: is at least 2.00 seconds long; expected at most 1.97"));
    assert_null(got.data);
    assert_int_equal(tn_features_read(&got, path, 2.5, 197, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "speed is 2.5; it must be from 0.5 to 2"));
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_those_of_the_definition),
        cmocka_unit_test(pieces_give_the_frames_of_the_whole_to_the_bit),
        cmocka_unit_test(short_sounds_have_no_frames),
        cmocka_unit_test(a_resampled_sine_is_that_sine),
        cmocka_unit_test(tones_above_the_band_are_removed),
        cmocka_unit_test(a_file_has_the_frames_of_its_samples),
        cmocka_unit_test(silence_is_finite),
        cmocka_unit_test(what_is_too_long_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
