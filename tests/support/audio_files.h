/* SPDX-License-Identifier: MIT */
/* audio_files.h - sounds, and files of them in the forms that are read, made here so that no
 * test needs a file. */
#ifndef AUDIO_FILES_H
#define AUDIO_FILES_H

#include "support/testing.h"

/* A tone with overtones and hiss, within -0.5 .. 0.5; free() it. */
float *sound(size_t count, uint64_t seed);

/* count x channels samples, by libsndfile; `format` is its SF_FORMAT_... */
void audio_put(const char *path, int format, size_t rate, size_t channels, const float *samples,
               size_t count);

/* A WAV file of 16 bits at 16 kHz with a sound. */
void speech_put(const char *path, size_t count, uint64_t seed);

#endif
