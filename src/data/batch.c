/* SPDX-License-Identifier: MIT */
#include "data/batch.h"

#include <string.h>

tarn_status tn_validation_check(double validation, const char *what, tarn_error *err)
{
    if (validation > 0.0 && validation <= 1.0) /* not a number is neither */
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "validation is %g; it must be a fraction of the %s above 0 and up to 1",
                   validation, what);
}

void tn_batch_lay_out(struct tn_batch *batch, size_t B, size_t N, struct tn_arena *arena)
{
    size_t cells;

    if (!tn_size_product(&cells, (size_t[]){B, N}, 2))
        cells = SIZE_MAX; /* which the arena refuses */
    *batch = (struct tn_batch){.B = B, .N = N};
    batch->inputs = tn_arena_alloc(arena, cells, sizeof *batch->inputs);
    batch->targets = tn_arena_alloc(arena, cells, sizeof *batch->targets);
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

/* ---- Permutations -------------------------------------------------------- */

/* A Feistel network permutes the numbers of 2k bits,
 *
 *     (left, right) -> (right, left ^ f(key, round, right)),
 *
 * whatever f is, since each round can be undone. For n that is not a power of 4 the walk
 * continues from a number beyond n until it is below: from i < n that ends, at the latest in i
 * itself, and different starts end differently, because they walk the same cycles. There are at
 * most four times as many numbers as wanted, so that a walk has four steps on average, or
 * fewer. */
enum { ROUNDS = 6 }; /* 4 make a good permutation of a good f; half-words here may be a bit */

static uint64_t permute(uint64_t key, unsigned half, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const uint64_t next = left ^ (tn_random_mix(tn_random_mix(key + round) + right) & mask);

        left = right;
        right = next;
    }
    return left << half | right;
}

size_t tn_shuffle(uint64_t key, size_t n, size_t i)
{
    unsigned half = 1;
    uint64_t x = i;

    while (half < 32 && (uint64_t)(n - 1) >> 2 * half)
        half++;
    do
        x = permute(key, half, x);
    while (x >= n);
    return (size_t)x;
}
