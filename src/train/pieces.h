/* SPDX-License-Identifier: MIT */
/* pieces.h - the parameters of a model as one array of n floats, tensors as ranges of it, and
 * the pieces of both that threads take.
 *
 * Gradients and moments have the same layout. What lies between ranges belongs to nobody. */
#ifndef TN_PIECES_H
#define TN_PIECES_H

#include "base/base.h"

/* The ranges of a model ascend and do not overlap. */
struct tn_range {
    size_t from, count;
};

/* The array is cut into blocks of this many floats, and blocks where tensors meet. */
enum { TN_PIECES_BLOCK = 16384 };

/* What block `block` has of tensor `tensor`. */
struct tn_piece {
    size_t tensor, block;
    size_t from, count;
};

typedef void tn_piece_task(void *arg, struct tn_piece piece);

/* Calls task(arg, piece) for every piece that is not empty, from up to `threads` threads. The
 * pieces depend on the ranges alone. */
void tn_pieces_parallel(const struct tn_range *tensors, size_t count, tn_piece_task *task,
                        void *arg, size_t threads);

/* A number below tn_pieces_count() for each piece, ascending in the array and different for
 * different pieces: from one to the next, block or tensor or both advance. */
static inline size_t tn_piece_index(size_t tensor, size_t block)
{
    return tensor + block;
}

size_t tn_pieces_count(const struct tn_range *tensors, size_t count);

#endif
