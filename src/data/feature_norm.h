/* SPDX-License-Identifier: MIT */
/* feature_norm.h - features with mean 0 and variance 1, over a speaker or over everyone. */
#ifndef TN_FEATURE_NORM_H
#define TN_FEATURE_NORM_H

#include "data/log_mel.h"

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
