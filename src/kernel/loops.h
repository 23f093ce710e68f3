/* SPDX-License-Identifier: MIT */
/* loops.h - every vector loop of a table at any width, on arrays of its own: for a benchmark
 * that looks for widths at which a loop is slow, and for tests. */
#ifndef TN_LOOPS_H
#define TN_LOOPS_H

#include "kernel/kernels.h"

/* Rows of `width` floats, `ld` apart: few enough to stay in the first-level cache. */
struct tn_loop_arrays {
    const struct tn_kernels *kernels;
    size_t width, rows, ld;
    float *x, *z;         /* read only */
    float *y, *u, *v, *w; /* read and written; v: not negative */
    size_t floats;        /* of each */
    float *panels, *out;  /* of products: read, written */
    uint16_t *halves;
    int32_t *symbols, *skips;
    int32_t *exponents, *exponents_to, *exponents_from;
};

struct tn_loop {
    const char *name;
    bool any_width; /* touches no float beyond the width: every table does the same */
    void (*run)(const struct tn_loop_arrays *a); /* all rows once */
};

/* NULL past the last. */
const struct tn_loop *tn_loop_row(size_t index);

/* Takes the arrays from the arena and, unless it measures, fills them: with the same numbers
 * for every table. */
struct tn_loop_arrays tn_loop_arrays_lay_out(const struct tn_kernels *kernels, size_t width,
                                             struct tn_arena *arena);

#endif
