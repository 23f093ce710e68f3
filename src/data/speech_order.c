/* SPDX-License-Identifier: MIT */
#include "data/speech_order.h"

#include <stdlib.h>

#include "data/batch.h"

static const double shortest_share = 0.9; /* of a bucket's longest */

static int compare(const void *a, const void *b)
{
    const struct tn_length *const x = a, *const y = b;

    if (x->frames != y->frames)
        return (x->frames < y->frames) - (x->frames > y->frames);
    return (x->utterance > y->utterance) - (x->utterance < y->utterance);
}

void tn_speech_order_sort(struct tn_length *order, size_t count)
{
    if (count > 0)
        qsort(order, count, sizeof *order, compare);
}

/* Where the bucket that begins at `first` ends. */
static size_t bucket_end(const struct tn_length *order, size_t first, size_t count, size_t B)
{
    const double least = shortest_share * (double)order[first].frames;
    size_t end = tn_min(first + B, count);

    while (end < count && (double)order[tn_min(end + B, count) - 1].frames >= least)
        end = tn_min(end + B, count);
    return end;
}

static void shuffle(struct tn_length *order, size_t count, struct tn_random *random)
{
    for (size_t i = count; i > 1; i--) {
        const size_t other = tn_random_below(random, i);
        const struct tn_length swap = order[i - 1];

        order[i - 1] = order[other];
        order[other] = swap;
    }
}

void tn_speech_order_shuffle(struct tn_length *order, size_t count, size_t B, uint64_t key)
{
    struct tn_random random;
    size_t end;

    tn_random_seed(&random, key);
    tn_speech_order_sort(order, count);
    for (size_t first = 0; first < count; first = end) {
        end = bucket_end(order, first, count, B);
        shuffle(order + first, end - first, &random);
    }
}
