/* SPDX-License-Identifier: MIT */
/* log_mel.h - what a model hears: the logarithms of 40 bands of the mel scale, every 10 ms.
 *
 * Frame t is of the 25 ms of samples that begin at 10 t ms, so that nothing waits for what
 * comes later: n samples have floor((n - 400) / 160) + 1 frames, or none if they are fewer than
 * 400. The definition is Kaldi's (compute-fbank-feats with 40 bins and no dither), with 1 for
 * full scale, where Kaldi has 32768: see log_mel.c. */
#ifndef TN_LOG_MEL_H
#define TN_LOG_MEL_H

#include "base/base.h"

enum {
    TN_MEL_BANDS = 40,
    TN_MEL_RATE = 16000,
    TN_MEL_WINDOW = 400,
    TN_MEL_HOP = 160,
    TN_MEL_POINTS = 512, /* of the Fourier transform: the window and zeros */
    TN_MEL_BINS = TN_MEL_POINTS / 2
};

/* A band weighs bins first .. first + count - 1. */
struct tn_mel_band {
    size_t first, count;
    float weight[TN_MEL_BINS];
};

struct tn_log_mel {
    void *transform; /* kissfft's; NULL: closed */
    float window[TN_MEL_WINDOW];
    struct tn_mel_band band[TN_MEL_BANDS];
    size_t waiting; /* samples in `held`: those of frames that are not complete */
    float held[TN_MEL_WINDOW];
};

/* On failure *mel is closed. */
tarn_status tn_log_mel_open(struct tn_log_mel *mel, tarn_error *err);

/* Accepts one that is closed. */
void tn_log_mel_close(struct tn_log_mel *mel);

/* Forgets what was pushed. */
void tn_log_mel_reset(struct tn_log_mel *mel);

/* Frames of a whole sound. */
uint64_t tn_log_mel_frames(uint64_t samples);

/* Frames that a push of `count` samples completes. */
size_t tn_log_mel_ready(const struct tn_log_mel *mel, size_t count);

/* Writes them, 40 floats each, and returns how many. Samples in pieces of any size give the
 * frames of the whole to the bit. */
size_t tn_log_mel_push(struct tn_log_mel *mel, float *frames, const float *samples,
                       size_t count);

#endif
