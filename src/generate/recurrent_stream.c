/* SPDX-License-Identifier: MIT */
/* recurrent_stream.c - a recurrent stream in memory, and what a file keeps of it: layer after
 * layer sums as they are, of a cache what is filled, and the symbols that the context reaches
 * back to. */
#include <string.h>

#include "generate/recurrent.h"
#include "layer/kv_cache.h"

enum { PARTS = 3 }; /* of a layer's state in a file */

static size_t layers_of(const tarn_engine *e)
{
    return e->model->arch.config.layers;
}

static size_t reach_bytes(const tarn_engine *e)
{
    return e->model->arch.context.reach * sizeof(int32_t);
}

/* Recent symbols that the context reaches back to, then the states of the layers. */
static int32_t *past_of(const tarn_stream *stream)
{
    return (int32_t *)(uintptr_t)(stream + 1);
}

static void *layer_state(const tarn_engine *e, const tarn_stream *stream, size_t layer)
{
    const tarn_run *const run = ((const struct tn_recurrent *)e->own)->together;

    return run->model->arch.body->layer_state(run, (void *)(uintptr_t)(stream + 1), layer);
}

/* ---- Sections ----------------------------------------------------------- */

/* A sum is whole at any position. It is kept as for a stream without a limit, so that one with
 * a limit can continue in one without. */
static void layer_parts(const tarn_engine *e, size_t n, size_t parts[PARTS])
{
    tarn_attention plan = *tn_recurrent_attention(e, 0);

    plan.steps = 0;
    if (plan.kind->caches) {
        parts[0] = 0;
        parts[1] = plan.H * n * plan.D * sizeof(float);
        parts[2] = plan.H * n * plan.M * sizeof(float);
    } else {
        const size_t floats =
            (tarn_attention_state_size(&plan) - TN_STATE_HEADER) / sizeof(float);

        parts[0] = TN_STATE_HEADER;
        parts[1] = floats / 2 * sizeof(float);
        parts[2] = (floats - floats / 2) * sizeof(float);
    }
}

static size_t layer_packed(const size_t parts[PARTS])
{
    return parts[0] + parts[1] + parts[2];
}

/* Sections that are empty do not count. */
size_t tn_recurrent_section(const tarn_engine *e, size_t n, size_t index, bool *common)
{
    size_t parts[PARTS];

    layer_parts(e, n, parts);
    *common = false;
    for (size_t i = 0; i < layers_of(e) * PARTS; i++)
        if (parts[i % PARTS] > 0 && index-- == 0) {
            *common = i % PARTS == 0;
            return parts[i % PARTS];
        }
    return index == 0 ? reach_bytes(e) : 0;
}

/* ---- Packing ------------------------------------------------------------ */

/* The rest of what is packed is zeros: no position has come so far. */
static void pack_sums(const tarn_attention *attention, char *to, const void *from, size_t bytes)
{
    const size_t own = tarn_attention_state_size(attention);

    memcpy(to, from, own);
    memset(to + own, 0, bytes - own);
}

void tn_recurrent_pack(const tarn_engine *e, void *packed, const tarn_stream *stream)
{
    const size_t n = (size_t)stream->head.position;
    size_t parts[PARTS];
    char *to = packed;

    layer_parts(e, n, parts);
    for (size_t layer = 0; layer < layers_of(e); layer++, to += layer_packed(parts)) {
        const tarn_attention *const attention = tn_recurrent_attention(e, layer);
        const void *const state = layer_state(e, stream, layer);

        if (attention->kind->caches)
            tn_kv_cache_pack(attention, to, to + parts[1], state, n);
        else
            pack_sums(attention, to, state, layer_packed(parts));
    }
    memcpy(to, past_of(stream), reach_bytes(e));
}

void tn_recurrent_unpack(const tarn_engine *e, tarn_stream *stream, const void *packed)
{
    const size_t n = (size_t)stream->head.position;
    size_t parts[PARTS];
    const char *from = packed;

    layer_parts(e, n, parts);
    for (size_t layer = 0; layer < layers_of(e); layer++, from += layer_packed(parts)) {
        const tarn_attention *const attention = tn_recurrent_attention(e, layer);
        void *const state = layer_state(e, stream, layer);

        if (n == 0)
            continue; /* zeros, which are the start */
        if (attention->kind->caches)
            tn_kv_cache_unpack(attention, state, from, from + parts[1], n);
        else
            memcpy(state, from, tarn_attention_state_size(attention));
        tn_state_set(attention, state, n);
    }
    memcpy(past_of(stream), from, reach_bytes(e));
}

const int32_t *tn_recurrent_kept(const tarn_engine *e, const tarn_stream *stream, size_t *count)
{
    *count = e->model->arch.context.reach;
    return past_of(stream);
}
