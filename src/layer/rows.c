/* SPDX-License-Identifier: MIT */
#include "layer/rows.h"

#include <string.h>

enum {
    BLOCK_FLOATS = 1 << 13, /* a block: 32 KiB, worth handing out */
    LINE_FLOATS = TN_ALIGN / (int)sizeof(float)
};

static size_t block_rows(const struct tn_rows *r)
{
    return tn_max(1, BLOCK_FLOATS / tn_max(1, r->width));
}

struct blocks {
    const struct tn_rows *r;
    tn_rows_work *work;
    void *arg;
};

static void run_block(void *arg, size_t index, size_t thread)
{
    const struct blocks *const b = arg;
    const size_t block = block_rows(b->r), from = index * block;

    (void)thread;
    b->work(b->arg, from, tn_min(block, b->r->rows - from));
}

void tn_rows_parallel(const struct tn_rows *r, tn_rows_work *work, void *arg)
{
    tn_parallel(r->threads, tn_blocks(r->rows, block_rows(r)), run_block,
                &(struct blocks){r, work, arg});
}

size_t tn_rows_sum_block(const struct tn_rows *r)
{
    return tn_max(block_rows(r), tn_blocks(r->rows, TN_ROWS_SUMS));
}

size_t tn_rows_sum_width(size_t width)
{
    return tn_round_up(width, LINE_FLOATS);
}

/* ---- sums of columns ---------------------------------------------------- */

struct sums {
    const struct tn_rows *r;
    float *of_blocks;
    const float *x;
    size_t ldx;
};

static float *take_sums(const struct tn_rows *r, struct tn_arena *arena)
{
    return tn_arena_alloc(arena, tn_blocks(r->rows, tn_rows_sum_block(r)),
                          tn_rows_sum_width(r->width) * sizeof(float));
}

size_t tn_column_sums_scratch(const struct tn_rows *r)
{
    struct tn_arena arena = tn_arena_over(NULL);

    take_sums(r, &arena);
    return tn_arena_bytes(&arena);
}

static void sum_block(void *arg, size_t index, size_t thread)
{
    const struct sums *const s = arg;
    const struct tn_rows *const r = s->r;
    const size_t block = tn_rows_sum_block(r), from = index * block;
    const size_t n = tn_min(block, r->rows - from);
    float *const sum = s->of_blocks + index * tn_rows_sum_width(r->width);

    (void)thread;
    memset(sum, 0, r->width * sizeof *sum);
    r->kernels->sum_rows(sum, s->x + from * s->ldx, (ptrdiff_t)s->ldx, n, r->width);
}

void tn_column_sums(const struct tn_rows *r, float *sum, const float *x, size_t ldx,
                    void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct sums s = {r, take_sums(r, &arena), x, ldx};
    const size_t blocks = tn_blocks(r->rows, tn_rows_sum_block(r));

    tn_parallel(r->threads, blocks, sum_block, &s);
    r->kernels->sum_rows(sum, s.of_blocks, (ptrdiff_t)tn_rows_sum_width(r->width), blocks,
                         r->width);
}

/* ---- sums of rows ------------------------------------------------------- */

struct addition {
    const struct tn_rows *r;
    float *y;
    const float *x, *z;
};

static void add_rows(void *arg, size_t from, size_t n)
{
    const struct addition *const a = arg;
    const size_t at = from * a->r->width;

    a->r->kernels->add(a->y + at, a->x + at, a->z + at, n * a->r->width);
}

void tn_rows_add(const struct tn_rows *r, float *y, const float *x, const float *z)
{
    tn_rows_parallel(r, add_rows, &(struct addition){r, y, x, z ? z : y});
}
