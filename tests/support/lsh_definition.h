/* SPDX-License-Identifier: MIT */
/* lsh_definition.h - attention by hashing, written out pair by pair in double.
 *
 * It takes the orders that forward saved, so that it differentiates what backward
 * differentiates: attention with its hashes held. */
#ifndef LSH_DEFINITION_H
#define LSH_DEFINITION_H

#include "support/lsh_case.h"

/* Queries and values of one head in double, and how often position i sees position j. */
struct lsh_definition {
    size_t n, D, M;
    double *q, *v; /* n x D, n x M */
    size_t *times; /* n x n */
};

struct lsh_definition lsh_define(const struct lsh *l, size_t b, size_t h);
void lsh_definition_free(struct lsh_definition *def);

/* y (M) of query i. */
void lsh_attend(const struct lsh_definition *def, double *y, size_t i);

/* sum dy . y of the head that it was made of. */
double lsh_loss(const struct lsh_definition *def, const struct lsh *l, size_t b, size_t h);

#endif
