/* SPDX-License-Identifier: MIT */
/* speech_order.h - utterances of like length in one batch, so that padding wastes little.
 *
 *     sorted, longest first  | | | | | | | | | | | | | | | |
 *     buckets                |     shuffled    | shuffled  |     none below 0.9 of its longest
 *     batches of B           |     |     |     |     |     |     in an order that is shuffled
 *
 * A bucket is as many batches as its rule allows and one at least, so that a batch pads by less
 * than a tenth but where utterances are few. Everything is a function of lengths, B and key. */
#ifndef TN_SPEECH_ORDER_H
#define TN_SPEECH_ORDER_H

#include "base/base.h"

struct tn_length {
    size_t frames, utterance;
};

/* Sorts; equal lengths by utterance. */
void tn_speech_order_sort(struct tn_length *order, size_t count);

/* Sorts and shuffles within buckets. Batch k is order[k B] up to order[(k + 1) B - 1]; which
 * one comes when is for tn_shuffle() to say. */
void tn_speech_order_shuffle(struct tn_length *order, size_t count, size_t B, uint64_t key);

#endif
