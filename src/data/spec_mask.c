/* SPDX-License-Identifier: MIT */
#include "data/spec_mask.h"

#include <string.h>

/* A stretch of 0 .. most places, anywhere in `count`. */
static size_t draw(size_t *first, size_t most, size_t count, struct tn_random *random)
{
    const size_t width = tn_random_below(random, tn_min(most, count) + 1);

    *first = tn_random_below(random, count - width + 1);
    return width;
}

static size_t widest(const struct tn_spec_mask *mask, size_t count)
{
    if (mask->time_share <= 0.0)
        return mask->time_width;
    return tn_min(mask->time_width, (size_t)(mask->time_share * (double)count));
}

void tn_spec_mask_apply(const struct tn_spec_mask *mask, float *frames, size_t count,
                        struct tn_random *random)
{
    size_t first;

    for (size_t i = 0; i < mask->times; i++) {
        const size_t width = draw(&first, widest(mask, count), count, random);

        memset(frames + first * TN_MEL_BANDS, 0, width * TN_MEL_BANDS * sizeof *frames);
    }
    for (size_t i = 0; i < mask->bands; i++) {
        const size_t width = draw(&first, mask->bands_width, TN_MEL_BANDS, random);

        for (size_t t = 0; t < count; t++)
            memset(frames + t * TN_MEL_BANDS + first, 0, width * sizeof *frames);
    }
}
