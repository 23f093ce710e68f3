/* SPDX-License-Identifier: MIT */
#include "layer/ctc_decode.h"

size_t tn_ctc_decode_scratch(const struct tn_ctc_frames *frames, size_t beam)
{
    return beam > 0 ? tn_ctc_beam_scratch(frames, beam) : 0;
}

double tn_ctc_decode(const struct tn_ctc_frames *frames, size_t beam,
                     struct tn_ctc_symbol *symbols, size_t *count, const float *x, size_t T,
                     void *scratch)
{
    struct tn_ctc_greedy greedy = {0};

    if (beam > 0)
        return tn_ctc_beam(frames, beam, symbols, count, x, T, scratch);
    *count = tn_ctc_greedy_push(&greedy, symbols, x, T, frames->S);
    *count += tn_ctc_greedy_end(&greedy, symbols + *count);
    return greedy.log_probability;
}
