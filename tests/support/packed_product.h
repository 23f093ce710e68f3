/* SPDX-License-Identifier: MIT */
/* packed_product.h - products of weights that are packed to fewer bits, with their arrays. */
#ifndef PACKED_PRODUCT_H
#define PACKED_PRODUCT_H

#include "kernel/matmul.h"
#include "support/testing.h"

struct packed_product {
    struct tn_matmul_desc desc;
    float *a, *b, *bias, *old; /* old: c before */
};

/* Random arrays for a desc, whose leading dimensions may be 0: no gaps. */
struct packed_product packed_product_of(struct tn_matmul_desc desc, enum tn_element elements,
                                        struct tn_random *random);

/* A random desc as well, with gaps between rows of a and c. */
struct packed_product packed_product_draw(enum tn_element elements, struct tn_random *random);

void packed_product_clear(struct packed_product *p);

void draw_normal(float *x, size_t n, double size, struct tn_random *random);

/* c, to be freed, by so many rows at a time. The backend must be the one of this name. */
float *packed_product_multiply(const struct packed_product *p, const char *backend,
                               const struct tn_host *host, size_t rows);

#endif
