/* SPDX-License-Identifier: MIT */
/* recurrence.h - the recurrence of tn_recurrence in its two forms.
 *
 * Position by position (kernels->recur), a few columns of the state at a time are read and
 * written once for every few positions: the fewest flops, and the fastest as long as these
 * columns stay in a cache. Chunk by chunk, with S the state before a chunk and M the lower
 * triangle with its diagonal,
 *
 *     A = (Q K^T) o M      O = Q S + A V      S += K^T V
 *
 * the state is touched once per chunk, at the price of the products with A. */
#ifndef TN_RECURRENCE_H
#define TN_RECURRENCE_H

#include "kernel/kernels.h"

/* Positions per chunk for a state of so many rows; 0: position by position. */
size_t tn_recurrence_chunk(size_t rows);

/* Floats of scratch for a chunked run. */
size_t tn_recurrence_scratch(const struct tn_kernels *kernels, size_t chunk, size_t rows);

/* Runs r in chunks of `chunk` positions (0: one by one). */
void tn_recurrence_run(const struct tn_kernels *kernels, const struct tn_recurrence *r,
                       size_t chunk, float *scratch);

#endif
