/* SPDX-License-Identifier: MIT */
/* make_tones.c FOLDER TRAINING TEST - a folder of speech in which each phone is a tone, for
 * scripts: train.tsv, test.tsv, and WAV files that they name; and files that are like no other:
 *
 *     odd/eight.wav 8 bits, odd/float.wav floats, odd/slow.wav, .flac and .ogg 8 kHz,
 *     odd/stereo.wav two channels: the tones AA B; odd/silence.wav half a second of zeros;
 *     odd/none.wav no sample */
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base.h"
#include "support/tones.h"

static void put(const char *path, int format, int rate, int channels, const float *samples,
                size_t count)
{
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    SNDFILE *const file = sf_open(path, SFM_WRITE, &info);

    if (!file || sf_writef_float(file, samples, (sf_count_t)count) != (sf_count_t)count) {
        fprintf(stderr, "%s: %s\n", path, sf_strerror(file));
        exit(1);
    }
    sf_close(file);
}

static void put_utterance(FILE *table, const char *folder, const char *part, size_t number)
{
    size_t tones[8], samples, count;
    struct tn_random random;
    char path[1024];

    tn_random_seed(&random, 1000 * strlen(part) + number);
    count = 2 + (size_t)(5 * tn_random_uniform(&random));
    for (size_t i = 0; i < count; i++)
        tones[i] = (size_t)(TONES * tn_random_uniform(&random));
    float *const sound = tones_make(tones, count, number, &samples);

    snprintf(path, sizeof path, "%s/%s/%zu.wav", folder, part, number);
    put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, TONE_RATE, 1, sound, samples);
    free(sound);
    fprintf(table, "%s/%zu.wav\t", part, number);
    for (size_t i = 0; i < count; i++)
        fprintf(table, "%s%s", i ? " " : "", tone_names[tones[i]]);
    fprintf(table, "\n");
}

static void put_part(const char *folder, const char *part, size_t count)
{
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", folder, part);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s.tsv", folder, part);
    FILE *const table = fopen(path, "w");

    if (!table)
        exit(1);
    fprintf(table, "audio\tphones\n");
    for (size_t i = 0; i < count; i++)
        put_utterance(table, folder, part, i);
    fclose(table);
}

static void put_odd(const char *folder)
{
    size_t samples;
    float *const sound = tones_make((const size_t[]){0, 1}, 2, 7, &samples);
    float *const both = calloc(2 * samples + 16000, sizeof *both);
    const struct {
        const char *name;
        int format, rate, channels;
    } kinds[] = {{"eight.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8, TONE_RATE, 1},
                 {"float.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, TONE_RATE, 1},
                 {"stereo.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24, TONE_RATE, 2},
                 {"slow.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, TONE_RATE / 2, 1},
                 {"slow.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, TONE_RATE / 2, 1},
                 {"slow.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, TONE_RATE / 2, 1}};
    char path[1024];

    snprintf(path, sizeof path, "%s/odd", folder);
    mkdir(path, 0777);
    for (size_t k = 0; both && k < sizeof kinds / sizeof kinds[0]; k++) {
        const size_t skip = kinds[k].rate == TONE_RATE ? 1 : 2;
        const size_t channels = (size_t)kinds[k].channels;

        for (size_t i = 0; i < samples / skip; i++)
            for (size_t c = 0; c < channels; c++)
                both[i * channels + c] = sound[i * skip];
        snprintf(path, sizeof path, "%s/odd/%s", folder, kinds[k].name);
        put(path, kinds[k].format, kinds[k].rate, kinds[k].channels, both, samples / skip);
    }
    memset(both, 0, 8000 * sizeof *both);
    snprintf(path, sizeof path, "%s/odd/silence.wav", folder);
    put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, TONE_RATE, 1, both, 8000);
    snprintf(path, sizeof path, "%s/odd/none.wav", folder);
    put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, TONE_RATE, 1, both, 0);
    free(both);
    free(sound);
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: make_tones FOLDER TRAINING TEST\n");
        return 2;
    }
    mkdir(arguments[1], 0777);
    put_part(arguments[1], "train", (size_t)atoi(arguments[2]));
    put_part(arguments[1], "test", (size_t)atoi(arguments[3]));
    put_odd(arguments[1]);
    return 0;
}
