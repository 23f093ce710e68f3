/* SPDX-License-Identifier: MIT */
/* resample.h - samples of any rate, piece by piece, as samples of another.
 *
 * By libsamplerate's windowed sinc, of which 121 dB are signal and nine tenths of the band pass.
 * It is fed with blocks of fixed size, so that what comes out does not depend on the pieces that
 * go in, to the bit. n samples become floor(n ratio) of them, exactly. */
#ifndef TN_RESAMPLE_H
#define TN_RESAMPLE_H

#include "base/base.h"

enum { TN_RESAMPLE_BLOCK = 512 }; /* samples that wait at most for the rest of their block */

struct tn_resampler {
    void *state;      /* libsamplerate's; NULL: samples pass as they are */
    double ratio;     /* rate after by rate before */
    size_t waiting;   /* in `block` */
    uint64_t in, out; /* so far */
    float block[TN_RESAMPLE_BLOCK];
};

/* Ratios are 1/200 to 200. On failure *resampler is closed. */
tarn_status tn_resampler_open(struct tn_resampler *resampler, double ratio, tarn_error *err);

/* Accepts one that is closed. */
void tn_resampler_close(struct tn_resampler *resampler);

/* What `count` samples become in the end. */
uint64_t tn_resampled(uint64_t count, double ratio);

/* The most that a push of `count` samples, or the end, can write. */
size_t tn_resampler_most(const struct tn_resampler *resampler, size_t count);

/* Returns how many samples were written. */
size_t tn_resampler_push(struct tn_resampler *resampler, float *out, const float *samples,
                         size_t count);

/* The rest; a new sound may begin after it. */
size_t tn_resampler_end(struct tn_resampler *resampler, float *out);

#endif
