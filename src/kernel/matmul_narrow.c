/* SPDX-License-Identifier: MIT */
/* matmul_narrow.c - the dense product with packed weights in int8 (int8.h), or of two bf16
 * matrices: rows of a are made narrow first, then c is cut into rectangles. A rectangle has as
 * many columns as 32 KB of weights, so that its panels stay in a cache while its rows pass
 * by. */
#include <string.h>

#include "kernel/int8.h"
#include "kernel/matmul.h"

enum {
    BYTES = 1 << 15,   /* of weights that a rectangle reads, about */
    PANELS_LEAST = 2,  /* that a row takes side by side */
    ROWS = 96,         /* of a rectangle, about */
    NARROW_WORK = 4096 /* floats that are made narrow before another thread would help */
};

/* What the backends differ in. */
struct tn_narrow_format {
    enum tn_element elements;
    size_t (*row_size)(size_t k); /* bytes of a row of inputs */
    size_t (*panel_size)(size_t columns, size_t k);
    void (*pack_panel)(void *job, size_t index, size_t thread);
    void (*narrow_rows)(const struct tn_kernels *kernels, void *rows, const float *x,
                        ptrdiff_t ldx, size_t m, size_t k);
};

static const struct tn_narrow_format *format_of(const struct tn_matmul *plan)
{
    return plan->backend->format;
}

struct job {
    const struct tn_matmul *plan;
    const struct tn_matmul_arrays *arrays;
    char *inputs; /* narrow rows */
    size_t rows, cols, across, block;
};

static size_t panel_columns(const struct tn_matmul *plan)
{
    return tn_panel_size(plan->host->kernels, true);
}

/* ---- int8 --------------------------------------------------------------- */

struct packing {
    const struct tn_matmul *plan;
    unsigned char *packed;
    const float *b;
};

/* A block of one column into a panel: its scale, and bytes of which those of four inputs lie
 * together. */
static void pack_block(unsigned char *panel, size_t columns, size_t column, const float *w,
                       size_t step, size_t n)
{
    int8_t q[TN_INT8_BLOCK];
    const float scale = tn_int8_quantise(q, w, step, n);

    memcpy(panel + column * sizeof scale, &scale, sizeof scale);
    for (size_t p = 0; p < n; p++)
        panel[(columns + p / 4 * columns + column) * 4 + p % 4] = (unsigned char)(q[p] + 128);
}

static void pack_int8(void *arg, size_t index, size_t thread)
{
    const struct packing *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t columns = panel_columns(job->plan), col = index * columns;
    const size_t size = tn_int8_panel_size(columns, d->k);
    const size_t block_size = tn_int8_panel_size(columns, TN_INT8_BLOCK);
    const size_t step = d->transpose_b ? 1 : d->ldb;
    unsigned char *panel = job->packed + index * size;

    (void)thread;
    memset(panel, 128, size);
    for (size_t p = 0; p < d->k; p += TN_INT8_BLOCK, panel += block_size) {
        memset(panel, 0, columns * sizeof(float));
        for (size_t j = 0; j < columns && col + j < d->n; j++)
            pack_block(panel, columns, j,
                       job->b +
                           (d->transpose_b ? (col + j) * d->ldb + p : p * d->ldb + col + j),
                       step, tn_min(TN_INT8_BLOCK, d->k - p));
    }
}

static void quantise(const struct tn_kernels *kernels, void *rows, const float *x,
                     ptrdiff_t ldx, size_t m, size_t k)
{
    kernels->quantise(rows, x, ldx, m, k);
}

/* ---- bf16 --------------------------------------------------------------- */

static size_t bf16_row_size(size_t k)
{
    return tn_round_up(k * sizeof(uint16_t), TN_ALIGN);
}

static size_t bf16_panel_size(size_t columns, size_t k)
{
    return columns * tn_blocks(k, 2) * sizeof(uint32_t);
}

static void pack_bf16(void *arg, size_t index, size_t thread)
{
    const struct packing *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t columns = panel_columns(job->plan), col = index * columns;
    const size_t size = bf16_panel_size(columns, d->k);
    uint16_t *const panel = (uint16_t *)(void *)(job->packed + index * size);

    (void)thread;
    memset(panel, 0, size);
    for (size_t p = 0; p < d->k; p++)
        for (size_t j = 0; j < columns && col + j < d->n; j++)
            panel[(p / 2 * columns + j) * 2 + p % 2] = tn_bf16_from_f32(
                job->b[d->transpose_b ? (col + j) * d->ldb + p : p * d->ldb + col + j]);
}

static void round_rows(const struct tn_kernels *kernels, void *rows, const float *x,
                       ptrdiff_t ldx, size_t m, size_t k)
{
    const size_t ld = bf16_row_size(k) / sizeof(uint16_t);
    uint16_t *const to = rows;

    kernels->narrow(to, (ptrdiff_t)ld, x, ldx, m, k);
    for (size_t i = 0; i < m && k % 2 != 0; i++)
        to[i * ld + k] = 0;
}

/* ---- packing ------------------------------------------------------------ */

static size_t packed_size(const struct tn_matmul *plan)
{
    const size_t columns = panel_columns(plan);

    return tn_blocks(plan->desc.n, columns) *
           format_of(plan)->panel_size(columns, plan->desc.k);
}

static void pack(const struct tn_matmul *plan, void *packed, const float *b)
{
    tn_parallel(plan->host->threads, tn_blocks(plan->desc.n, panel_columns(plan)),
                format_of(plan)->pack_panel, &(struct packing){plan, packed, b});
}

/* ---- running ------------------------------------------------------------ */

static void narrow_rows(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_narrow_format *const format = format_of(job->plan);
    const size_t row = index * job->block;

    (void)thread;
    format->narrow_rows(job->plan->host->kernels, job->inputs + row * format->row_size(d->k),
                        (const float *)job->arrays->a + row * d->lda, (ptrdiff_t)d->lda,
                        tn_min(job->block, job->arrays->m - row), d->k);
}

static void run_rectangle(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    const struct tn_narrow_format *const format = format_of(job->plan);
    const size_t columns = panel_columns(job->plan);
    const size_t row = index / job->across * job->rows, col = index % job->across * job->cols;
    const size_t rows = tn_min(job->rows, job->arrays->m - row);
    const size_t cols = tn_min(job->cols, d->n - col), row_size = format->row_size(d->k);
    float *const c = job->arrays->c + row * d->ldc + col;
    const struct tn_panels panels = {
        .c = c,
        .a = (const float *)(const void *)(job->inputs + row * row_size),
        .b = (const char *)job->arrays->b + col / columns * format->panel_size(columns, d->k),
        .bias = d->bias ? job->arrays->bias + col : NULL,
        .ldc = (ptrdiff_t)d->ldc,
        .lda = (ptrdiff_t)row_size,
        .m = rows,
        .n = cols,
        .k = d->k,
        .add = d->add,
        .relu = d->activation == TN_RELU,
    };

    (void)thread;
    (d->elements == TN_INT8 ? kernels->product_int8 : kernels->product_bf16)(&panels);
    for (size_t i = 0; i < rows && d->activation == TN_GELU; i++)
        kernels->gelu(c + i * d->ldc, c + i * d->ldc, cols);
}

static size_t rectangle_columns(const struct tn_matmul *plan)
{
    const size_t n = plan->desc.n, least = PANELS_LEAST * panel_columns(plan);
    const size_t element = tn_element_size(plan->desc.elements);
    const size_t most = tn_max(BYTES / (plan->desc.k * element), least);

    return tn_round_up(tn_blocks(n, tn_blocks(n, most)), least);
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct tn_arena arena = tn_arena_over(arrays->scratch);
    struct job job = {
        .plan = plan,
        .arrays = arrays,
        .inputs = tn_arena_alloc(&arena, d->m, format_of(plan)->row_size(d->k)),
        .rows = tn_blocks(arrays->m, tn_blocks(arrays->m, ROWS)),
        .cols = rectangle_columns(plan),
        .block = tn_max(1, NARROW_WORK / d->k),
    };

    job.across = tn_blocks(d->n, job.cols);
    tn_parallel(plan->host->threads, tn_blocks(arrays->m, job.block), narrow_rows, &job);
    tn_parallel(plan->host->threads, tn_blocks(arrays->m, job.rows) * job.across, run_rectangle,
                &job);
}

/* ---- the backends ------------------------------------------------------- */

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const struct tn_narrow_format *const format = format_of(plan);
    struct tn_arena arena = tn_arena_over(NULL);

    if (d->elements != format->elements || !d->packed || d->transpose_a)
        return tn_fail(err, TARN_EMACHINE,
                       "backend: '%s' needs packed weights in %s and rows of inputs",
                       plan->backend->name, tn_element_name(format->elements));
    tn_arena_alloc(&arena, d->m, format->row_size(d->k));
    plan->scratch = tn_arena_bytes(&arena);
    if (plan->scratch == SIZE_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "m, n, k are %zu, %zu, %zu; such matrices do not fit in memory", d->m,
                       d->n, d->k);
    return TARN_OK;
}

static const struct tn_narrow_format int8 = {TN_INT8, tn_int8_row_size, tn_int8_panel_size,
                                             pack_int8, quantise},
                                     bf16 = {TN_BF16_INPUTS, bf16_row_size, bf16_panel_size,
                                             pack_bf16, round_rows};

extern const struct tn_matmul_backend tn_matmul_int8, tn_matmul_bf16;
const struct tn_matmul_backend tn_matmul_int8 = {.name = "int8",
                                                 .create = create,
                                                 .packed_size = packed_size,
                                                 .pack = pack,
                                                 .run = run,
                                                 .format = &int8};
const struct tn_matmul_backend tn_matmul_bf16 = {.name = "bf16",
                                                 .create = create,
                                                 .packed_size = packed_size,
                                                 .pack = pack,
                                                 .run = run,
                                                 .format = &bf16};
