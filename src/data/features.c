/* SPDX-License-Identifier: MIT */
#include "data/features.h"

#include <math.h>
#include <stdlib.h>

#include "file/file_bytes.h"
#include "tarn/speech.h"

enum { PIECE = 4096 }; /* samples of a file that are in memory at once */

const char tn_features_version[] = "log-mel 1";

/* What the resampler needs. */
static double ratio_of(size_t rate, double speed)
{
    return (double)TN_MEL_RATE / ((double)rate * speed);
}

uint64_t tn_features_frames(uint64_t samples, size_t rate, double speed)
{
    return tn_log_mel_frames(tn_resampled(samples, ratio_of(rate, speed)));
}

/* ---- Sounds that arrive ------------------------------------------------- */

static tarn_status check(size_t rate, double speed, tarn_error *err)
{
    if (rate < TN_AUDIO_RATE_LEAST || rate > TN_AUDIO_RATE_MOST)
        return tn_fail(err, TARN_EINVAL,
                       "rate is %zu; it must be from %d to %d samples per second", rate,
                       TN_AUDIO_RATE_LEAST, TN_AUDIO_RATE_MOST);
    if (!(speed >= 0.5 && speed <= 2.0))
        return tn_fail(err, TARN_EINVAL, "speed is %g; it must be from 0.5 to 2", speed);
    return TARN_OK;
}

tarn_status tn_features_open(struct tn_features *features, size_t rate, double speed,
                             tarn_error *err)
{
    tarn_status status = check(rate, speed, err);

    *features = (struct tn_features){0};
    if (status == TARN_OK)
        status = tn_resampler_open(&features->resampler, ratio_of(rate, speed), err);
    if (status == TARN_OK)
        status = tn_log_mel_open(&features->mel, err);
    if (status == TARN_OK) {
        const size_t most = features->resampler.most;

        features->resampled = malloc(most * sizeof *features->resampled);
        if (!features->resampled)
            status = tn_fail(err, TARN_ENOMEM, "not enough memory for %zu samples", most);
    }
    if (status != TARN_OK)
        tn_features_close(features);
    return status;
}

void tn_features_close(struct tn_features *features)
{
    tn_resampler_close(&features->resampler);
    tn_log_mel_close(&features->mel);
    free(features->resampled);
    *features = (struct tn_features){0};
}

size_t tn_features_most(const struct tn_features *features, size_t count)
{
    return tn_log_mel_ready(&features->mel, tn_resampler_pending(&features->resampler, count));
}

size_t tn_features_push(struct tn_features *features, float *frames, const float *samples,
                        size_t count)
{
    size_t made = 0;

    while (count > 0) {
        size_t resampled;
        const size_t taken = tn_resampler_push(&features->resampler, features->resampled,
                                               &resampled, samples, count);

        made += tn_log_mel_push(&features->mel, frames + made * TN_MEL_BANDS,
                                features->resampled, resampled);
        samples += taken;
        count -= taken;
    }
    return made;
}

size_t tn_features_end(struct tn_features *features, float *frames)
{
    size_t made = 0, resampled;

    while ((resampled = tn_resampler_end(&features->resampler, features->resampled)) > 0)
        made += tn_log_mel_push(&features->mel, frames + made * TN_MEL_BANDS,
                                features->resampled, resampled);
    tn_log_mel_reset(&features->mel);
    return made;
}

tarn_status tn_features_check(const struct tn_features *features, tarn_error *err)
{
    if (!features->resampler.failed)
        return TARN_OK;
    return tn_fail(err, TARN_ENOMEM, "not enough memory to resample audio");
}

/* ---- Whole files -------------------------------------------------------- */

void tn_frames_free(struct tn_frames *frames)
{
    free(frames->data);
    *frames = (struct tn_frames){0};
}

static tarn_status make_room(struct tn_frames *frames, size_t more, tarn_error *err)
{
    if (frames->data && frames->count + more <= frames->room)
        return TARN_OK;
    const size_t room = tn_max(frames->count + more, frames->room + frames->room / 2 + 1);
    float *const data = realloc(frames->data, room * TN_MEL_BANDS * sizeof *data);

    if (!data)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu feature frames", room);
    frames->data = data;
    frames->room = room;
    return TARN_OK;
}

static tarn_status check_length(uint64_t samples, size_t rate, double speed, size_t most,
                                const char *path, tarn_error *err)
{
    const uint64_t count = tn_features_frames(samples, rate, speed);

    if (count <= most)
        return TARN_OK;
    return tn_fail_path(
        err, TARN_EINVAL, path,
        "is at least %.2f seconds long; expected at most %.2f seconds, %zu frames",
        (double)samples / (double)rate, (double)most * speed * TN_MEL_HOP / TN_MEL_RATE, most);
}

static float *end_of(const struct tn_frames *frames)
{
    return frames->data + frames->count * TN_MEL_BANDS;
}

/* Gives back what is too much; smaller never fails for good. */
static void fit(struct tn_frames *frames)
{
    float *const data =
        realloc(frames->data, tn_max(frames->count, 1) * TN_MEL_BANDS * sizeof *data);

    if (data) {
        frames->data = data;
        frames->room = tn_max(frames->count, 1);
    }
}

static tarn_status extract(struct tn_frames *frames, tarn_audio *audio,
                           struct tn_features *features, double speed, size_t most,
                           tarn_error *err)
{
    float samples[PIECE];
    size_t count = 1;
    tarn_status status = TARN_OK;

    while (status == TARN_OK && count > 0) {
        if ((status = tarn_audio_read(audio, samples, &count, PIECE, err)) == TARN_OK &&
            (status = check_length(audio->done, audio->rate, speed, most, audio->path, err)) ==
                TARN_OK &&
            (status = make_room(frames, tn_features_most(features, count), err)) == TARN_OK)
            frames->count += count > 0
                                 ? tn_features_push(features, end_of(frames), samples, count)
                                 : tn_features_end(features, end_of(frames));
        if (status == TARN_OK)
            status = tn_features_check(features, err);
    }
    frames->samples = audio->done;
    frames->rate = audio->rate;
    if (status == TARN_OK)
        fit(frames);
    return status;
}

static tarn_status read_once(struct tn_frames *frames, const char *path, double speed,
                             size_t most, tarn_error *err)
{
    tarn_audio *audio;
    struct tn_features features = {0};

    *frames = (struct tn_frames){0};
    tarn_status status = tarn_audio_open(&audio, path, -1, 0, err);

    if (status == TARN_OK)
        status = tn_features_open(&features, audio->rate, speed, err);
    if (status == TARN_OK)
        status = extract(frames, audio, &features, speed, most, err);
    tn_features_close(&features);
    tarn_audio_close(audio);
    if (status != TARN_OK)
        tn_frames_free(frames);
    return status;
}

/* As tn_audio_has_memory() says. */
tarn_status tn_features_read(struct tn_frames *frames, const char *path, double speed,
                             size_t most, tarn_error *err)
{
    tarn_status status = TARN_EFORMAT;

    *frames = (struct tn_frames){0};
    for (int attempt = 0; attempt < 2 && status == TARN_EFORMAT; attempt++)
        status = tn_audio_has_memory()
                     ? read_once(frames, path, speed, most, err)
                     : tn_fail_path(err, TARN_ENOMEM, path, "not enough memory to read audio");
    return status;
}

/* ---- Normalisation ------------------------------------------------------- */

static const double least_variance = 1e-4;

void tn_feature_sums_add(struct tn_feature_sums *sums, const float *frames, size_t count)
{
    sums->count += (double)count;
    for (size_t t = 0; t < count; t++)
        for (size_t b = 0; b < TN_MEL_BANDS; b++) {
            const double x = (double)frames[t * TN_MEL_BANDS + b];

            sums->sum[b] += x;
            sums->square[b] += x * x;
        }
}

void tn_feature_sums_join(struct tn_feature_sums *sums, const struct tn_feature_sums *more)
{
    sums->count += more->count;
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        sums->sum[b] += more->sum[b];
        sums->square[b] += more->square[b];
    }
}

void tn_feature_norm_none(struct tn_feature_norm *norm)
{
    for (size_t b = 0; b < TN_MEL_BANDS; b++) {
        norm->mean[b] = 0.0f;
        norm->scale[b] = 1.0f;
    }
}

void tn_feature_norm_of(struct tn_feature_norm *norm, const struct tn_feature_sums *sums)
{
    tn_feature_norm_none(norm);
    for (size_t b = 0; b < TN_MEL_BANDS && sums->count > 0.0; b++) {
        const double mean = sums->sum[b] / sums->count;
        const double variance = sums->square[b] / sums->count - mean * mean;

        norm->mean[b] = (float)mean;
        norm->scale[b] = (float)(1.0 / sqrt(fmax(variance, least_variance)));
    }
}

void tn_feature_norm_apply(const struct tn_feature_norm *norm, float *to, const float *from,
                           size_t count)
{
    for (size_t t = 0; t < count; t++)
        for (size_t b = 0; b < TN_MEL_BANDS; b++) {
            const size_t i = t * TN_MEL_BANDS + b;

            to[i] = (from[i] - norm->mean[b]) * norm->scale[b];
        }
}

/* ---- For programs -------------------------------------------------------- */

size_t tarn_features_count(size_t n, size_t rate)
{
    return rate > 0 ? (size_t)tn_features_frames(n, rate, 1.0) : 0;
}

tarn_status tarn_features(float *frames, const float *samples, size_t n, size_t rate,
                          tarn_error *err)
{
    struct tn_features features;
    tarn_status status;

    if (!frames || !samples)
        return tn_fail(err, TARN_EINVAL, "frames and samples must not be NULL");
    if ((status = tn_features_open(&features, rate, 1.0, err)) != TARN_OK)
        return status;
    const size_t made = tn_features_push(&features, frames, samples, n);

    tn_features_end(&features, frames + made * TN_MEL_BANDS);
    status = tn_features_check(&features, err);
    tn_features_close(&features);
    return status;
}
