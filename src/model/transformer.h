/* SPDX-License-Identifier: MIT */
/* transformer.h - what a run of body 'transformer' has: body_transformer.c, and with sequences
 * in slices transformer_slices.c. */
#ifndef TN_TRANSFORMER_H
#define TN_TRANSFORMER_H

#include "model/block.h"
#include "model/body.h"
#include "model/slice_states.h"

struct tn_transformer {
    struct tn_block_plan block;
    tarn_attention *attentions; /* one per layer: random features and hashes are its own */

    float **inputs;                           /* of each layer, then the last one's output */
    struct tn_block_activations *activations; /* of each layer, or one for all */
    float **saved;                            /* attention's, likewise */
    struct tn_block_gradients gradients;
    struct tn_norm_stats *stats; /* of the last norm */
    void *attention_work;
    void **states; /* of a layer of streams that step */

    /* Of slices. Inputs are those of all own slices, one after the other; activations and saved
     * those of layer 0, slice 0, 1, ..., then of the next layer, or one for all. */
    struct tn_slice_states slices;
    float *d, *dmixed; /* R x F, of each slice, but for dmixed where slices.way keeps outputs.
                          d is also where inputs are that are not kept */
    float *spare;      /* R x F, of the slice under way */
};

void tn_transformer_lay_out_slices(tarn_run *run, struct tn_arena *arena);

extern const struct tn_body_slices tn_transformer_slices;

#endif
