/* SPDX-License-Identifier: MIT */
/* tones.h - speech that is easy to learn: each phone is a tone of its own. */
#ifndef TONES_H
#define TONES_H

#include <stddef.h>
#include <stdint.h>

enum { TONES = 4, TONE_RATE = 16000 };

extern const char *const tone_names[TONES];

/* `count` tones, each of 120 to 200 ms, with silence of 70 ms before, between and behind; and
 * some hiss. free() the samples. */
float *tones_make(const size_t *tones, size_t count, uint64_t seed, size_t *samples);

#endif
