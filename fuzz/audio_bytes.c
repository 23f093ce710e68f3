/* SPDX-License-Identifier: MIT */
/* audio_bytes.c - whatever stands in an audio file must end in frames that are all finite and
 * as many as its samples make, or in a sentence. */
#define _GNU_SOURCE /* memfd_create() */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "data/features.h"
#include "support/fuzzing.h"

enum { FRAMES_MOST = 2000 };

static void check(const char *path, double speed)
{
    struct tn_frames frames;
    tarn_error err = {TARN_OK, ""};

    if (tn_features_read(&frames, path, speed, FRAMES_MOST, &err) == TARN_OK) {
        need(frames.count <= FRAMES_MOST);
        need(frames.count == tn_features_frames(frames.samples, frames.rate, speed));
        for (size_t i = 0; i < frames.count * TN_MEL_BANDS; i++)
            need(isfinite(frames.data[i]));
    } else {
        need(frames.data == NULL && *err.text && memchr(err.text, '\0', sizeof err.text));
    }
    tn_frames_free(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int file = memfd_create("audio", MFD_CLOEXEC);
    char path[64];

    need(file >= 0 && write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    check(path, 1.0);
    check(path, 1.1);
    close(file);
    return 0;
}
