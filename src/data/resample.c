/* SPDX-License-Identifier: MIT */
#include "data/resample.h"

#include <assert.h>
#include <math.h>
#include <samplerate.h>
#include <string.h>

/* The filter reaches 47 samples of the slower rate into the past and into the future, and has
 * written nothing that it has not reached. */
enum { REACH = 256 };

uint64_t tn_resampled(uint64_t count, double ratio)
{
    return ratio == 1.0 ? count : (uint64_t)floor((double)count * ratio);
}

tarn_status tn_resampler_open(struct tn_resampler *resampler, double ratio, tarn_error *err)
{
    int reason = 0;

    *resampler = (struct tn_resampler){.ratio = ratio};
    if (!(ratio >= 1.0 / 200.0 && ratio <= 200.0))
        return tn_fail(err, TARN_EINVAL, "ratio of rates: is %g; expected 1/200 to 200", ratio);
    if (ratio == 1.0)
        return TARN_OK;
    resampler->state = src_new(SRC_SINC_MEDIUM_QUALITY, 1, &reason);
    if (!resampler->state)
        return tn_fail(err, TARN_ENOMEM, "no memory to resample audio: %.80s",
                       src_strerror(reason));
    return TARN_OK;
}

void tn_resampler_close(struct tn_resampler *resampler)
{
    if (resampler->state)
        src_delete(resampler->state);
    *resampler = (struct tn_resampler){0};
}

size_t tn_resampler_most(const struct tn_resampler *resampler, size_t count)
{
    if (!resampler->state)
        return count;
    return (size_t)ceil((double)(count + TN_RESAMPLE_BLOCK + REACH) * resampler->ratio) + REACH;
}

/* All of a block goes in. Only at the end is the output limited to what is due, since
 * libsamplerate reads no further than it may write; where it stops short of that by a rounding,
 * silence follows. */
static size_t convert(struct tn_resampler *resampler, float *out, bool last)
{
    const size_t due = (size_t)(tn_resampled(resampler->in, resampler->ratio) - resampler->out);
    const size_t most = last ? due : tn_resampler_most(resampler, 0);
    size_t used = 0, made = 0;
    SRC_DATA data;

    do {
        data = (SRC_DATA){.data_in = resampler->block + used,
                          .data_out = out + made,
                          .input_frames = (long)(resampler->waiting - used),
                          .output_frames = (long)(most - made),
                          .end_of_input = last,
                          .src_ratio = resampler->ratio};
        const int reason = src_process(resampler->state, &data);

        assert(reason == 0);
        (void)reason;
        used += (size_t)data.input_frames_used;
        made += (size_t)data.output_frames_gen;
    } while (made < most && (data.input_frames_used > 0 || data.output_frames_gen > 0));
    for (; last && made < due; made++)
        out[made] = 0.0f;
    resampler->waiting = 0;
    resampler->out += made;
    return made;
}

static size_t push_block(struct tn_resampler *resampler, const float *samples, size_t count)
{
    const size_t taken = tn_min(count, TN_RESAMPLE_BLOCK - resampler->waiting);

    memcpy(resampler->block + resampler->waiting, samples, taken * sizeof *samples);
    resampler->waiting += taken;
    resampler->in += taken;
    return taken;
}

size_t tn_resampler_push(struct tn_resampler *resampler, float *out, const float *samples,
                         size_t count)
{
    size_t made = 0;

    if (!resampler->state) {
        if (count > 0)
            memcpy(out, samples, count * sizeof *samples);
        return count;
    }
    while (count > 0) {
        const size_t taken = push_block(resampler, samples, count);

        samples += taken;
        count -= taken;
        if (resampler->waiting == TN_RESAMPLE_BLOCK)
            made += convert(resampler, out + made, false);
    }
    return made;
}

size_t tn_resampler_end(struct tn_resampler *resampler, float *out)
{
    size_t made = 0;

    if (!resampler->state)
        return 0;
    made = convert(resampler, out, true);
    src_reset(resampler->state);
    resampler->in = resampler->out = 0;
    return made;
}
