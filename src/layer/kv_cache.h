/* SPDX-License-Identifier: MIT */
/* kv_cache.h - every key and value so far, for kinds whose step has to read all of them.
 *
 * The floats of such a state are keys, then values, in blocks of TN_KV_BLOCK positions:
 *
 *     blocks x H x block x D
 *     blocks x H x block x M
 *
 * The last block is shorter if the capacity is not a multiple. So what a step reads of all
 * heads is two long pieces of memory, however few positions there are.
 *
 * A position is appended after those that the state's header counts; the caller counts it. */
#ifndef TN_KV_CACHE_H
#define TN_KV_CACHE_H

#include "layer/attention_kind.h"

/* As kind->state: SIZE_MAX if they do not fit. */
size_t tn_kv_cache_floats(const tarn_attention *plan);

/* Row n of a head, in the floats of a state or of its gradient. The rows behind it in its block
 * follow, D or M floats apart. */
float *tn_kv_cache_key(const tarn_attention *plan, float *floats, size_t h, size_t n);
float *tn_kv_cache_value(const tarn_attention *plan, float *floats, size_t h, size_t n);

/* Copies keys and values of head h of sequence b of the call, n positions, to the rows from
 * `at` on. */
void tn_kv_cache_append(const struct tn_attention_call *call, float *floats, size_t b, size_t h,
                        size_t at, size_t n);

/* A forward's state1 with all positions of the call in it: copies of those before, and its
 * own. */
void tn_kv_cache_continue(const struct tn_attention_call *call);

/* A backward's dstate0, if there is one: zeros. */
void tn_kv_cache_clear_gradient(const struct tn_attention_call *call);

/* The keys and values of the rows 0 .. n-1 alone, as they go to a file: (H, n, D) and
 * (H, n, M), of any alignment. n is at most the capacity. Unpacking fills a cache of zeros. */
void tn_kv_cache_pack(const tarn_attention *plan, void *keys, void *values, const void *state,
                      size_t n);
void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *keys,
                        const void *values, size_t n);

#endif
