/* SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include "file/audio.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/written.h"
#include "file/file_bytes.h"

enum {
    MIXING = 8192,
    CHANNELS_MOST = 64,
    SNDFILE_MOST = 1 << 22 /* bytes; most of them for ALAC */
};

static const float loudest = 4294967296.0f; /* its square, summed over a window, is finite */

void tarn_audio_close(tarn_audio *audio)
{
    if (!audio)
        return;
    if (audio->file)
        sf_close(audio->file);
    if (audio->descriptor >= 0)
        close(audio->descriptor);
    free(audio->path);
    free(audio->mixing);
    free(audio);
}

size_t tarn_audio_rate(const tarn_audio *audio)
{
    return audio->rate;
}

/* ---- Opening ------------------------------------------------------------ */

static tarn_status check_file(int file, const char *path, tarn_error *err)
{
    struct stat about;

    if (fstat(file, &about) != 0)
        return tn_fail_errno(err, path);
    const tarn_status status = tn_check_regular(about.st_mode, path, err);

    if (status == TARN_OK && about.st_size == 0)
        return tn_fail_path(err, TARN_EFORMAT, path, "is empty; expected an audio file");
    return status;
}

static tarn_status check_form(const tarn_audio *audio, tarn_error *err)
{
    if (audio->channels < 1 || audio->channels > CHANNELS_MOST)
        return tn_fail_path(err, TARN_EFORMAT, audio->path,
                            "has %zu channels; expected 1 to %d", audio->channels,
                            CHANNELS_MOST);
    if (audio->rate < TN_AUDIO_RATE_LEAST || audio->rate > TN_AUDIO_RATE_MOST)
        return tn_fail_path(err, TARN_EFORMAT, audio->path,
                            "has a sample rate of %zu Hz; expected %d to %d Hz", audio->rate,
                            TN_AUDIO_RATE_LEAST, TN_AUDIO_RATE_MOST);
    return TARN_OK;
}

/* Whatever libsndfile makes of a failure to read, its reason is kept. */
static tarn_status refuse_read(const tarn_audio *audio, tarn_error *err)
{
    return tn_fail_path(err, TARN_EIO, audio->path, "%s", strerror(audio->error));
}

TN_CALLED_BACK static sf_count_t seek_file(sf_count_t at, int whence, void *context)
{
    tarn_audio *const audio = context;
    const off_t place = lseek(audio->descriptor, at, whence);

    if (place < 0 && errno != EINVAL) /* which is a header's fault */
        audio->error = errno;
    return place;
}

TN_CALLED_BACK static sf_count_t tell_file(void *context)
{
    return seek_file(0, SEEK_CUR, context);
}

TN_CALLED_BACK static sf_count_t measure_file(void *context)
{
    tarn_audio *const audio = context;
    struct stat about;

    if (fstat(audio->descriptor, &about) == 0)
        return about.st_size;
    audio->error = errno;
    return 0;
}

TN_CALLED_BACK static sf_count_t read_file(void *to, sf_count_t count, void *context)
{
    tarn_audio *const audio = context;
    size_t got;

    if (!tn_read_all(audio->descriptor, to, (size_t)count, &got))
        audio->error = errno;
    return (sf_count_t)got;
}

/* Through us, so that an error of the system is not taken for the file's end. Why libsndfile
 * cannot open it is left unsaid: it keeps the reason in one place for all threads. */
static tarn_status open_form(tarn_audio *audio, tarn_error *err)
{
    SF_VIRTUAL_IO calls = {measure_file, seek_file, read_file, NULL, tell_file};
    SF_INFO info = {0};

    audio->file = sf_open_virtual(&calls, SFM_READ, &info, audio);
    if (audio->error)
        return refuse_read(audio, err);
    if (!audio->file)
        return tn_fail_path(
            err, TARN_EFORMAT, audio->path,
            "is damaged or not an audio file; expected WAV, FLAC or NIST SPHERE");
    if ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_RAW)
        return tn_fail_path(
            err, TARN_EFORMAT, audio->path,
            "is not an audio file with a header; expected WAV, FLAC or NIST SPHERE");
    audio->rate = info.samplerate > 0 ? (size_t)info.samplerate : 0;
    audio->channels = info.channels > 0 ? (size_t)info.channels : 0;
    audio->claimed = info.frames > 0 ? (uint64_t)info.frames : 0;
    return check_form(audio, err);
}

/* O_NONBLOCK: opening a pipe that nobody writes to must not wait. */
static tarn_status open_file(tarn_audio *audio, tarn_error *err)
{
    audio->descriptor = open(audio->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (audio->descriptor < 0)
        return tn_fail_errno(err, audio->path);
    const tarn_status status = check_file(audio->descriptor, audio->path, err);

    return status == TARN_OK ? open_form(audio, err) : status;
}

static tarn_status open_stream(tarn_audio *audio, int file, size_t raw_rate, tarn_error *err)
{
    if (raw_rate > 0 && (raw_rate < TN_AUDIO_RATE_LEAST || raw_rate > TN_AUDIO_RATE_MOST))
        return tn_fail(err, TARN_EINVAL,
                       "rate is %zu; it must be from %d to %d samples per second", raw_rate,
                       TN_AUDIO_RATE_LEAST, TN_AUDIO_RATE_MOST);
    audio->descriptor = fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (audio->descriptor < 0)
        return tn_fail_errno(err, audio->path);
    const tarn_status status =
        tn_wav_stream_open(&audio->stream, audio->descriptor, raw_rate, audio->path, err);

    audio->rate = audio->stream.rate;
    audio->channels = audio->stream.channels;
    return status == TARN_OK ? check_form(audio, err) : status;
}

static tarn_status open_once(tarn_audio **audio, const char *path, int descriptor,
                             size_t raw_rate, tarn_error *err)
{
    tarn_status status;

    *audio = calloc(1, sizeof **audio);
    if (*audio) {
        (*audio)->descriptor = -1;
        (*audio)->path = strdup(path ? path : "standard input");
        (*audio)->mixing = malloc(MIXING * sizeof *(*audio)->mixing);
    }
    if (!*audio || !(*audio)->path || !(*audio)->mixing)
        status = tn_fail(err, TARN_ENOMEM, "not enough memory to read audio");
    else
        status = path ? open_file(*audio, err) : open_stream(*audio, descriptor, raw_rate, err);
    if (status != TARN_OK) {
        tarn_audio_close(*audio);
        *audio = NULL;
    }
    return status;
}

bool tn_audio_has_memory(void)
{
    return tn_has_memory(SNDFILE_MOST);
}

tarn_status tarn_audio_open(tarn_audio **audio, const char *path, int descriptor,
                            size_t raw_rate, tarn_error *err)
{
    const int attempts = path ? 2 : 1; /* a stream cannot be read again */
    tarn_status status = TARN_EFORMAT;

    if (!audio)
        return tn_fail(err, TARN_EINVAL, "audio must not be NULL");
    *audio = NULL;
    for (int i = 0; i < attempts && status == TARN_EFORMAT; i++)
        status = tn_audio_has_memory()
                     ? open_once(audio, path, descriptor, raw_rate, err)
                     : tn_fail(err, TARN_ENOMEM, "not enough memory to read audio");
    return status;
}

/* ---- Reading ------------------------------------------------------------ */

static void mix(float *samples, const float *mixing, size_t count, size_t channels)
{
    const float by = 1.0f / (float)channels;

    for (size_t i = 0; i < count; i++) {
        float sum = 0.0f;

        for (size_t c = 0; c < channels; c++)
            sum += mixing[i * channels + c];
        samples[i] = sum * by;
    }
}

/* No number compares. */
static tarn_status check_samples(const tarn_audio *audio, const float *samples, size_t count,
                                 tarn_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (!(fabsf(samples[i]) <= loudest))
            return tn_fail_path(err, TARN_EFORMAT, audio->path,
                                "sample %llu is %g; expected samples between about -1 and 1",
                                (unsigned long long)(audio->done + i), (double)samples[i]);
    return TARN_OK;
}

/* Where libsndfile stops. A WAV file's end is what is there of it. */
static tarn_status check_end(const tarn_audio *audio, tarn_error *err)
{
    SF_INFO info = {0};

    if (audio->error)
        return refuse_read(audio, err);
    if (sf_error(audio->file) != SF_ERR_NO_ERROR)
        return tn_fail_path(err, TARN_EFORMAT, audio->path, "damaged after sample %llu: %.80s",
                            (unsigned long long)audio->done, sf_strerror(audio->file));
    sf_command(audio->file, SFC_GET_CURRENT_SF_INFO, &info, sizeof info);
    if ((info.format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC && audio->done < audio->claimed)
        return tn_fail_path(
            err, TARN_EFORMAT, audio->path, "truncated after %llu of %llu samples",
            (unsigned long long)audio->done, (unsigned long long)audio->claimed);
    return TARN_OK;
}

/* Into `mixing`. */
static tarn_status take(tarn_audio *audio, size_t *count, size_t wanted, tarn_error *err)
{
    if (!audio->file)
        return tn_wav_stream_read(&audio->stream, audio->mixing, count, wanted, err);
    if (!tn_audio_has_memory())
        return tn_fail_path(err, TARN_ENOMEM, audio->path, "not enough memory to read audio");
    const sf_count_t got = sf_readf_float(audio->file, audio->mixing, (sf_count_t)wanted);

    *count = got > 0 ? (size_t)got : 0;
    TN_WRITTEN(audio->mixing, *count * audio->channels * sizeof *audio->mixing);
    return TARN_OK;
}

tarn_status tarn_audio_read(tarn_audio *audio, float *samples, size_t *count, size_t most,
                            tarn_error *err)
{
    if (!audio || !samples || !count || most == 0)
        return tn_fail(
            err, TARN_EINVAL,
            "audio, samples and count must not be NULL, and most must be at least 1");
    const size_t wanted = tn_min(most, MIXING / audio->channels);
    tarn_status status = take(audio, count, wanted, err);

    if (status != TARN_OK)
        return status;
    mix(samples, audio->mixing, *count, audio->channels);
    status = check_samples(audio, samples, *count, err);
    audio->done += *count;
    if (status == TARN_OK && audio->file && *count < wanted)
        status = check_end(audio, err);
    return status;
}
