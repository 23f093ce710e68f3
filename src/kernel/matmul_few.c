/* SPDX-License-Identifier: MIT */
/* matmul_few.c - the dense product of few rows with many weights, as in generating one position
 * of a few sequences: each weight is used m times only, so the product takes as long as reading
 * the weights.
 *
 * They are read once, f32 in place, n x k as PyTorch stores them, bf16 as it is held, both
 * against rows of f32. Every element of c is a sum of its own along k, which kernels->few_f32 and
 * few_bf16 form in the same order whatever m and the cut are. */
#include "kernel/held_bf16.h"

enum { PIECE = 1 << 15 }; /* bytes of weights that one task reads */

static size_t weight_bytes(const struct tn_matmul_desc *d)
{
    return d->k * (d->elements == TN_BF16 ? sizeof(uint16_t) : sizeof(float));
}

/* Columns of c that are one task: equal pieces, multiples of TN_FEW_COLS. */
static size_t columns(const struct tn_matmul_desc *d)
{
    const size_t in_piece = tn_max(PIECE / weight_bytes(d), TN_FEW_COLS);

    return tn_round_up(tn_blocks(d->n, tn_blocks(d->n, in_piece)), TN_FEW_COLS);
}

static float *take_packed(const struct tn_matmul *plan, struct tn_arena *arena)
{
    const size_t width = tn_round_up(plan->desc.k, 2 * plan->kernels->lanes);

    return tn_arena_take(arena, plan->desc.m, width * sizeof(float));
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct tn_arena arena = tn_arena_over(NULL);

    if (d->m > TN_FEW_ROWS || d->transpose_a || !d->transpose_b ||
        (d->elements != TN_F32 && !tn_held_bf16(d)))
        return tn_fail(err, TARN_EMACHINE,
                       "backend: 'few' is for up to %d rows of f32 and b transposed, f32 or "
                       "held in bf16",
                       TN_FEW_ROWS);
    take_packed(plan, &arena);
    plan->scratch = tn_arena_bytes(&arena);
    if (plan->scratch == SIZE_MAX)
        return tn_fail(err, TARN_EINVAL, "a: its packed copy does not fit in memory");
    return TARN_OK;
}

/* All that a thread asks for, close together. */
struct job {
    const struct tn_matmul *plan;
    const float *packed;
    float *c;
    const void *b;
    const float *bias;
    size_t columns;
};

static void run_piece(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_kernels *const kernels = job->plan->kernels;
    const size_t col = index * job->columns;
    const bool bf16 = d->elements == TN_BF16;
    const struct tn_few few = {
        .c = job->c + col,
        .a = job->packed,
        .b = bf16 ? tn_held_bf16_at(job->plan, job->b, col)
                  : (const float *)job->b + col * d->ldb,
        .bias = d->bias ? job->bias + col : NULL,
        .ldc = (ptrdiff_t)d->ldc,
        .ldb = (ptrdiff_t)d->ldb,
        .m = d->m,
        .n = tn_min(job->columns, d->n - col),
        .k = d->k,
        .add = d->add,
        .relu = d->activation == TN_RELU,
    };

    (void)thread;
    (bf16 ? kernels->few_bf16 : kernels->few_f32)(&few);
    if (d->activation == TN_GELU)
        for (size_t i = 0; i < d->m; i++)
            kernels->gelu(few.c + i * d->ldc, few.c + i * d->ldc, few.n);
}

/* A single row is its own packed form if no step of it is half empty. */
static const float *pack(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct tn_arena arena = tn_arena_over(arrays->scratch);
    float *const packed = take_packed(plan, &arena);

    if (d->m == 1 && d->k % (2 * plan->kernels->lanes) == 0)
        return arrays->a;
    plan->kernels->few_pack(packed, arrays->a, (ptrdiff_t)d->lda, d->m, d->k,
                            d->elements == TN_BF16);
    return packed;
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct job job = {plan, pack(plan, arrays), arrays->c, arrays->b, arrays->bias, columns(d)};

    tn_parallel(d->threads, tn_blocks(d->n, job.columns), run_piece, &job);
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
    .held_size = tn_held_bf16_size,
    .hold = tn_held_bf16_hold,
};
