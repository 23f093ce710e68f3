/* SPDX-License-Identifier: MIT */
#include "data/batch.h"

#include <string.h>

void tn_batch_take(struct tn_batch *batch, size_t B, size_t N, struct tn_arena *arena)
{
    size_t cells;

    if (!tn_size_product(&cells, (size_t[]){B, N}, 2))
        cells = SIZE_MAX; /* which the arena refuses */
    *batch = (struct tn_batch){.B = B, .N = N};
    batch->inputs = tn_arena_take(arena, cells, sizeof *batch->inputs);
    batch->targets = tn_arena_take(arena, cells, sizeof *batch->targets);
    batch->weights = tn_arena_floats(arena, cells);
}

void tn_batch_clear(struct tn_batch *batch, size_t b)
{
    const size_t N = batch->N;

    memset(batch->inputs + b * N, 0, N * sizeof *batch->inputs);
    memset(batch->targets + b * N, 0, N * sizeof *batch->targets);
    memset(batch->weights + b * N, 0, N * sizeof *batch->weights);
}

void tn_batch_random(struct tn_random *random, uint64_t seed, enum tn_split split,
                     uint64_t index, size_t b)
{
    const uint64_t words[] = {seed, (uint64_t)split, index, b};
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = tn_random_absorb(hash, words[i]);
    tn_random_seed(random, hash);
}
