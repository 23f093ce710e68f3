/* SPDX-License-Identifier: MIT */
#include "support/batches.h"

#include <stdlib.h>
#include <string.h>

struct owned_batch batch_open(size_t B, size_t N)
{
    struct owned_batch owned = {0};
    struct tn_arena arena = tn_arena_over(NULL);

    tn_batch_take(&owned.batch, B, N, &arena);
    owned.bytes = tn_arena_bytes(&arena);
    owned.memory = take(owned.bytes, 1);
    arena = tn_arena_over(owned.memory);
    tn_batch_take(&owned.batch, B, N, &arena);
    batch_spoil(&owned);
    return owned;
}

void batch_close(struct owned_batch *owned)
{
    free(owned->memory);
}

void batch_spoil(struct owned_batch *owned)
{
    memset(owned->memory, 0xa5, owned->bytes);
}

bool batch_equal(const struct tn_batch *a, const struct tn_batch *b)
{
    const size_t cells = a->B * a->N;

    return a->B == b->B && a->N == b->N &&
           memcmp(a->inputs, b->inputs, cells * sizeof *a->inputs) == 0 &&
           memcmp(a->targets, b->targets, cells * sizeof *a->targets) == 0 &&
           memcmp(a->weights, b->weights, cells * sizeof *a->weights) == 0;
}

size_t batch_check(const struct tn_batch *batch, size_t symbols)
{
    size_t counted = 0;

    for (size_t i = 0; i < batch->B * batch->N; i++) {
        assert_true(batch->inputs[i] >= 0 && (size_t)batch->inputs[i] < symbols);
        assert_true(batch->targets[i] >= 0 && (size_t)batch->targets[i] < symbols);
        assert_true(batch->weights[i] == 0.0f || batch->weights[i] == 1.0f);
        counted += batch->weights[i] == 1.0f;
    }
    return counted;
}
