/* SPDX-License-Identifier: MIT */
/* resample.h - samples of any rate, piece by piece, as samples of another.
 *
 * By libsoxr at its quality for 16 bits and more. It is fed with blocks of fixed size, so that
 * what comes out cannot depend on the pieces that go in, to the bit. n samples become
 * floor(n ratio) of them, exactly. */
#ifndef TN_RESAMPLE_H
#define TN_RESAMPLE_H

#include "base/base.h"

enum { TN_RESAMPLE_BLOCK = 512 }; /* samples that wait at most for the rest of their block */

struct tn_resampler {
    void *state;      /* libsoxr's; NULL: samples pass as they are */
    double ratio;     /* rate after by rate before */
    size_t most;      /* samples that one call writes at most */
    size_t waiting;   /* in `block` */
    uint64_t in, out; /* so far */
    bool failed;      /* libsoxr had no memory: what came out since is not the sound */
    float block[TN_RESAMPLE_BLOCK];
};

/* Ratios are 1/200 to 200. On failure *resampler is closed. */
tarn_status tn_resampler_open(struct tn_resampler *resampler, double ratio, tarn_error *err);

/* Accepts one that is closed. */
void tn_resampler_close(struct tn_resampler *resampler);

/* What `count` samples become in the end. */
uint64_t tn_resampled(uint64_t count, double ratio);

/* More than can come out if `count` more samples go in, and the end. */
size_t tn_resampler_pending(const struct tn_resampler *resampler, size_t count);

/* Takes the first of `count` samples, up to a block, and returns how many; *made, up to
 * resampler->most, are written. */
size_t tn_resampler_push(struct tn_resampler *resampler, float *out, size_t *made,
                         const float *samples, size_t count);

/* The rest, up to resampler->most at a time: to be called until it returns 0. A new sound may
 * begin then. */
size_t tn_resampler_end(struct tn_resampler *resampler, float *out);

#endif
