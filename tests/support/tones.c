/* SPDX-License-Identifier: MIT */
#include "support/tones.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

const char *const tone_names[TONES] = {"AA", "B", "CH", "D"};

enum { GAP = TONE_RATE * 70 / 1000, SHORT = TONE_RATE * 120 / 1000, MORE = TONE_RATE / 12 };

static void put_tone(float *samples, size_t count, size_t tone)
{
    const double step = 2.0 * 3.14159265358979 * (300.0 + 500.0 * (double)tone) / TONE_RATE;

    for (size_t i = 0; i < count; i++)
        samples[i] += 0.3f * (float)sin(step * (double)i);
}

float *tones_make(const size_t *tones, size_t count, uint64_t seed, size_t *samples)
{
    float *const all = calloc(GAP + count * (GAP + SHORT + MORE), sizeof *all);
    struct tn_random random;
    size_t at = GAP;

    tn_random_seed(&random, seed);
    for (size_t i = 0; all && i < count; i++) {
        const size_t length = SHORT + (size_t)(MORE * tn_random_uniform(&random));

        put_tone(all + at, length, tones[i]);
        at += length + GAP;
    }
    for (size_t i = 0; all && i < at; i++)
        all[i] += 0.005f * (float)tn_random_normal(&random);
    *samples = at;
    return all;
}
