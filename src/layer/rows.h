/* SPDX-License-Identifier: MIT */
/* rows.h - the activations of a layer, row by row, and who works on them.
 *
 * A layer without plans is functions over a `struct tn_rows`, which the caller fills and
 * changes as it likes. Rows are cut into blocks by their number and width alone, so that sums
 * over rows are the same to the last bit for any number of threads. */
#ifndef TN_ROWS_H
#define TN_ROWS_H

#include "kernel/host.h"

/* rows x width floats, one row after the other unless a function takes an ld. */
struct tn_rows {
    const struct tn_kernels *kernels;
    size_t threads; /* at least 1 */
    size_t rows, width;
};

static inline struct tn_rows tn_rows_on(const struct tn_host *host, size_t rows, size_t width)
{
    return (struct tn_rows){host->kernels, host->threads, rows, width};
}

/* Calls work(arg, from, n) for every block of rows, n from number `from` on, from several
 * threads: for work that leaves no sums. */
typedef void tn_rows_work(void *arg, size_t from, size_t n);
void tn_rows_parallel(const struct tn_rows *r, tn_rows_work *work, void *arg);

/* Rows of a block where each block leaves a sum: at most TN_ROWS_SUMS blocks. */
enum { TN_ROWS_SUMS = 64 };
size_t tn_rows_sum_block(const struct tn_rows *r);

/* Floats between the sums of two blocks: whole cache lines, one writer each. */
size_t tn_rows_sum_width(size_t width);

/* ---- Sums of columns ---------------------------------------------------- */

/* sum[c] += the sum of x[., c], rows ldx apart: block by block, then the blocks in order.
 * `scratch` of any alignment. */
size_t tn_column_sums_scratch(const struct tn_rows *r); /* bytes */
void tn_column_sums(const struct tn_rows *r, float *sum, const float *x, size_t ldx,
                    void *scratch);

/* y += x, or y = x + z with a z; in place allowed. */
void tn_rows_add(const struct tn_rows *r, float *y, const float *x, const float *z);

#endif
