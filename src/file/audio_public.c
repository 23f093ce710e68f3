/* SPDX-License-Identifier: MIT */
/* audio_public.c - the part of audio that programs see. */
#include <stdlib.h>

#include "file/audio.h"
#include "tarn/speech.h"

struct tarn_audio {
    struct tn_audio file;
};

tarn_status tarn_audio_open(tarn_audio **audio, const char *path, int descriptor,
                            size_t raw_rate, tarn_error *err)
{
    tarn_status status;

    if (!audio)
        return tn_fail(err, TARN_EINVAL, "audio must not be NULL");
    *audio = malloc(sizeof **audio);
    if (!*audio)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to read audio");
    status = path ? tn_audio_open(&(*audio)->file, path, err)
                  : tn_audio_open_stream(&(*audio)->file, descriptor, raw_rate,
                                         "standard input", err);
    if (status != TARN_OK) {
        free(*audio);
        *audio = NULL;
    }
    return status;
}

void tarn_audio_close(tarn_audio *audio)
{
    if (audio)
        tn_audio_close(&audio->file);
    free(audio);
}

size_t tarn_audio_rate(const tarn_audio *audio)
{
    return audio->file.rate;
}

tarn_status tarn_audio_read(tarn_audio *audio, float *samples, size_t *count, size_t most,
                            tarn_error *err)
{
    if (!audio || !samples || !count || most == 0)
        return tn_fail(
            err, TARN_EINVAL,
            "audio, samples and count must not be NULL, and most must be at least 1");
    return tn_audio_read(&audio->file, samples, count, most, err);
}
