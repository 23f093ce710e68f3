/* SPDX-License-Identifier: MIT */
/* kv_cache.h - every key and value so far, for kinds whose step has to look at all of them.
 *
 * The state of such a kind is one block without pointers, in floats of the machine:
 *     bytes 0 .. 63   how many positions are held, a uint64_t; the same for every sequence
 *     keys            B x H x Nk x D
 *     values          B x H x Nk x M
 * All zeros is the empty start. The block needs no more alignment than a float.
 *
 * A step lets every (b, h) append its position, from any thread, and look at the rows
 * 0 .. length, its own last; then it advances once, so that all heads see one length. */
#ifndef TN_KV_CACHE_H
#define TN_KV_CACHE_H

#include "layer/attn.h"

/* SIZE_MAX if they do not fit. As kind->state. */
size_t tn_kv_cache_bytes(const tarn_attention *plan);

/* Positions held, before the call's own. As kind->cached. */
size_t tn_kv_cache_length(const struct tn_attention_call *call);

/* Below, b counts from the call's first stream. */

/* Copies k and v of the call's position of head h of sequence b to row `length`, which must be
 * below Nk. */
void tn_kv_cache_append(const struct tn_attention_call *call, size_t b, size_t h);

/* Row 0 of head h of sequence b; the next rows follow D and M floats apart. */
const float *tn_kv_cache_keys(const struct tn_attention_call *call, size_t b, size_t h);
const float *tn_kv_cache_values(const struct tn_attention_call *call, size_t b, size_t h);

/* One position more. As kind->advance. */
void tn_kv_cache_advance(void *state);

/* The rows 0 .. n-1 alone, without the count, as they go to a file: keys (B, H, n, D), then
 * values (B, H, n, M). n is at most Nk, so that the bytes fit wherever the cache does. `packed`
 * has no alignment. Unpacking fills a cache of zeros. */
size_t tn_kv_cache_packed_bytes(const tarn_attention *plan, size_t n);
void tn_kv_cache_pack(const tarn_attention *plan, void *packed, const void *state, size_t n);
void tn_kv_cache_unpack(const tarn_attention *plan, void *state, const void *packed, size_t n);

#endif
