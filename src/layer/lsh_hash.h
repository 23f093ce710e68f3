/* SPDX-License-Identifier: MIT */
/* lsh_hash.h - positions sorted by a random hash of their vectors (Kitaev et al. 2020).
 *
 *   bucket(x) = argmax [xR, -xR],   R of D x buckets/2 Gaussians
 *
 * Near directions fall into one bucket more often than far ones; lengths do not matter. Each
 * round has an R of its own; heads and sequences share it, so that equal inputs get equal
 * hashes.
 *
 * The order of a round is its positions sorted by bucket and within a bucket by position. It is
 * kept where forward saves floats for backward: an entry is 32 bits, copied bit for bit. */
#ifndef TN_LSH_HASH_H
#define TN_LSH_HASH_H

#include <string.h>

#include "kernel/kernels.h"

/* Set in the entry of the first position of each bucket. Positions are below it. */
#define TN_LSH_STARTS UINT32_C(0x80000000)

struct tn_lsh_hash {
    const struct tn_kernels *kernels;
    size_t D, buckets, rounds; /* buckets: even */

    /* scratch */
    float *turned;    /* a tile of positions, as columns */
    float *projected; /* R^T times it */
    size_t stride;    /* of bucket, from round to round */
    int32_t *bucket;  /* one per round and position */
    uint32_t *start;  /* buckets + 1 */
};

/* Floats of one round's R, row after row; SIZE_MAX if they do not fit. */
size_t tn_lsh_rotation_floats(size_t D, size_t buckets);
void tn_lsh_rotation_draw(float *rotation, size_t D, size_t buckets, struct tn_random *random);

/* With scratch for up to N positions. Lays out, twice: see tn_arena. */
struct tn_lsh_hash tn_lsh_hash_lay_out(struct tn_arena *arena, const struct tn_kernels *kernels,
                                       size_t D, size_t buckets, size_t rounds, size_t N);

/* Hashes n rows x, ld floats apart, by the R of each round. */
void tn_lsh_hash_rows(const struct tn_lsh_hash *hash, const float *rotations, const float *x,
                      size_t ld, size_t n);

/* The order (n entries) of a round for the rows that were hashed last. */
void tn_lsh_sort(float *order, const struct tn_lsh_hash *hash, size_t round, size_t n);

static inline uint32_t tn_lsh_entry(const float *order, size_t i)
{
    uint32_t entry;

    memcpy(&entry, order + i, sizeof entry);
    return entry;
}

#endif
