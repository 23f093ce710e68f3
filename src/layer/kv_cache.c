/* SPDX-License-Identifier: MIT */
#include "layer/kv_cache.h"

#include <string.h>

size_t tn_kv_cache_floats(const tarn_attention *plan)
{
    size_t floats;

    if (plan->D > SIZE_MAX - plan->M)
        return SIZE_MAX;
    const size_t factors[] = {plan->H, plan->capacity, plan->D + plan->M};

    return tn_size_product(&floats, factors, 3) ? floats : SIZE_MAX;
}

/* Rows before row n of head h: of all heads in whole blocks, of others in its own. */
static size_t rows_before(const tarn_attention *plan, size_t h, size_t n)
{
    const size_t first = n - n % TN_KV_BLOCK;
    const size_t in_block = tn_min(TN_KV_BLOCK, plan->capacity - first);

    return first * plan->H + h * in_block + n % TN_KV_BLOCK;
}

float *tn_kv_cache_key(const tarn_attention *plan, float *floats, size_t h, size_t n)
{
    return floats + rows_before(plan, h, n) * plan->D;
}

float *tn_kv_cache_value(const tarn_attention *plan, float *floats, size_t h, size_t n)
{
    return floats + plan->H * plan->capacity * plan->D + rows_before(plan, h, n) * plan->M;
}

void tn_kv_cache_append(const struct tn_attention_call *call, float *floats, size_t b, size_t h,
                        size_t at, size_t n)
{
    const tarn_attention *const plan = call->plan;
    const tarn_input *const in = call->arrays->in;

    for (size_t i = 0; i < n; i++) {
        memcpy(tn_kv_cache_key(plan, floats, h, at + i), tn_in(in[TN_KEY], b, h, i),
               plan->D * sizeof(float));
        memcpy(tn_kv_cache_value(plan, floats, h, at + i), tn_in(in[TN_VALUE], b, h, i),
               plan->M * sizeof(float));
    }
}

/* One of H parts of the floats, from zeros, if there is nothing before. */
static void copy_part(void *arg, size_t task, size_t thread)
{
    const struct tn_attention_call *const call = arg;
    const size_t b = task / call->plan->H, part = task % call->plan->H;
    const size_t floats = tn_kv_cache_floats(call->plan) / call->plan->H;
    const float *const from = tn_call_state0(call, b);
    float *const to = tn_call_state1(call, b);

    (void)thread;
    if (!from)
        memset(to + part * floats, 0, floats * sizeof *to);
    else if (to != from)
        memcpy(to + part * floats, from + part * floats, floats * sizeof *to);
}

static void append_head(void *arg, size_t task, size_t thread)
{
    const struct tn_attention_call *const call = arg;
    const size_t b = task / call->plan->H, h = task % call->plan->H;

    (void)thread;
    tn_kv_cache_append(call, tn_call_state1(call, b), b, h, tn_call_count(call, b),
                       tn_key_length(call, b));
}

void tn_kv_cache_continue(const struct tn_attention_call *call)
{
    const size_t threads = call->plan->host.threads, heads = call->plan->B * call->plan->H;

    tn_parallel(threads, heads, copy_part, (void *)(uintptr_t)call);
    tn_parallel(threads, heads, append_head, (void *)(uintptr_t)call);
}

void tn_kv_cache_clear_gradient(const struct tn_attention_call *call)
{
    for (size_t b = 0; call->arrays->dstate0 && b < call->plan->B; b++)
        memset(tn_call_dstate0(call, b), 0, tn_kv_cache_floats(call->plan) * sizeof(float));
}

/* ---- In files ----------------------------------------------------------- */

void tn_kv_cache_pack(const tarn_attention *plan, void *keys, void *values, const void *state,
                      size_t n)
{
    float *const from = tn_state_floats((void *)(uintptr_t)state); /* only read */
    const size_t D = plan->D * sizeof(float), M = plan->M * sizeof(float);

    for (size_t h = 0; h < plan->H; h++)
        for (size_t i = 0; i < n; i++) {
            memcpy((char *)keys + (h * n + i) * D, tn_kv_cache_key(plan, from, h, i), D);
            memcpy((char *)values + (h * n + i) * M, tn_kv_cache_value(plan, from, h, i), M);
        }
}

void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *keys,
                        const void *values, size_t n)
{
    float *const to = tn_state_floats(state);
    const size_t D = plan->D * sizeof(float), M = plan->M * sizeof(float);

    for (size_t h = 0; h < plan->H; h++)
        for (size_t i = 0; i < n; i++) {
            memcpy(tn_kv_cache_key(plan, to, h, i), (const char *)keys + (h * n + i) * D, D);
            memcpy(tn_kv_cache_value(plan, to, h, i), (const char *)values + (h * n + i) * M,
                   M);
        }
    tn_state_set(plan, state, n);
}
