/* SPDX-License-Identifier: MIT */
/* cache_bytes.c - whatever stands in an entry of a feature cache, the features are those of the
 * audio file, or as many finite numbers as the entry's checksum vouches for. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "data/feature_cache.h"
#include "file/file_bytes.h"
#include "support/fuzzing.h"

enum { SAMPLES = 800, HEAD = 64, CHECK = 56, FRAMES_MOST = 100 };

static struct tn_feature_cache cache;
static char audio[256], entry[64];
static struct base base;

static void put_number(uint8_t *at, unsigned value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        at[i] = (uint8_t)(value >> (8 * i));
}

/* A WAV file of 50 ms at 16 kHz. */
static void make_audio(void)
{
    uint8_t wav[44 + 2 * SAMPLES] = "RIFF----WAVEfmt ";

    put_number(wav + 4, sizeof wav - 8, 4);
    put_number(wav + 16, 16, 4);
    put_number(wav + 20, 1, 2);
    put_number(wav + 22, 1, 2);
    put_number(wav + 24, 16000, 4);
    put_number(wav + 28, 32000, 4);
    put_number(wav + 32, 2, 2);
    put_number(wav + 34, 16, 2);
    memcpy(wav + 36, "data", 4);
    put_number(wav + 40, 2 * SAMPLES, 4);
    for (size_t i = 0; i < SAMPLES; i++)
        put_number(wav + 44 + 2 * i, (unsigned)(i * 37 % 2000), 2);
    snprintf(audio, sizeof audio, "%s", input_file("a.wav", wav, sizeof wav));
}

static void read_features(void)
{
    struct tn_frames frames;

    need(tn_feature_cache_read(&cache, &frames, audio, 1.0, FRAMES_MOST, NULL) == TARN_OK);
    need(frames.count > 0 && frames.count <= FRAMES_MOST);
    need(frames.count == tn_features_frames(frames.samples, frames.rate, 1.0));
    tn_frames_free(&frames);
}

/* The entry that the cache makes, and its name. */
static void make(void)
{
    DIR *const entries = (make_audio(), opendir(input_folder()));
    struct tn_bytes bytes;
    char path[256];

    need(entries && tn_feature_cache_open(&cache, input_folder(), NULL) == TARN_OK);
    read_features();
    rewinddir(entries);
    for (struct dirent *e; (e = readdir(entries)) != NULL;)
        if (strstr(e->d_name, ".mel"))
            snprintf(entry, sizeof entry, "%.60s", e->d_name);
    closedir(entries);
    snprintf(path, sizeof path, "%s/%s", input_folder(), entry);
    need(*entry && tn_bytes_read(&bytes, path, SIZE_MAX / 2, NULL) == TARN_OK);
    base = (struct base){bytes.data, bytes.size};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!base.data)
        make();
    input_file(entry, data, size);
    read_features();
    return 0;
}

/* With the checksum of what is there now, most of the time. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < HEAD && base.size <= most) {
        memcpy(data, base.data, base.size);
        size = base.size;
    }
    size = LLVMFuzzerMutate(data, size, most);
    if (size < HEAD || pick(&seed, 8) == 0)
        return size;
    memset(data + CHECK, 0, HEAD - CHECK);
    put_number(data + CHECK, (unsigned)crc32_z(0, data, size), 4);
    return size;
}
