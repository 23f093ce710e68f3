/* SPDX-License-Identifier: MIT */
/* matmul_few.c - the dense product of few rows with many weights, as in generating one position
 * of a few sequences: each weight is used m times only, so the product takes as long as reading
 * the weights. They are held (held.h), and read once. */
#include "kernel/held.h"

enum {
    PIECE = 1 << 16, /* bytes of weights that one task reads, about */
    PANELS = 4       /* that a row takes side by side, and a task at least */
};

/* Columns of c that are one task: about equal pieces, whole groups of panels. */
static size_t columns(const struct tn_matmul *plan)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const size_t column = d->k * (d->elements == TN_BF16 ? sizeof(uint16_t) : sizeof(float));
    const size_t group = PANELS * tn_panel_size(plan->host->kernels, true);
    const size_t in_piece = tn_max(PIECE / column, group);

    return tn_round_up(tn_blocks(d->n, tn_blocks(d->n, in_piece)), group);
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    const struct tn_matmul_desc *const d = &plan->desc;

    if (d->m > TN_FEW_ROWS || d->transpose_a || !tn_held(d))
        return tn_fail(err, TARN_EMACHINE,
                       "backend: 'few' needs at most %d rows of f32 and packed weights",
                       TN_FEW_ROWS);
    return TARN_OK;
}

struct job {
    const struct tn_matmul *plan;
    struct tn_few few;
    size_t columns;
};

static void run_piece(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    struct tn_few few = job->few;

    (void)thread;
    few.from = index * job->columns;
    few.to = tn_min(few.from + job->columns, d->n);
    kernels->few(&few);
    for (size_t i = 0; i < few.m && d->activation == TN_GELU; i++) {
        float *const c = few.c + i * d->ldc + few.from;

        kernels->gelu(c, c, few.to - few.from);
    }
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct job job = {plan,
                      {
                          .c = arrays->c,
                          .a = arrays->a,
                          .b = arrays->b,
                          .bias = d->bias ? arrays->bias : NULL,
                          .ldc = (ptrdiff_t)d->ldc,
                          .lda = (ptrdiff_t)d->lda,
                          .m = arrays->m,
                          .k = d->k,
                          .piece = tn_held_piece(plan),
                          .width = tn_held_width(plan),
                          .bf16 = d->elements == TN_BF16,
                          .add = d->add,
                          .relu = d->activation == TN_RELU,
                      },
                      columns(plan)};

    tn_parallel(plan->host->threads, tn_blocks(d->n, job.columns), run_piece, &job);
}

static void release(struct tn_matmul *plan)
{
    (void)plan;
}

extern const struct tn_matmul_backend tn_matmul_few;
const struct tn_matmul_backend tn_matmul_few = {
    .name = "few",
    .create = create,
    .run = run,
    .free = release,
    .held_size = tn_held_size,
    .hold = tn_held_hold,
};
