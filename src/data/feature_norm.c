/* SPDX-License-Identifier: MIT */
#include "data/feature_norm.h"

#include <math.h>

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
