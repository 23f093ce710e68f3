/* SPDX-License-Identifier: MIT */
/* test_audio.c - the forms of audio files, in pieces; what is refused, and how. */
#include <fcntl.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/audio.h"
#include "file/file_bytes.h"
#include "support/audio_files.h"
#include "support/folder.h"

enum { COUNT = 20000 };

/* All samples, `piece` at a time, or the failure: of a path, or, if that is NULL, of what a
 * descriptor delivers. */
static tarn_status read_from(float *samples, size_t *total, const char *path, int descriptor,
                             size_t piece, tarn_error *err)
{
    tarn_audio *audio;
    size_t count = 1;
    tarn_status status = tarn_audio_open(&audio, path, descriptor, 0, err);

    *total = 0;
    while (status == TARN_OK && count > 0) {
        status = tarn_audio_read(audio, samples + *total, &count, piece, err);
        *total += count;
        assert_true(count <= piece && *total <= 2 * COUNT);
    }
    tarn_audio_close(audio);
    return status;
}

static tarn_status read_all(float *samples, size_t *total, const char *path, size_t piece,
                            tarn_error *err)
{
    return read_from(samples, total, path, -1, piece, err);
}

static const struct form {
    const char *name;
    int format;
    float within;
} forms[] = {
    {"u8.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, 1.0f / 100},
    {"s16.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 1.0f / 30000},
    {"s24.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, 1.0f / 8000000},
    {"s32.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_32, 1.0f / 8000000},
    {"float.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 0.0f},
    {"double.wav", SF_FORMAT_WAV | SF_FORMAT_DOUBLE, 0.0f},
    {"wide.wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16, 1.0f / 30000},
    {"s16.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 1.0f / 30000},
    {"nist.wav", SF_FORMAT_NIST | SF_FORMAT_PCM_16, 1.0f / 30000},
};

static void every_form_reads_in_any_pieces(void **state)
{
    struct folder folder = folder_open();
    float *const samples = sound(COUNT, 1), *const got = take(2 * COUNT, sizeof *got);
    static const size_t pieces[] = {1000, 4096, 100000};
    tarn_error err;
    size_t total;

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        const char *const path = folder_file(&folder, forms[f].name);

        audio_put(path, forms[f].format, 22050, 1, samples, COUNT);
        for (size_t p = 0; p < 3; p++) {
            check_ok(read_all(got, &total, path, pieces[p], &err), &err);
            assert_int_equal(total, COUNT);
            for (size_t i = 0; i < COUNT; i++)
                assert_true(fabsf(got[i] - samples[i]) <= forms[f].within);
        }
    }
    free(samples);
    free(got);
    folder_close(&folder);
}

static void the_header_tells_rate_and_length(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.flac");
    float *const samples = sound(1000, 2);
    tarn_audio *audio;
    tarn_error err;

    (void)state;
    audio_put(path, SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 44100, 2, samples, 500);
    check_ok(tarn_audio_open(&audio, path, -1, 0, &err), &err);
    assert_int_equal(audio->rate, 44100);
    assert_int_equal(audio->channels, 2);
    assert_int_equal(audio->claimed, 500);
    tarn_audio_close(audio);
    free(samples);
    folder_close(&folder);
}

static void channels_are_mixed_by_their_mean(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    float samples[3 * 300], got[2 * COUNT];
    size_t total;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        samples[3 * i] = 0.5f;
        samples[3 * i + 1] = (float)i / 1024.0f;
        samples[3 * i + 2] = -0.25f;
    }
    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 3, samples, 300);
    check_ok(read_all(got, &total, path, 4096, &err), &err);
    assert_int_equal(total, 300);
    for (size_t i = 0; i < 300; i++)
        assert_true(fabsf(got[i] - (0.25f + (float)i / 1024.0f) / 3.0f) < 1e-6f);
    folder_close(&folder);
}

static void check_refused(const char *path, tarn_status expected, const char *words)
{
    static float got[2 * COUNT];
    tarn_error err = {TARN_OK, ""};
    size_t total;

    if (read_all(got, &total, path, 4096, &err) != expected || !strstr(err.text, words))
        fail_msg("%s: '%s'; expected '%s'", path, err.text, words);
}

static void what_is_no_audio_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");

    (void)state;
    check_refused(path, TARN_EIO, "No such file");
    file_put(path, "", 0);
    check_refused(path, TARN_EFORMAT, "a.wav: is empty; expected an audio file");
    file_put(path, "hello, this is a text and no sound at all", 41);
    check_refused(path, TARN_EFORMAT, "not an audio file; expected WAV, FLAC or NIST SPHERE");
    check_refused(folder.path, TARN_EIO, "is a folder");
    assert_int_equal(mkfifo(folder_file(&folder, "pipe.wav"), 0600), 0);
    check_refused(folder_file(&folder, "pipe.wav"), TARN_EIO, "is a device, pipe");
    file_put(folder_file(&folder, "a.vox"), "hello, this is a text", 21);
    check_refused(folder_file(&folder, "a.vox"), TARN_EFORMAT, "WAV, FLAC or NIST SPHERE");
    folder_close(&folder);
}

static void samples_that_are_no_numbers_are_refused_with_their_place(void **state)
{
    static const struct {
        float sample;
        const char *words;
    } cases[] = {{NAN, "sample 7000 is nan"},
                 {INFINITY, "sample 7000 is inf"},
                 {-1e30f, "sample 7000 is -1e+30; expected samples between about -1 and 1"}};
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    float *const samples = sound(COUNT, 3);

    (void)state;
    for (size_t c = 0; c < 3; c++) {
        samples[7000] = cases[c].sample;
        audio_put(path, SF_FORMAT_WAV | SF_FORMAT_FLOAT, 16000, 1, samples, COUNT);
        if (isnan(cases[c].sample))
            check_refused(path, TARN_EFORMAT, "sample 7000 is ");
        else
            check_refused(path, TARN_EFORMAT, cases[c].words);
    }
    free(samples);
    folder_close(&folder);
}

static void rates_that_no_recording_has_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    float samples[100] = {0};

    (void)state;
    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 100, 1, samples, 100);
    check_refused(path, TARN_EFORMAT,
                  "has a sample rate of 100 Hz; expected 1000 to 1000000 Hz");
    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 2000000, 1, samples, 100);
    check_refused(path, TARN_EFORMAT, "has a sample rate of 2000000 Hz");
    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 65, samples, 1);
    check_refused(path, TARN_EFORMAT, "has 65 channels; expected 1 to 64");
    folder_close(&folder);
}

/* Every start of a FLAC file is refused but the whole; of a WAV file what is there is read. */
static void truncated_files_end_in_a_sentence_or_in_what_is_there(void **state)
{
    struct folder folder = folder_open();
    const char *const whole = folder_file(&folder, "whole");
    const char *const part = folder_file(&folder, "part");
    float *const samples = sound(3000, 4), *const got = take(2 * COUNT, sizeof *got);

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        const bool flac = (forms[f].format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;
        struct tn_bytes bytes;
        tarn_error err;
        size_t total;

        audio_put(whole, forms[f].format, 16000, 1, samples, 3000);
        check_ok(tn_bytes_read(&bytes, whole, 1 << 20, &err), &err);
        for (size_t size = 0; size < bytes.size; size += size < 200 ? 1 : 97) {
            file_put(part, bytes.data, size);
            err.text[0] = '\0';
            const tarn_status status = read_all(got, &total, part, 4096, &err);

            assert_true(status == TARN_OK ? !flac && total < 3000 : err.text[0] != '\0');
        }
        tn_bytes_free(&bytes);
    }
    free(samples);
    free(got);
    folder_close(&folder);
}

/* A header that claims two thousand million samples costs nothing. */
static void a_header_that_lies_is_not_believed(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a.wav");
    struct tn_bytes bytes;
    float got[400];
    size_t total;
    tarn_error err;

    (void)state;
    speech_put(path, 300, 5);
    check_ok(tn_bytes_read(&bytes, path, 1 << 20, &err), &err);
    memcpy(bytes.data + 4, "\x24\xff\xff\xff", 4);
    memcpy(bytes.data + 40, "\x00\xff\xff\xff", 4);
    file_put(path, bytes.data, bytes.size);
    check_ok(read_all(got, &total, path, 400, &err), &err);
    assert_int_equal(total, 300);
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

/* Bit by bit as libsndfile reads the file. */
static void a_stream_has_the_samples_of_the_file(void **state)
{
    struct folder folder = folder_open();
    float *const samples = sound(2 * COUNT, 1),
                 *const of_file = take(2 * COUNT, sizeof *of_file),
                 *const got = take(2 * COUNT, sizeof *got);
    tarn_error err;
    size_t total, expected;

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++) {
        const char *const path = folder_file(&folder, forms[f].name);

        audio_put(path, forms[f].format, 22050, 1 + f % 2, samples, COUNT);
        check_ok(read_all(of_file, &expected, path, 1000, &err), &err);
        const int file = open(path, O_RDONLY);
        const tarn_status status = read_from(got, &total, NULL, file, 777, &err);

        close(file);
        if (f >= 7) { /* FLAC, NIST */
            assert_int_equal(status, TARN_EFORMAT);
            continue;
        }
        check_ok(status, &err);
        assert_int_equal(total, expected);
        assert_memory_equal(got, of_file, total * sizeof *got);
    }
    free(samples);
    free(of_file);
    free(got);
    folder_close(&folder);
}

/* Like every descriptor that the library opens. */
static void a_stream_is_not_inherited_by_other_programs(void **state)
{
    const int file = open("/dev/null", O_RDONLY);
    tarn_audio *audio;
    tarn_error err;

    (void)state;
    check_ok(tarn_audio_open(&audio, NULL, file, 16000, &err), &err);
    assert_true(fcntl(audio->descriptor, F_GETFD) & FD_CLOEXEC);
    tarn_audio_close(audio);
    close(file);
}

/* Found by fuzz/audio_stream.c: libsndfile reads before the beginning of its buffer where it
 * cannot rewind. */
static void a_hostile_stream_is_refused(void **state)
{
    static const unsigned char bytes[] = {0xff, 0xff, 0x94, 0x00, 0xc2, 0x00, 0x23, 0x01, 0x84,
                                          0x01, 0x3d, 0x00, 0x00, 0x81, 0x61, 0x00, 0xc2, 0x00,
                                          0x23, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                          0x00, 0x00, 0x00, 0x2b, 0x04, 0xe5, 0x01, 0x8c};
    tarn_error err;
    float sample[8];
    size_t total;
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], bytes, sizeof bytes), sizeof bytes);
    close(ends[1]);
    assert_int_equal(read_from(sample, &total, NULL, ends[0], 8, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "standard input: is damaged or not an audio file"));
    close(ends[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_reads_in_any_pieces),
        cmocka_unit_test(the_header_tells_rate_and_length),
        cmocka_unit_test(channels_are_mixed_by_their_mean),
        cmocka_unit_test(what_is_no_audio_is_refused),
        cmocka_unit_test(samples_that_are_no_numbers_are_refused_with_their_place),
        cmocka_unit_test(rates_that_no_recording_has_are_refused),
        cmocka_unit_test(truncated_files_end_in_a_sentence_or_in_what_is_there),
        cmocka_unit_test(a_header_that_lies_is_not_believed),
        cmocka_unit_test(a_stream_has_the_samples_of_the_file),
        cmocka_unit_test(a_stream_is_not_inherited_by_other_programs),
        cmocka_unit_test(a_hostile_stream_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
