/* SPDX-License-Identifier: MIT */
/* recurrent_state.c - what a file keeps of a recurrent state, layer after layer: sums as they
 * are, of a cache what is filled, and the symbols that the context reaches back to. */
#include "generate/recurrent.h"

#include <string.h>

#include "layer/kv_cache.h"

/* Of a layer; a sum is whole at any position. It is kept as for a stream without end, so that
 * one with an end can go on in one without. */
static size_t layer_packed(const tarn_generator *g, size_t n)
{
    const struct tn_recurrent *const own = g->own;
    tarn_attention endless = own->attentions[0];

    endless.steps = 0;
    return endless.kind->cached ? tn_kv_cache_packed_bytes(&endless, n)
                                : tarn_attention_state_size(&endless);
}

/* The rest of what is packed is zeros: no position has come so far. */
static void pack_sums(const tarn_attention *attention, char *to, const void *from, size_t bytes)
{
    const size_t own = tarn_attention_state_size(attention);

    memcpy(to, from, own);
    memset(to + own, 0, bytes - own);
}

size_t tn_recurrent_packed(const tarn_generator *g, size_t n)
{
    return g->model->arch.config.layers * layer_packed(g, n) +
           tn_recurrent_past_count(g) * sizeof(int32_t);
}

void tn_recurrent_pack(const tarn_generator *g, void *out, const struct tn_state *state)
{
    const struct tn_recurrent *const own = g->own;
    const size_t n = (size_t)state->position, bytes = layer_packed(g, n);

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++) {
        const tarn_attention *const attention = &own->attentions[layer];
        char *const to = (char *)out + layer * bytes;

        if (attention->kind->cached)
            tn_kv_cache_pack(attention, to, tn_recurrent_layer(g, state, layer), n);
        else
            pack_sums(attention, to, tn_recurrent_layer(g, state, layer), bytes);
    }
    memcpy((char *)out + g->model->arch.config.layers * bytes, tn_recurrent_past(g, state),
           tn_recurrent_past_count(g) * sizeof(int32_t));
}

void tn_recurrent_unpack(const tarn_generator *g, struct tn_state *state, const void *in)
{
    const struct tn_recurrent *const own = g->own;
    const size_t n = (size_t)state->position, bytes = layer_packed(g, n);

    for (size_t layer = 0; layer < g->model->arch.config.layers; layer++) {
        const tarn_attention *const attention = &own->attentions[layer];
        const char *const from = (const char *)in + layer * bytes;

        if (attention->kind->cached)
            tn_kv_cache_unpack(attention, tn_recurrent_layer(g, state, layer), from, n);
        else
            memcpy(tn_recurrent_layer(g, state, layer), from,
                   tarn_attention_state_size(attention));
    }
    memcpy(tn_recurrent_past(g, state), (const char *)in + g->model->arch.config.layers * bytes,
           tn_recurrent_past_count(g) * sizeof(int32_t));
}

/* From a file, symbols may be anything. */
tarn_status tn_recurrent_check(const tarn_generator *g, const struct tn_state *state,
                               const char *path, tarn_error *err)
{
    return tn_symbols_check(g->model, tn_recurrent_past(g, state), tn_recurrent_past_count(g),
                            path, err);
}
