/* SPDX-License-Identifier: MIT */
/* matmul_widened.c - the dense product of bf16 where no instruction multiplies them, and of f32
 * with bf16 anywhere: what is bf16 is widened to f32, which is exact, and multiplied as such.
 * The products of two bf16 are exact in f32, so the result is that of a processor with such
 * instructions up to the order of its sums, at the speed of f32. */
#include "kernel/held.h"

enum { ROWS = 32 }; /* widened at a time by one thread */

/* A matrix as it is stored, and its copy in f32, rows behind each other. */
struct matrix {
    size_t rows, cols, ld;
    float *wide; /* NULL for a that is f32 already */
};

static struct matrix matrix_a(const struct tn_matmul_desc *d)
{
    return d->transpose_a ? (struct matrix){d->k, d->m, d->lda, NULL}
                          : (struct matrix){d->m, d->k, d->lda, NULL};
}

static struct matrix matrix_b(const struct tn_matmul_desc *d)
{
    return d->transpose_b ? (struct matrix){d->n, d->k, d->ldb, NULL}
                          : (struct matrix){d->k, d->n, d->ldb, NULL};
}

struct work {
    struct matrix a, b;
    void *scratch; /* of the product in f32 */
};

static struct work lay_out(const struct tn_matmul *plan, struct tn_arena *arena)
{
    struct work work = {matrix_a(&plan->desc), matrix_b(&plan->desc), NULL};

    if (!plan->desc.wide_a)
        work.a.wide = tn_arena_take(arena, work.a.rows, work.a.cols * sizeof(float));
    work.b.wide = tn_held(&plan->desc)
                      ? tn_arena_take(arena, plan->desc.k, tn_held_width(plan) * sizeof(float))
                      : tn_arena_take(arena, work.b.rows, work.b.cols * sizeof(float));
    work.scratch = tn_arena_take(arena, 1, tn_matmul_scratch_size(plan->own));
    return work;
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    struct tn_matmul_desc desc = plan->desc;
    struct tn_matmul *inner;
    struct tn_arena arena = tn_arena_over(NULL);

    if (desc.elements != TN_BF16)
        return tn_fail(err, TARN_EMACHINE, "backend: 'widened' needs bf16 matrices");
    desc.backend = NULL;
    desc.held = tn_held(&desc); /* its panels, widened; a b that is not held as such is plain */
    desc.elements = TN_F32;
    desc.lda = desc.wide_a ? desc.lda : 0;
    desc.ldb = 0;

    const tarn_status status = tn_matmul_create(&inner, &desc, plan->host, err);

    if (status != TARN_OK)
        return status;
    plan->own = inner;
    lay_out(plan, &arena);
    plan->scratch = tn_arena_bytes(&arena);
    if (plan->scratch == SIZE_MAX)
        return tn_fail(err, TARN_EINVAL, "a and b: their f32 copies do not fit in memory");
    return TARN_OK;
}

struct job {
    const struct tn_kernels *kernels;
    struct matrix matrix;
    const uint16_t *from;
};

static void widen_rows(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct matrix m = job->matrix;
    const size_t row = index * ROWS;

    (void)thread;
    job->kernels->widen(m.wide + row * m.cols, (ptrdiff_t)m.cols, job->from + row * m.ld,
                        (ptrdiff_t)m.ld, tn_min(ROWS, m.rows - row), m.cols);
}

static void widen(const struct tn_matmul *plan, struct matrix matrix, const void *from)
{
    tn_parallel(plan->host->threads, tn_blocks(matrix.rows, ROWS), widen_rows,
                &(struct job){plan->host->kernels, matrix, from});
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    struct tn_arena arena = tn_arena_over(arrays->scratch);
    const struct work work = lay_out(plan, &arena);

    if (!plan->desc.wide_a)
        widen(plan, work.a, arrays->a);
    if (tn_held(&plan->desc))
        tn_held_widen(plan, work.b.wide, arrays->b);
    else
        widen(plan, work.b, arrays->b);
    tn_matmul_run_rows(plan->own, arrays->c, plan->desc.wide_a ? arrays->a : work.a.wide,
                       work.b.wide, arrays->bias, arrays->m, work.scratch);
}

static void release(struct tn_matmul *plan)
{
    tn_matmul_free(plan->own);
    plan->own = NULL;
}

extern const struct tn_matmul_backend tn_matmul_widened;
const struct tn_matmul_backend tn_matmul_widened = {
    .name = "widened",
    .create = create,
    .run = run,
    .free = release,
    .held_size = tn_held_size,
    .hold = tn_held_hold,
};
