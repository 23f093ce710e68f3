/* SPDX-License-Identifier: MIT */
/* norm.c - layer normalisation, spread over threads by blocks of rows.
 *
 * With u = (x - mean) scale and g = gain dy, a row's gradients are
 *
 *     dx = scale (g - mean(g) - u mean(g u))      dgain += dy u      dbias += dy
 *
 * The last two are summed over a block of rows, then over blocks in order. */
#include "layer/norm.h"

#include <string.h>

struct forward {
    const struct tn_rows *r;
    float *y;
    struct tn_norm_stats *stats;
    const float *x, *gain, *bias;
    float eps;
};

static void forward_rows(void *arg, size_t from, size_t n)
{
    const struct forward *const f = arg;
    const size_t width = f->r->width;

    f->r->kernels->norm(f->y + from * width, f->stats ? f->stats + from : NULL,
                        f->x + from * width, f->gain, f->bias, f->eps, n, width);
}

void tn_norm_forward(const struct tn_rows *r, float *y, struct tn_norm_stats *stats,
                     const float *x, const float *gain, const float *bias, float eps)
{
    tn_rows_parallel(r, forward_rows, &(struct forward){r, y, stats, x, gain, bias, eps});
}

/* ---- backward ----------------------------------------------------------- */

struct backward {
    const struct tn_rows *r;
    float *dx;
    bool add_dx;
    float *sums; /* of a block: dgain, then dbias */
    const float *dy, *x;
    const struct tn_norm_stats *stats;
    const float *gain;
};

static float *take_sums(const struct tn_rows *r, struct tn_arena *arena)
{
    return tn_arena_alloc(arena, 2 * tn_blocks(r->rows, tn_rows_sum_block(r)),
                          tn_rows_sum_width(r->width) * sizeof(float));
}

size_t tn_norm_scratch_size(const struct tn_rows *r)
{
    struct tn_arena arena = tn_arena_over(NULL);

    take_sums(r, &arena);
    return tn_arena_bytes(&arena);
}

static void backward_block(void *arg, size_t index, size_t thread)
{
    const struct backward *const b = arg;
    const size_t width = b->r->width, apart = tn_rows_sum_width(width);
    const size_t block = tn_rows_sum_block(b->r), from = index * block, at = from * width;
    float *const sums = b->sums + index * 2 * apart;

    (void)thread;
    memset(sums, 0, 2 * apart * sizeof *sums);
    b->r->kernels->norm_backward(b->dx + at, b->add_dx, sums, sums + apart, b->dy + at,
                                 b->x + at, b->stats + from, b->gain,
                                 tn_min(block, b->r->rows - from), width);
}

void tn_norm_backward(const struct tn_rows *r, float *dx, bool add_dx, float *dgain,
                      float *dbias, const float *dy, const float *x,
                      const struct tn_norm_stats *stats, const float *gain, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct backward b = {r, dx, add_dx, take_sums(r, &arena), dy, x, stats, gain};
    const size_t blocks = tn_blocks(r->rows, tn_rows_sum_block(r));
    const size_t apart = tn_rows_sum_width(r->width);

    tn_parallel(r->threads, blocks, backward_block, &b);
    r->kernels->sum_rows(dgain, b.sums, 2 * (ptrdiff_t)apart, blocks, r->width);
    r->kernels->sum_rows(dbias, b.sums + apart, 2 * (ptrdiff_t)apart, blocks, r->width);
}
