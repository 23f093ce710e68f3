/* SPDX-License-Identifier: MIT */
#include "kernel/held_bf16.h"

enum { COLS = 2 * TN_FEW_COLS }; /* of c, a task's */

bool tn_held_bf16(const struct tn_matmul_desc *desc)
{
    return desc->held && desc->elements == TN_BF16 && desc->wide_a && desc->transpose_b;
}

size_t tn_held_bf16_size(const struct tn_matmul *plan)
{
    return tn_held_bf16(&plan->desc) ? tn_few_held(plan->kernels, plan->desc.n, plan->desc.k)
                                     : 0;
}

const void *tn_held_bf16_at(const struct tn_matmul *plan, const void *held, size_t col)
{
    return (const char *)held + tn_few_held(plan->kernels, col, plan->desc.k);
}

struct job {
    const struct tn_matmul *plan;
    void *held;
    const float *from;
    float *to;
};

static void hold_columns(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t col = index * COLS;
    char *const held = (char *)job->held + tn_few_held(job->plan->kernels, col, d->k);

    (void)thread;
    job->plan->kernels->few_hold(held, job->from + col * d->ldb, (ptrdiff_t)d->ldb,
                                 tn_min(COLS, d->n - col), d->k);
}

void tn_held_bf16_hold(const struct tn_matmul *plan, void *held, const float *b)
{
    tn_parallel(plan->desc.threads, tn_blocks(plan->desc.n, COLS), hold_columns,
                &(struct job){plan, held, b, NULL});
}

static void widen_columns(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t col = index * COLS;

    (void)thread;
    job->plan->kernels->few_widen(job->to + col * d->k, (ptrdiff_t)d->k,
                                  tn_held_bf16_at(job->plan, job->held, col),
                                  tn_min(COLS, d->n - col), d->k);
}

void tn_held_bf16_widen(const struct tn_matmul *plan, float *b, const void *held)
{
    tn_parallel(plan->desc.threads, tn_blocks(plan->desc.n, COLS), widen_columns,
                &(struct job){plan, (void *)(uintptr_t)held, NULL, b});
}
