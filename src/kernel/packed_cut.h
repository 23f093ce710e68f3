/* SPDX-License-Identifier: MIT */
/* packed_cut.h - how a product with packed operands is cut into tasks, by its shape alone. */
#ifndef TN_PACKED_CUT_H
#define TN_PACKED_CUT_H

#include "kernel/packed_weights.h"

enum { TN_CUT_ROWS = 128 }; /* of a rectangle, about, where b is packed for all of them */

/* Of a: not at all, before the product, in it. */
enum tn_packing { TN_IN_PLACE, TN_TOGETHER, TN_EACH };

struct tn_packed_cut {
    size_t rows, cols;           /* of a rectangle: whole panels */
    size_t down, across, slices; /* how many */
    size_t piece;                /* of the sum */
    size_t depth;                /* of a slice: whole pieces */
    size_t width;                /* of b in whole panels */
    enum tn_packing packing;
};

/* For m rows: those of the plan, or fewer where weights are packed. */
struct tn_packed_cut tn_packed_cut_for(const struct tn_matmul *plan, size_t m);

#endif
