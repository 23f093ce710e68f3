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

float *tn_kv_cache_keys(const tarn_attention *plan, float *floats, size_t h)
{
    return floats + h * plan->capacity * plan->D;
}

float *tn_kv_cache_values(const tarn_attention *plan, float *floats, size_t h)
{
    return tn_kv_cache_keys(plan, floats, plan->H) + h * plan->capacity * plan->M;
}

void tn_kv_cache_append(const struct tn_attention_call *call, float *floats, size_t b, size_t h,
                        size_t at, size_t n)
{
    const size_t D = call->plan->D, M = call->plan->M;
    float *const keys = tn_kv_cache_keys(call->plan, floats, h) + at * D;
    float *const values = tn_kv_cache_values(call->plan, floats, h) + at * M;

    for (size_t i = 0; i < n; i++) {
        memcpy(keys + i * D, tn_in(call->arrays->in[TN_KEY], b, h, i), D * sizeof(float));
        memcpy(values + i * M, tn_in(call->arrays->in[TN_VALUE], b, h, i), M * sizeof(float));
    }
}

/* From zeros, if there is nothing before; not if it is the same place. */
static void copy_head(float *to, const float *from, size_t floats)
{
    if (!from)
        memset(to, 0, floats * sizeof *to);
    else if (to != from)
        memcpy(to, from, floats * sizeof *to);
}

static void continue_head(void *arg, size_t task, size_t thread)
{
    const struct tn_attention_call *const call = arg;
    const tarn_attention *const plan = call->plan;
    const size_t b = task / plan->H, h = task % plan->H, count = tn_call_count(call, b);
    float *const before = (float *)(uintptr_t)tn_call_state0(call, b); /* only read */
    float *const after = tn_call_state1(call, b);

    (void)thread;
    copy_head(tn_kv_cache_keys(plan, after, h),
              before ? tn_kv_cache_keys(plan, before, h) : NULL, plan->capacity * plan->D);
    copy_head(tn_kv_cache_values(plan, after, h),
              before ? tn_kv_cache_values(plan, before, h) : NULL, plan->capacity * plan->M);
    tn_kv_cache_append(call, after, b, h, count, tn_key_length(call, b));
}

void tn_kv_cache_continue(const struct tn_attention_call *call)
{
    tn_parallel(call->plan->host.threads, call->plan->B * call->plan->H, continue_head,
                (void *)(uintptr_t)call);
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
    const size_t D = n * plan->D * sizeof(float), M = n * plan->M * sizeof(float);

    for (size_t h = 0; h < plan->H; h++) {
        memcpy((char *)keys + h * D, tn_kv_cache_keys(plan, from, h), D);
        memcpy((char *)values + h * M, tn_kv_cache_values(plan, from, h), M);
    }
}

void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *keys,
                        const void *values, size_t n)
{
    float *const to = tn_state_floats(state);
    const size_t D = n * plan->D * sizeof(float), M = n * plan->M * sizeof(float);

    for (size_t h = 0; h < plan->H; h++) {
        memcpy(tn_kv_cache_keys(plan, to, h), (const char *)keys + h * D, D);
        memcpy(tn_kv_cache_values(plan, to, h), (const char *)values + h * M, M);
    }
    tn_state_set(plan, state, n);
}
