/* SPDX-License-Identifier: MIT */
/* features.h - log-mel frames of sounds of any rate, as they arrive or of whole files.
 *
 *     samples at `rate` -> resampled to 16 kHz, `speed` times as fast -> log-mel frames
 *
 * Speed 1.1 makes a sound shorter and higher, as a tape does: the change of speed that gives
 * more speech to train on. */
#ifndef TN_FEATURES_H
#define TN_FEATURES_H

#include "data/log_mel.h"
#include "data/resample.h"
#include "file/audio.h"

/* Tells one definition of features from another. To be counted up whenever they become others:
 * cached ones are then made anew, and models of the old ones refused. */
extern const char tn_features_version[];

/* ---- Sounds that arrive ------------------------------------------------- */

struct tn_features {
    struct tn_resampler resampler;
    struct tn_log_mel mel;
    float *resampled;
};

/* Frames of a whole sound, exactly. */
uint64_t tn_features_frames(uint64_t samples, size_t rate, double speed);

/* Rates from TN_AUDIO_RATE_LEAST to _MOST, speeds from 0.5 to 2. On failure it is closed. */
tarn_status tn_features_open(struct tn_features *features, size_t rate, double speed,
                             tarn_error *err);

/* Accepts one that is closed. */
void tn_features_close(struct tn_features *features);

/* The most frames that a push of `count` samples, or the end, can write. */
size_t tn_features_most(const struct tn_features *features, size_t count);

/* Writes the frames that are complete, 40 floats each, and returns how many. Whatever the
 * pieces, push and end give the frames of the whole to the bit. */
size_t tn_features_push(struct tn_features *features, float *frames, const float *samples,
                        size_t count);

/* TARN_ENOMEM if something failed since it was opened: the frames are then not of the sound. */
tarn_status tn_features_check(const struct tn_features *features, tarn_error *err);

/* What the resampler held back. A new sound may begin after it. */
size_t tn_features_end(struct tn_features *features, float *frames);

/* ---- Whole files -------------------------------------------------------- */

struct tn_frames {
    float *data; /* count x 40; freed by tn_frames_free() */
    size_t count, room;
    uint64_t samples; /* of the file, whatever the speed */
    size_t rate;
};

/* Leaves it empty; accepts what is empty. */
void tn_frames_free(struct tn_frames *frames);

/* Memory grows with the frames alone; more than `most` are refused as soon as that is known. On
 * failure *frames is empty. */
tarn_status tn_features_read(struct tn_frames *frames, const char *path, double speed,
                             size_t most, tarn_error *err);

/* ---- Normalisation ------------------------------------------------------- */

/* y = (x - mean) scale, band by band. Plain numbers, to be stored with a model. */
struct tn_feature_norm {
    float mean[TN_MEL_BANDS], scale[TN_MEL_BANDS];
};

/* Sums over frames; zeros are those of none. */
struct tn_feature_sums {
    double count, sum[TN_MEL_BANDS], square[TN_MEL_BANDS];
};

void tn_feature_sums_add(struct tn_feature_sums *sums, const float *frames, size_t count);
void tn_feature_sums_join(struct tn_feature_sums *sums, const struct tn_feature_sums *more);

/* A band that hardly varies is not blown up: deviations below 0.01 count as that. Of no frames:
 * what changes nothing. */
void tn_feature_norm_of(struct tn_feature_norm *norm, const struct tn_feature_sums *sums);

/* Changes nothing. */
void tn_feature_norm_none(struct tn_feature_norm *norm);

/* `to` may be `from`. */
void tn_feature_norm_apply(const struct tn_feature_norm *norm, float *to, const float *from,
                           size_t count);

#endif
