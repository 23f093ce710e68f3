/* SPDX-License-Identifier: MIT */
/* lsh_case.h - a call of attention by hashing: a plan, its arrays, its memory. */
#ifndef LSH_CASE_H
#define LSH_CASE_H

#include "layer/attention_kind.h"
#include "support/testing.h"

struct lsh_case {
    tarn_attention_desc desc;
    size_t rounds, buckets, chunk, same_bucket;
    const size_t *lengths;
    double scale;                     /* of queries */
    bool heads_first;                 /* (B, H, N, D) instead of (B, N, H, D) */
    const struct tn_kernels *kernels; /* if not NULL, in the place of desc.cpu's */
};

struct lsh {
    struct lsh_case is;
    char kind[96];
    tarn_attention *plan;
    size_t B, H, N, D, M;
    float *q, *v, *y, *dy, *dq, *dv;
    void *saved, *work;
    tarn_attention_arrays arrays;
};

/* Random queries, values and gradients of outputs; workspace that holds no number. */
void lsh_open(struct lsh *l, const struct lsh_case *is, uint64_t inputs_seed);
void lsh_close(struct lsh *l);

void lsh_forward(struct lsh *l);
void lsh_backward(struct lsh *l);

size_t lsh_length(const struct lsh *l, size_t b);

/* Positions of a head by bucket, as forward saved them. */
const float *lsh_order(const struct lsh *l, size_t b, size_t h, size_t round);

/* Shapes and options of all kinds, on every instruction set in turn. */
void lsh_for_cases(size_t count, uint64_t seed, void (*check)(struct lsh *l));

/* B = H = 2, D = 16, M = 8: three rounds of 8 buckets, chunks of 8. */
struct lsh_case lsh_plain_case(size_t N);

#endif
