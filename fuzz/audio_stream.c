/* SPDX-License-Identifier: MIT */
/* audio_stream.c - whatever arrives through a pipe as audio must end in samples that are
 * finite, or in a sentence. The first byte chooses between WAV and raw samples. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "support/fuzzing.h"
#include "tarn/tarn.h"

enum { PIPE_MOST = 65536, SAMPLES = 1000 };

static void read_all(tarn_audio *audio)
{
    float samples[SAMPLES];
    size_t count = 1;
    tarn_error err = {TARN_OK, ""};

    while (count > 0) {
        if (tarn_audio_read(audio, samples, &count, SAMPLES, &err) != TARN_OK) {
            need_text(&err);
            return;
        }
        for (size_t i = 0; i < count; i++)
            need(isfinite(samples[i]));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tarn_audio *audio;
    tarn_error err = {TARN_OK, ""};
    int ends[2];

    if (size < 1 || size > PIPE_MOST)
        return 0;
    need(pipe(ends) == 0 && write(ends[1], data + 1, size - 1) == (ssize_t)(size - 1));
    close(ends[1]);
    if (tarn_audio_open(&audio, NULL, ends[0], data[0] % 4 == 1 ? 16000 : 0, &err) == TARN_OK)
        read_all(audio);
    else
        need_text(&err);
    tarn_audio_close(audio);
    close(ends[0]);
    return 0;
}
