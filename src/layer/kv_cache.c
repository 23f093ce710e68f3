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
static uint64_t count_of(const void *state)
{
    uint64_t count;

    memcpy(&count, state, sizeof count);
    return count;
}

size_t tn_kv_cache_length(const struct tn_attention_call *call)
{
    return (size_t)count_of(call->state);
}

void tn_kv_cache_advance(void *state)
{
    const uint64_t count = count_of(state) + 1;

    memcpy(state, &count, sizeof count);
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
    return key_rows(call, call->streams.first + b, h);
}

const float *tn_kv_cache_values(const struct tn_attention_call *call, size_t b, size_t h)
{
    return value_rows(call, call->streams.first + b, h);
}

void tn_kv_cache_append(const struct tn_attention_call *call, size_t b, size_t h)
{
    const size_t D = call->plan->D, M = call->plan->M, n = tn_kv_cache_length(call);

    memcpy(key_rows(call, call->streams.first + b, h) + n * D, tn_in(call->arrays->k, b, h, 0),
           D * sizeof(float));
    memcpy(value_rows(call, call->streams.first + b, h) + n * M,
           tn_in(call->arrays->v, b, h, 0), M * sizeof(float));
}

/* ---- Without what is empty ---------------------------------------------- */

size_t tn_kv_cache_packed_bytes(const tarn_attention *plan, size_t n)
{
    return plan->B * plan->H * n * (plan->D + plan->M) * sizeof(float);
}

/* Blocks of `bytes` that lie `from_step` and `to_step` bytes apart. */
static void copy_blocks(char *to, size_t to_step, const char *from, size_t from_step,
                        size_t bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * to_step, from + i * from_step, bytes);
}

void tn_kv_cache_pack(const tarn_attention *plan, void *packed, const void *state, size_t n)
{
    const size_t heads = plan->B * plan->H, D = plan->D * sizeof(float);
    const size_t M = plan->M * sizeof(float);
    const char *const keys = (const char *)state + HEADER_BYTES;
    char *const out = packed;

    copy_blocks(out, n * D, keys, plan->Nk * D, n * D, heads);
    copy_blocks(out + heads * n * D, n * M, keys + heads * plan->Nk * D, plan->Nk * M, n * M,
                heads);
}

void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *packed, size_t n)
{
    const size_t heads = plan->B * plan->H, D = plan->D * sizeof(float);
    const size_t M = plan->M * sizeof(float);
    const uint64_t count = n;
    char *const keys = (char *)state + HEADER_BYTES;
    const char *const in = packed;

    memcpy(state, &count, sizeof count);
    copy_blocks(keys, plan->Nk * D, in, n * D, n * D, heads);
    copy_blocks(keys + heads * plan->Nk * D, plan->Nk * M, in + heads * n * D, n * M, n * M,
                heads);
}
