/* SPDX-License-Identifier: MIT */
#include "layer/lsh_hash.h"

enum { TILE = 32 }; /* positions hashed at once: whole vectors on any machine */

size_t tn_lsh_rotation_floats(size_t D, size_t buckets)
{
    size_t floats;

    return tn_size_product(&floats, (size_t[]){D, buckets / 2}, 2) ? floats : SIZE_MAX;
}

void tn_lsh_rotation_draw(float *rotation, size_t D, size_t buckets, struct tn_random *random)
{
    for (size_t i = 0; i < D * (buckets / 2); i++)
        rotation[i] = (float)tn_random_normal(random);
}

struct tn_lsh_hash tn_lsh_hash_lay_out(struct tn_arena *arena, const struct tn_kernels *kernels,
                                       size_t D, size_t buckets, size_t rounds, size_t N)
{
    const size_t stride = tn_round_up(N, TILE);

    return (struct tn_lsh_hash){
        .kernels = kernels,
        .D = D,
        .buckets = buckets,
        .rounds = rounds,
        .turned = tn_arena_alloc(arena, D, TILE * sizeof(float)),
        .projected = tn_arena_floats(arena, buckets / 2 * TILE),
        .stride = stride,
        .bucket = tn_arena_alloc(arena, rounds, stride * sizeof(int32_t)),
        .start = tn_arena_alloc(arena, buckets + 1, sizeof(uint32_t)),
    };
}

/* Row i of `projected` holds (xR)_i of every position of a tile. The argmax of [xR, -xR] is
 * where |xR| is largest, in the half of its sign. Ties, and so zeros, go to the first. */
static void hash_tile(const struct tn_lsh_hash *hash, const float *rotations, size_t first)
{
    const size_t half = hash->buckets / 2;

    for (size_t round = 0; round < hash->rounds; round++) {
        hash->kernels->product(hash->projected, TILE, rotations + round * hash->D * half, 1,
                               (ptrdiff_t)half, hash->turned, TILE, half, TILE, hash->D, false);
        hash->kernels->lsh_buckets(hash->bucket + round * hash->stride + first, hash->projected,
                                   TILE, half, TILE);
    }
}

void tn_lsh_hash_rows(const struct tn_lsh_hash *hash, const float *rotations, const float *x,
                      size_t ld, size_t n)
{
    for (size_t first = 0; first < n; first += TILE) {
        const size_t count = tn_min(n - first, TILE);

        if (count < TILE)
            memset(hash->turned, 0, hash->D * TILE * sizeof(float));
        hash->kernels->transpose(hash->turned, TILE, x + first * ld, (ptrdiff_t)ld, count,
                                 hash->D);
        hash_tile(hash, rotations, first);
    }
}

/* A counting sort: start[b] is where the next position of bucket b goes. */
void tn_lsh_sort(float *order, const struct tn_lsh_hash *hash, size_t round, size_t n)
{
    uint32_t *const start = hash->start;
    const int32_t *const bucket = hash->bucket + round * hash->stride;

    memset(start, 0, (hash->buckets + 1) * sizeof *start);
    for (size_t i = 0; i < n; i++)
        start[bucket[i] + 1]++;
    for (size_t b = 0; b < hash->buckets; b++)
        start[b + 1] += start[b];
    for (size_t i = 0; i < n; i++) {
        const uint32_t entry = (uint32_t)i;

        memcpy(order + start[bucket[i]]++, &entry, sizeof entry);
    }
    /* Now start[b] is where bucket b ends and the next begins. */
    for (size_t b = 0, begin = 0; b < hash->buckets; begin = start[b++])
        if (begin < start[b]) {
            const uint32_t entry = tn_lsh_entry(order, begin) | TN_LSH_STARTS;

            memcpy(order + begin, &entry, sizeof entry);
        }
}
