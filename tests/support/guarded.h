/* SPDX-License-Identifier: MIT */
/* guarded.h - memory that shows when something else was written, or read, than should be. */
#ifndef GUARDED_H
#define GUARDED_H

#include "support/testing.h"

/* ---- Bytes -------------------------------------------------------------- */

/* `size` bytes that start `past` bytes after a multiple of 64, between guard bytes. */
struct block {
    unsigned char *memory, *bytes;
    size_t past, size;
};

struct block block_open(size_t size, size_t past, int fill);
void block_check(const struct block *block, const char *name);
void block_close(struct block *block);

/* ---- Arrays ------------------------------------------------------------- */

/* An array (B, n, H, width) somewhere in a pool of floats. */
struct tensor {
    float *data;
    ptrdiff_t batch, position, head;
    size_t B, n, H, width;
};

enum layout {
    POSITIONS_FIRST, /* (B, N, H, D), aligned to 64 bytes if the widths allow it */
    HEADS_FIRST,     /* (B, H, N, D) */
    SLICES,      /* arrays of one length are slices of one matrix (B, N, [H D | H D | ...]) */
    ODD_STRIDES, /* gaps between heads, positions and sequences */
    BACKWARDS,   /* negative strides */
    LAYOUTS
};

/* Several arrays in one allocation. What belongs to none of them is a NaN that must stay. */
struct pool {
    float *floats;
    bool *owned;
    size_t count;
};

enum { ARRAYS_MAX = 16 };

/* Sets data and strides of all tensors, whose sizes are given; without rows they take no
 * place. Their elements are NaN, too. */
struct pool pool_open(struct tensor *tensors, size_t count, enum layout layout);
void pool_check(const struct pool *pool, const char *name);
void pool_close(struct pool *pool);

float *tensor_row(const struct tensor *tensor, size_t b, size_t n, size_t h);
size_t tensor_count(const struct tensor *tensor);

/* Row r of (B, n, H): the order in which copies and drawn values go. */
float *tensor_row_at(const struct tensor *tensor, size_t r);
size_t tensor_rows(const struct tensor *tensor);

/* The elements in the order (B, n, H, width); free() it. */
float *tensor_copy(const struct tensor *tensor);

#endif
