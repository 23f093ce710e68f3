/* SPDX-License-Identifier: MIT */
#include "layer/kv_cache.h"

#include <string.h>

enum { HEADER_BYTES = 64 };

size_t tn_kv_cache_bytes(const tarn_attention *plan)
{
    size_t bytes;

    if (plan->D > SIZE_MAX - plan->M)
        return SIZE_MAX;
    const size_t factors[] = {plan->B, plan->H, plan->Nk, plan->D + plan->M, sizeof(float)};

    if (!tn_size_product(&bytes, factors, 5) || bytes > SIZE_MAX - HEADER_BYTES)
        return SIZE_MAX;
    return bytes + HEADER_BYTES;
}

/* Through memcpy: the block may be aligned for floats only. */
static uint64_t count_read(const struct tn_attention_call *call)
{
    uint64_t count;

    memcpy(&count, call->state, sizeof count);
    return count;
}

size_t tn_kv_cache_length(const struct tn_attention_call *call)
{
    return (size_t)count_read(call);
}

void tn_kv_cache_advance(const struct tn_attention_call *call)
{
    const uint64_t count = count_read(call) + 1;

    memcpy(call->state, &count, sizeof count);
}

static float *key_rows(const struct tn_attention_call *call, size_t b, size_t h)
{
    const tarn_attention *const plan = call->plan;
    float *const keys = (float *)(void *)((char *)call->state + HEADER_BYTES);

    return keys + (b * plan->H + h) * plan->Nk * plan->D;
}

static float *value_rows(const struct tn_attention_call *call, size_t b, size_t h)
{
    const tarn_attention *const plan = call->plan;
    float *const values = key_rows(call, plan->B, 0);

    return values + (b * plan->H + h) * plan->Nk * plan->M;
}

const float *tn_kv_cache_keys(const struct tn_attention_call *call, size_t b, size_t h)
{
    return key_rows(call, b, h);
}

const float *tn_kv_cache_values(const struct tn_attention_call *call, size_t b, size_t h)
{
    return value_rows(call, b, h);
}

void tn_kv_cache_append(const struct tn_attention_call *call, size_t b, size_t h)
{
    const size_t D = call->plan->D, M = call->plan->M, n = tn_kv_cache_length(call);

    memcpy(key_rows(call, b, h) + n * D, tn_in(call->arrays->k, b, h, 0), D * sizeof(float));
    memcpy(value_rows(call, b, h) + n * M, tn_in(call->arrays->v, b, h, 0), M * sizeof(float));
}
