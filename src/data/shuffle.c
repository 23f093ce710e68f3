/* SPDX-License-Identifier: MIT */
/* shuffle.c - a Feistel network permutes the numbers of 2k bits,
 *
 *     (left, right) -> (right, left ^ f(key, round, right)),
 *
 * whatever f is, since each round can be undone. For n that is no power of 4 the walk goes on
 * from a number beyond n until it is below: from i < n that ends, at the latest in i itself,
 * and different starts end differently, because they walk the same cycles. There are at most
 * four times as many numbers as wanted, so that a walk has four steps on average, or fewer. */
#include "data/shuffle.h"

enum { ROUNDS = 6 }; /* 4 make a good permutation of a good f; half-words here may be a bit */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t permute(uint64_t key, unsigned half, uint64_t x)
{
    const uint64_t mask = (UINT64_C(1) << half) - 1;
    uint64_t left = x >> half, right = x & mask;

    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const uint64_t next = left ^ (mix(mix(key + round) + right) & mask);

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
