/* SPDX-License-Identifier: MIT */
/* matmul_portable.c - the dense product by tarn's own loops: the oracle of the tests, and all
 * there is where oneDNN is absent.
 *
 * c is made in tiles that live on the stack. For each tile the sum over k runs in pieces: a
 * piece of b is packed to rows of whole vectors, which kernels->product() asks for, while a is
 * read in place, in either orientation. */
#include <math.h>
#include <string.h>

#include "kernel/matmul.h"
#include "kernel/matmul_tile.h"

enum { TILE = 64 };

/* `rows` x `cols` floats of a stored matrix. */
struct block {
    const float *at;
    size_t ld;
};

struct tiles {
    _Alignas(TN_ALIGN) float a[TILE * TILE]; /* a and b converted from bf16 */
    _Alignas(TN_ALIGN) float b[TILE * TILE];
    _Alignas(TN_ALIGN) float packed[TILE * TILE]; /* b, zeros beyond its columns */
    _Alignas(TN_ALIGN) float sum[TILE * TILE];
};

/* A piece of a matrix in place or, of a bf16 matrix, converted into `tile`. */
static struct block fetch(const void *matrix, size_t ld, enum tn_element elements, size_t row,
                          size_t col, size_t rows, size_t cols, float *tile)
{
    const size_t first = row * ld + col;

    if (elements == TN_F32)
        return (struct block){(const float *)matrix + first, ld};
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            tile[i * TILE + j] = tn_bf16_to_f32(((const uint16_t *)matrix)[first + i * ld + j]);
    return (struct block){tile, TILE};
}

static void pack_b(const struct tn_matmul *plan, const void *b, size_t p, size_t depth,
                   size_t col, size_t cols, struct tiles *tiles)
{
    const struct tn_matmul_desc *const d = &plan->desc;

    if (d->transpose_b) {
        const struct block in = fetch(b, d->ldb, d->elements, col, p, cols, depth, tiles->b);

        plan->host->kernels->transpose(tiles->packed, TILE, in.at, (ptrdiff_t)in.ld, cols,
                                       depth);
        return;
    }
    const struct block in = fetch(b, d->ldb, d->elements, p, col, depth, cols, tiles->b);

    for (size_t i = 0; i < depth; i++)
        memcpy(tiles->packed + i * TILE, in.at + i * in.ld, cols * sizeof(float));
}

/* tiles->sum (+)= a b over k = p .. p + depth - 1. */
static void accumulate(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays,
                       struct tn_rectangle part, size_t p, size_t depth, struct tiles *tiles)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const enum tn_element elements = tn_matmul_elements_a(d);
    const struct block a =
        d->transpose_a
            ? fetch(arrays->a, d->lda, elements, p, part.row, depth, part.rows, tiles->a)
            : fetch(arrays->a, d->lda, elements, part.row, p, part.rows, depth, tiles->a);
    const ptrdiff_t ld = (ptrdiff_t)a.ld;

    pack_b(plan, arrays->b, p, depth, part.col, part.cols, tiles);
    plan->host->kernels->product(tiles->sum, TILE, a.at, d->transpose_a ? 1 : ld,
                                 d->transpose_a ? ld : 1, tiles->packed, TILE, part.rows,
                                 tn_padded(plan->host->kernels, part.cols), depth, p > 0);
}

static float activate(enum tn_activation activation, float x)
{
    switch (activation) {
    case TN_RELU:
        return x < 0.0f ? 0.0f : x; /* NaN stays NaN */
    case TN_GELU:
        return 0.5f * x * (1.0f + erff(x * 0.70710678f));
    case TN_IDENTITY:
        break;
    }
    return x;
}

/* c = activation(sum + bias + c) */
static void finish(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays,
                   struct tn_rectangle part, const float *sum)
{
    const struct tn_matmul_desc *const d = &plan->desc;

    for (size_t i = 0; i < part.rows; i++) {
        float *const c = arrays->c + (part.row + i) * d->ldc + part.col;

        for (size_t j = 0; j < part.cols; j++) {
            float x = sum[i * TILE + j];

            if (d->bias)
                x += arrays->bias[part.col + j];
            if (d->add)
                x += c[j];
            c[j] = activate(d->activation, x);
        }
    }
}

static void make_tile(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays,
                      struct tn_rectangle part)
{
    struct tiles tiles;

    memset(tiles.packed, 0, sizeof tiles.packed);
    for (size_t p = 0; p < plan->desc.k; p += TILE)
        accumulate(plan, arrays, part, p, tn_min(TILE, plan->desc.k - p), &tiles);
    finish(plan, arrays, part, tiles.sum);
}

void tn_matmul_rectangle(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays,
                         struct tn_rectangle part)
{
    for (size_t i = 0; i < part.rows; i += TILE)
        for (size_t j = 0; j < part.cols; j += TILE)
            make_tile(plan, arrays,
                      (struct tn_rectangle){part.row + i, part.col + j,
                                            tn_min(TILE, part.rows - i),
                                            tn_min(TILE, part.cols - j)});
}

/* ---- the backend -------------------------------------------------------- */

struct job {
    const struct tn_matmul *plan;
    const struct tn_matmul_arrays *arrays;
};

static void run_tile(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t across = tn_blocks(d->n, TILE);
    const size_t row = index / across * TILE, col = index % across * TILE;

    (void)thread;
    make_tile(
        job->plan, job->arrays,
        (struct tn_rectangle){row, col, tn_min(TILE, d->m - row), tn_min(TILE, d->n - col)});
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    (void)plan;
    (void)err;
    return TARN_OK;
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const size_t tiles = tn_blocks(plan->desc.m, TILE) * tn_blocks(plan->desc.n, TILE);

    tn_parallel(plan->host->threads, tiles, run_tile, &(struct job){plan, arrays});
}

static void release(struct tn_matmul *plan)
{
    (void)plan;
}

extern const struct tn_matmul_backend tn_matmul_portable;
const struct tn_matmul_backend tn_matmul_portable = {
    .name = "portable",
    .create = create,
    .run = run,
    .free = release,
};
