/* SPDX-License-Identifier: MIT */
/* matmul_tile.h - what backends have in common: a rectangle of c, for one that is given back
 * what it cannot do. */
#ifndef TN_MATMUL_TILE_H
#define TN_MATMUL_TILE_H

#include "kernel/matmul.h"

struct tn_rectangle {
    size_t row, col, rows, cols;
};

/* On the calling thread, without allocating: cannot fail. */
void tn_matmul_rectangle(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays,
                         struct tn_rectangle part);

#endif
