/* SPDX-License-Identifier: MIT */
#include "support/audio_files.h"

#include <math.h>
#include <sndfile.h>
#include <stdlib.h>

float *sound(size_t count, uint64_t seed)
{
    float *const samples = take(count + 1, sizeof *samples);
    struct tn_random random;

    tn_random_seed(&random, seed);
    const double step = 0.02 + 0.1 * tn_random_uniform(&random);

    for (size_t i = 0; i < count; i++) {
        const double phase = step * (double)i;

        samples[i] = (float)(0.25 * sin(phase) + 0.1 * sin(3.3 * phase) +
                             0.1 * (tn_random_uniform(&random) - 0.5));
    }
    return samples;
}

void audio_put(const char *path, int format, size_t rate, size_t channels, const float *samples,
               size_t count)
{
    SF_INFO info = {.samplerate = (int)rate, .channels = (int)channels, .format = format};
    SNDFILE *const file = sf_open(path, SFM_WRITE, &info);

    assert_non_null(file);
    assert_int_equal(sf_writef_float(file, samples, (sf_count_t)count), count);
    assert_int_equal(sf_close(file), 0);
}

void speech_put(const char *path, size_t count, uint64_t seed)
{
    float *const samples = sound(count, seed);

    audio_put(path, SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000, 1, samples, count);
    free(samples);
}
