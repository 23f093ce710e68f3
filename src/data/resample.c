/* SPDX-License-Identifier: MIT */
#include "data/resample.h"

#include <math.h>
#include <soxr.h>
#include <string.h>

#include "base/written.h"

enum { FILTERS_MOST = 1 << 20 }; /* bytes */

/* libsoxr does not check all that it allocates: filters when it begins, and room for samples.
 */
static bool has_memory(const struct tn_resampler *resampler)
{
    return tn_has_memory(FILTERS_MOST + 2 * resampler->most * sizeof(float));
}

uint64_t tn_resampled(uint64_t count, double ratio)
{
    return ratio == 1.0 ? count : (uint64_t)floor((double)count * ratio);
}

tarn_status tn_resampler_open(struct tn_resampler *resampler, double ratio, tarn_error *err)
{
    const soxr_io_spec_t floats = soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
    const soxr_quality_spec_t quality = soxr_quality_spec(SOXR_HQ, 0);
    const soxr_runtime_spec_t alone = soxr_runtime_spec(1);

    *resampler = (struct tn_resampler){.ratio = ratio, .most = TN_RESAMPLE_BLOCK};
    if (!(ratio >= 1.0 / 200.0 && ratio <= 200.0))
        return tn_fail(err, TARN_EINVAL,
                       "the ratio of sample rates is %g; it must be from 1/200 to 200", ratio);
    if (ratio == 1.0)
        return TARN_OK;
    resampler->most = (size_t)ceil(TN_RESAMPLE_BLOCK * ratio) + 1;
    if (has_memory(resampler))
        resampler->state = soxr_create(1.0, ratio, 1, NULL, &floats, &quality, &alone);
    if (!resampler->state)
        return tn_fail(err, TARN_ENOMEM, "not enough memory to resample audio by %g", ratio);
    return TARN_OK;
}

void tn_resampler_close(struct tn_resampler *resampler)
{
    if (resampler->state)
        soxr_delete(resampler->state);
    *resampler = (struct tn_resampler){0};
}

size_t tn_resampler_pending(const struct tn_resampler *resampler, size_t count)
{
    return (size_t)(tn_resampled(resampler->in + count, resampler->ratio) - resampler->out) +
           resampler->most;
}

/* libsoxr takes as much as it could write at once,
 * which `most` makes the whole block, and keeps what it did not write. */
static size_t convert(struct tn_resampler *resampler, float *out)
{
    size_t used = 0, made = 0;

    resampler->failed |= !has_memory(resampler) ||
                         soxr_process(resampler->state, resampler->block, resampler->waiting,
                                      &used, out, resampler->most, &made) != NULL ||
                         used != resampler->waiting;
    TN_WRITTEN(out, made * sizeof *out);
    resampler->waiting = 0;
    resampler->out += made;
    return made;
}

size_t tn_resampler_push(struct tn_resampler *resampler, float *out, size_t *made,
                         const float *samples, size_t count)
{
    const size_t taken = tn_min(count, TN_RESAMPLE_BLOCK - resampler->waiting);

    *made = 0;
    resampler->in += taken;
    if (!resampler->state) {
        memcpy(out, samples, taken * sizeof *samples);
        resampler->out += *made = taken;
        return taken;
    }
    memcpy(resampler->block + resampler->waiting, samples, taken * sizeof *samples);
    resampler->waiting += taken;
    if (resampler->waiting == TN_RESAMPLE_BLOCK)
        *made = convert(resampler, out);
    return taken;
}

/* libsoxr rounds to the nearest number of samples, and may be one short. */
static size_t drain(struct tn_resampler *resampler, float *out, size_t most)
{
    size_t made = 0;

    resampler->failed |= !has_memory(resampler) || soxr_process(resampler->state, NULL, 0, NULL,
                                                                out, most, &made) != NULL;
    TN_WRITTEN(out, made * sizeof *out);
    if (made == 0)
        memset(out, 0, (made = most) * sizeof *out);
    resampler->out += made;
    return made;
}

/* Clearing keeps the configuration but not the ratio. */
static void begin(struct tn_resampler *resampler)
{
    if (resampler->state)
        resampler->failed |=
            !has_memory(resampler) || soxr_clear(resampler->state) != NULL ||
            soxr_set_io_ratio(resampler->state, 1.0 / resampler->ratio, 0) != NULL;
    resampler->in = resampler->out = resampler->waiting = 0;
}

size_t tn_resampler_end(struct tn_resampler *resampler, float *out)
{
    const size_t due = (size_t)(tn_resampled(resampler->in, resampler->ratio) - resampler->out);

    size_t made = 0;

    if (due == 0) {
        begin(resampler);
        return 0;
    }
    if (resampler->waiting > 0)
        made = convert(resampler, out);
    return made > 0 ? made : drain(resampler, out, tn_min(due, resampler->most));
}
