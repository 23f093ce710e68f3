/* SPDX-License-Identifier: MIT */
/* random.c - xoshiro256++ 1.0 (Blackman and Vigna), splitmix64 for the seed, and normals by the
 * polar method of Marsaglia, the second of each pair dropped so that the state is four words.
 * */
#include <math.h>

#include "base/base.h"

uint64_t tn_random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static uint64_t splitmix64(uint64_t *x)
{
    return tn_random_mix(*x += UINT64_C(0x9e3779b97f4a7c15));
}

static uint64_t rotate_left(uint64_t x, int by)
{
    return (x << by) | (x >> (64 - by));
}

void tn_random_seed(struct tn_random *random, uint64_t seed)
{
    for (size_t i = 0; i < 4; i++)
        random->s[i] = splitmix64(&seed);
}

uint64_t tn_random_bits(struct tn_random *random)
{
    uint64_t *const s = random->s;
    const uint64_t result = rotate_left(s[0] + s[3], 23) + s[0];
    const uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

double tn_random_uniform(struct tn_random *random)
{
    return (double)(tn_random_bits(random) >> 11) * 0x1p-53;
}

double tn_random_normal(struct tn_random *random)
{
    for (;;) {
        const double u = 2.0 * tn_random_uniform(random) - 1.0;
        const double v = 2.0 * tn_random_uniform(random) - 1.0;
        const double r = u * u + v * v;

        if (r > 0.0 && r < 1.0)
            return u * sqrt(-2.0 * log(r) / r);
    }
}

uint64_t tn_random_absorb(uint64_t hash, uint64_t word)
{
    struct tn_random random;

    tn_random_seed(&random, hash ^ word);
    return tn_random_bits(&random);
}
