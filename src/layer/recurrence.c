/* SPDX-License-Identifier: MIT */
#include "layer/recurrence.h"

/* recur() works on a few columns of the state at a time, so what must stay in a cache is not
 * the state but rows x one or two cache lines. Measured, it is faster than chunks up to
 * thousands of rows (docs/decisions.md). */
static const size_t rows_in_cache = 4096;

enum {
    CHUNK = 24,     /* positions, for states with more rows */
    BLOCK_ROWS = 8, /* rows of A whose upper triangle is skipped together */
};

size_t tn_recurrence_chunk(size_t rows)
{
    return rows <= rows_in_cache ? 0 : CHUNK;
}

size_t tn_recurrence_scratch(const struct tn_kernels *kernels, size_t chunk, size_t rows)
{
    const size_t columns = tn_padded(kernels, chunk);

    return chunk ? (rows + chunk) * columns : 0;
}

/* Adds rows i .. i+m of ((Q K^T) o M) V, which see keys 0 .. i+m only, to O. */
static void add_within(const struct tn_kernels *kernels, const struct tn_recurrence *r,
                       const float *kt, float *A, size_t columns, size_t i, size_t m)
{
    const ptrdiff_t first = (ptrdiff_t)i, ldA = (ptrdiff_t)columns;
    const size_t keys = i + m;

    kernels->product(A, ldA, r->q + first * r->ldq, r->ldq, 1, kt, ldA, m,
                     tn_padded(kernels, keys), r->rows, false);
    for (size_t t = 0; t < m; t++)
        for (size_t j = i + t + 1; j < keys; j++)
            A[t * columns + j] = 0.0f;
    kernels->product(r->o + first * r->ldo, r->ldo, A, ldA, 1, r->v, r->ldv, m, r->width, keys,
                     true);
}

static void chunk_forward(const struct tn_kernels *kernels, const struct tn_recurrence *r,
                          size_t columns, float *scratch)
{
    float *const kt = scratch, *const A = scratch + r->rows * columns;
    const size_t n = r->n;

    for (size_t c = 0; c < r->rows; c++)
        for (size_t j = n; j < tn_padded(kernels, n); j++)
            kt[c * columns + j] = 0.0f;
    kernels->transpose(kt, (ptrdiff_t)columns, r->k, r->ldk, n, r->rows);
    kernels->product(r->o, r->ldo, r->q, r->ldq, 1, r->S, r->ldS, n, r->width, r->rows, false);
    for (size_t i = 0; i < n; i += BLOCK_ROWS)
        add_within(kernels, r, kt, A, columns, i, tn_min(BLOCK_ROWS, n - i));
    kernels->product(r->S, r->ldS, r->k, 1, r->ldk, r->v, r->ldv, r->rows, r->width, n, true);
}

void tn_recurrence_run(const struct tn_kernels *kernels, const struct tn_recurrence *r,
                       size_t chunk, float *scratch)
{
    struct tn_recurrence part = *r;
    const size_t columns = tn_padded(kernels, chunk);

    if (chunk == 0) {
        kernels->recur(r);
        return;
    }
    for (size_t done = 0; done < r->n; done += part.n) {
        part.n = tn_min(chunk, r->n - done);
        chunk_forward(kernels, &part, columns, scratch);
        part.o += (ptrdiff_t)part.n * r->ldo;
        part.q += (ptrdiff_t)part.n * r->ldq;
        part.k += (ptrdiff_t)part.n * r->ldk;
        part.v += (ptrdiff_t)part.n * r->ldv;
    }
}
