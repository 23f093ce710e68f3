/* SPDX-License-Identifier: MIT */
#include "kernel/int8.h"

#include <math.h>
#include <string.h>

/* The next number upwards with 16 significant bits. */
static float round_up_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0xff) & ~(uint32_t)0xff;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Below this, q s would lose bits. */
static const float least_scale = 1e-36f;

float tn_int8_quantise(int8_t *q, const float *w, size_t step, size_t n)
{
    float most = 0.0f;

    for (size_t i = 0; i < n; i++)
        most = fmaxf(most, fabsf(w[i * step]));
    const float scale = round_up_bits(most / (float)TN_INT8_MOST);

    if (scale < least_scale) {
        memset(q, 0, n);
        return 0.0f;
    }
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)lrintf(w[i * step] / scale);
    return scale;
}
