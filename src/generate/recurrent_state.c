/* SPDX-License-Identifier: MIT */
/* recurrent_state.c - what a file keeps of a recurrent state, layer after layer: sums as they
 * are, of a cache what is filled, and the symbols that the context reaches back to. */
#include "generate/recurrent.h"

#include <string.h>

#include "layer/kv_cache.h"

/* Bytes of a layer's states: the header, which streams have in common, and two halves of
 * each. */
struct parts {
    size_t bytes[3];
};

/* Of a stream without end, so that one with an end can go on in one without; of a cache the
 * positions that are filled. */
static struct parts parts_of(const tarn_generator *g, size_t n)
{
    const struct tn_recurrent *const own = g->own;
    tarn_attention plan = own->attentions[0];
    struct parts parts = {{0, 0, 0}};

    plan.steps = 0;
    if (plan.kind->caches) {
        parts.bytes[1] = plan.H * n * plan.D * sizeof(float);
        parts.bytes[2] = plan.H * n * plan.M * sizeof(float);
    } else {
        const size_t bytes = tarn_attention_state_size(&plan) - TN_STATE_HEADER;

        parts.bytes[0] = TN_STATE_HEADER;
        parts.bytes[1] = bytes / sizeof(float) / 2 * sizeof(float);
        parts.bytes[2] = bytes - parts.bytes[1];
    }
    return parts;
}

static size_t layer_bytes(const tarn_generator *g, struct parts parts)
{
    return parts.bytes[0] + g->B * (parts.bytes[1] + parts.bytes[2]);
}

/* Where a stream has part i in what is packed of a layer. */
static size_t part_at(const tarn_generator *g, struct parts parts, size_t i, size_t stream)
{
    return i == 0   ? 0
           : i == 1 ? parts.bytes[0] + stream * parts.bytes[1]
                    : parts.bytes[0] + g->B * parts.bytes[1] + stream * parts.bytes[2];
}

size_t tn_recurrent_packed(const tarn_generator *g, size_t n)
{
    return g->model->arch.config.layers * layer_bytes(g, parts_of(g, n)) +
           tn_recurrent_past_count(g) * sizeof(int32_t);
}

/* A state of fewer positions than a block of sums ends before the third part, which then is
 * zeros. */
static size_t part_there(const tarn_attention *attention, struct parts parts, size_t i)
{
    const size_t before = i == 0   ? 0
                          : i == 1 ? parts.bytes[0]
                                   : parts.bytes[0] + parts.bytes[1];

    return tn_min(parts.bytes[i], tarn_attention_state_size(attention) - before);
}

static void pack_stream(const tarn_generator *g, const tarn_attention *attention, char *layer,
                        struct parts parts, const char *state, size_t n, size_t stream)
{
    if (attention->kind->caches) {
        tn_kv_cache_pack(attention, layer + part_at(g, parts, 1, stream),
                         layer + part_at(g, parts, 2, stream), state, n);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        char *const to = layer + part_at(g, parts, i, stream);
        const size_t there = part_there(attention, parts, i);

        memcpy(to, state, there);
        memset(to + there, 0, parts.bytes[i] - there);
        state += there;
    }
}

static void unpack_stream(const tarn_generator *g, const tarn_attention *attention,
                          const char *layer, struct parts parts, char *state, size_t n,
                          size_t stream)
{
    if (attention->kind->caches) {
        tn_kv_cache_unpack(attention, state, layer + part_at(g, parts, 1, stream),
                           layer + part_at(g, parts, 2, stream), n);
        return;
    }
    for (size_t i = 0; i < 3; i++) {
        const size_t there = part_there(attention, parts, i);

        memcpy(state, layer + part_at(g, parts, i, stream), there);
        state += there;
    }
}

void tn_recurrent_pack(const tarn_generator *g, void *out, const struct tn_state *state)
{
    const struct tn_recurrent *const own = g->own;
    const size_t n = (size_t)state->position, layers = g->model->arch.config.layers;
    const struct parts parts = parts_of(g, n);
    const size_t bytes = layer_bytes(g, parts);

    for (size_t layer = 0; layer < layers; layer++)
        for (size_t b = 0; b < g->B; b++)
            pack_stream(g, &own->attentions[layer], (char *)out + layer * bytes, parts,
                        tn_recurrent_layer(g, state, layer, b), n, b);
    memcpy((char *)out + layers * bytes, tn_recurrent_past(g, state),
           tn_recurrent_past_count(g) * sizeof(int32_t));
}

void tn_recurrent_unpack(const tarn_generator *g, struct tn_state *state, const void *in)
{
    const struct tn_recurrent *const own = g->own;
    const size_t n = (size_t)state->position, layers = g->model->arch.config.layers;
    const struct parts parts = parts_of(g, n);
    const size_t bytes = layer_bytes(g, parts);

    for (size_t layer = 0; layer < layers; layer++)
        for (size_t b = 0; b < g->B; b++)
            unpack_stream(g, &own->attentions[layer], (const char *)in + layer * bytes, parts,
                          tn_recurrent_layer(g, state, layer, b), n, b);
    memcpy(tn_recurrent_past(g, state), (const char *)in + layers * bytes,
           tn_recurrent_past_count(g) * sizeof(int32_t));
}

/* From a file, symbols may be anything. */
tarn_status tn_recurrent_check(const tarn_generator *g, const struct tn_state *state,
                               const char *path, tarn_error *err)
{
    return tn_symbols_check(g->model, tn_recurrent_past(g, state), tn_recurrent_past_count(g),
                            path, err);
}
