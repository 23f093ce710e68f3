/* SPDX-License-Identifier: MIT */
/* spec_mask.h - features hidden in places, so that a model learns to do without them
 * (SpecAugment, Park et al. 2019, without its warping). */
#ifndef TN_SPEC_MASK_H
#define TN_SPEC_MASK_H

#include "data/batch.h"
#include "data/log_mel.h"

/* Zeros mask nothing. */
struct tn_spec_mask {
    size_t times, time_width; /* how many stretches of time, each 0 .. time_width frames */
    double time_share; /* of an utterance that one stretch covers at most; 0: all of it */
    size_t bands, bands_width; /* how many groups of bands, each 0 .. bands_width bands */
};

/* Sets what is hidden to 0, which is the mean of normalised features. */
void tn_spec_mask_apply(const struct tn_spec_mask *mask, float *frames, size_t count,
                        struct tn_random *random);

#endif
