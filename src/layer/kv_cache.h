/* SPDX-License-Identifier: MIT */
/* kv_cache.h - every key and value so far, for kinds whose step has to look at all of them.
 *
 * The state of such a kind is one block without pointers, in floats of the machine:
 *     bytes 0 .. 63   how many positions it has, a uint64_t
 *     keys            H x Nk x D
 *     values          H x Nk x M
 * All zeros is the empty start. The block needs no more alignment than a float.
 *
 * A step lets every (b, h) append its position, from any thread, and read the rows
 * 0 .. length, its own last; then it advances once, so that all heads see one length. */
#ifndef TN_KV_CACHE_H
#define TN_KV_CACHE_H

#include "layer/attention_kind.h"

/* As kind->state: SIZE_MAX if they do not fit. */
size_t tn_kv_cache_bytes(const tarn_attention *plan);

/* As kind->cached: positions before those of the call. */
size_t tn_kv_cache_length(const void *state);

/* Copies key and value of the call's position of head h of sequence b to row `length` of its
 * state, which must be below Nk. */
void tn_kv_cache_append(const struct tn_attention_call *call, size_t b, size_t h);

/* Row 0 of head h of sequence b; the next rows follow D and M floats apart. */
const float *tn_kv_cache_keys(const struct tn_attention_call *call, size_t b, size_t h);
const float *tn_kv_cache_values(const struct tn_attention_call *call, size_t b, size_t h);

/* One position more in every state of the call. */
void tn_kv_cache_advance(const struct tn_attention_call *call);

/* The keys and values of the rows 0 .. n-1 alone, as they go to a file: (H, n, D) and
 * (H, n, M), of any alignment. n is at most Nk. Unpacking fills a cache of zeros. */
void tn_kv_cache_pack(const tarn_attention *plan, void *keys, void *values, const void *state,
                      size_t n);
void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *keys,
                        const void *values, size_t n);

#endif
