/* SPDX-License-Identifier: MIT */
#include "layer/kv_cache.h"

#include <string.h>

enum { HEADER_BYTES = 64 };

size_t tn_kv_cache_bytes(const tarn_attention *plan)
{
    size_t bytes;

    if (plan->D > SIZE_MAX - plan->M)
        return SIZE_MAX;
    const size_t factors[] = {plan->H, plan->Nk, plan->D + plan->M, sizeof(float)};

    if (!tn_size_product(&bytes, factors, 4) || bytes > SIZE_MAX - HEADER_BYTES)
        return SIZE_MAX;
    return bytes + HEADER_BYTES;
}

/* Through memcpy: the block may be aligned for floats only. */
size_t tn_kv_cache_length(const void *state)
{
    uint64_t count;

    memcpy(&count, state, sizeof count);
    return (size_t)count;
}

static void set_length(void *state, uint64_t count)
{
    memcpy(state, &count, sizeof count);
}

void tn_kv_cache_advance(const struct tn_attention_call *call)
{
    for (size_t b = 0; b < call->n; b++)
        set_length(call->states[b], tn_kv_cache_length(call->states[b]) + 1);
}

static float *key_rows(const tarn_attention *plan, void *state, size_t h)
{
    float *const keys = (float *)(void *)((char *)state + HEADER_BYTES);

    return keys + h * plan->Nk * plan->D;
}

static float *value_rows(const tarn_attention *plan, void *state, size_t h)
{
    return key_rows(plan, state, plan->H) + h * plan->Nk * plan->M;
}

const float *tn_kv_cache_keys(const struct tn_attention_call *call, size_t b, size_t h)
{
    return key_rows(call->plan, call->states[b], h);
}

const float *tn_kv_cache_values(const struct tn_attention_call *call, size_t b, size_t h)
{
    return value_rows(call->plan, call->states[b], h);
}

void tn_kv_cache_append(const struct tn_attention_call *call, size_t b, size_t h)
{
    const tarn_attention *const plan = call->plan;
    const size_t D = plan->D, M = plan->M, n = tn_kv_cache_length(call->states[b]);

    memcpy(key_rows(plan, call->states[b], h) + n * D, tn_in(call->arrays->in[TN_KEY], b, h, 0),
           D * sizeof(float));
    memcpy(value_rows(plan, call->states[b], h) + n * M,
           tn_in(call->arrays->in[TN_VALUE], b, h, 0), M * sizeof(float));
}

/* ---- In files ----------------------------------------------------------- */

void tn_kv_cache_pack(const tarn_attention *plan, void *keys, void *values, const void *state,
                      size_t n)
{
    void *const from = (void *)(uintptr_t)state; /* only read */
    const size_t D = n * plan->D * sizeof(float), M = n * plan->M * sizeof(float);

    for (size_t h = 0; h < plan->H; h++) {
        memcpy((char *)keys + h * D, key_rows(plan, from, h), D);
        memcpy((char *)values + h * M, value_rows(plan, from, h), M);
    }
}

void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *keys,
                        const void *values, size_t n)
{
    const size_t D = n * plan->D * sizeof(float), M = n * plan->M * sizeof(float);

    set_length(state, n);
    for (size_t h = 0; h < plan->H; h++) {
        memcpy(key_rows(plan, state, h), (const char *)keys + h * D, D);
        memcpy(value_rows(plan, state, h), (const char *)values + h * M, M);
    }
}
