/* SPDX-License-Identifier: MIT */
/* dense.c - the three products of a linear layer. Row-major, so that none is transposed:
 *
 *     forward   y  (rows x out) = x  (rows x in)       W (out x in, read as its transpose)
 *     inputs    dx (rows x in)  = dy (rows x out)      W (out x in)
 *     weights   dW (out x in)  += dy (read as its transpose) x (rows x in)
 */
#include "layer/dense.h"

/* ---- life --------------------------------------------------------------- */

static struct tn_matmul_desc product(const struct tn_dense_desc *d, size_t m, size_t n,
                                     size_t k)
{
    return (struct tn_matmul_desc){
        .m = m,
        .n = n,
        .k = k,
        .elements = d->elements,
    };
}

/* Everything is rounded at every call, here, unless the products do it. */
static bool rounds(const struct tn_dense_desc *d)
{
    return d->elements == TN_BF16 && !d->packed;
}

/* Rows of bf16 copies lie one after the other; f32 is read where it is. */
static size_t ld_of(const struct tn_dense_desc *d, size_t ld)
{
    return rounds(d) ? 0 : ld;
}

static tarn_status plan_forward(struct tn_dense *dense, tarn_error *err)
{
    const struct tn_dense_desc *const d = &dense->desc;
    struct tn_matmul_desc desc = product(d, d->rows, d->out, d->in);

    desc.lda = ld_of(d, d->ldx);
    desc.ldc = d->ldy;
    desc.transpose_b = true;
    desc.activation = d->activation;
    desc.bias = d->bias;
    desc.add = d->add;
    desc.packed = d->packed;
    return tn_matmul_create(&dense->forward, &desc, dense->host, err);
}

static tarn_status plan_inputs(struct tn_dense *dense, tarn_error *err)
{
    const struct tn_dense_desc *const d = &dense->desc;
    struct tn_matmul_desc desc = product(d, d->rows, d->in, d->out);

    desc.lda = ld_of(d, d->ldy);
    desc.ldc = d->ldx;
    desc.add = d->add_dx;
    return tn_matmul_create(&dense->inputs, &desc, dense->host, err);
}

static tarn_status plan_weights(struct tn_dense *dense, tarn_error *err)
{
    const struct tn_dense_desc *const d = &dense->desc;
    struct tn_matmul_desc desc = product(d, d->out, d->in, d->rows);

    desc.lda = ld_of(d, d->ldy);
    desc.ldb = ld_of(d, d->ldx);
    desc.transpose_a = true;
    desc.add = true;
    return tn_matmul_create(&dense->weights, &desc, dense->host, err);
}

static tarn_status check(struct tn_dense *dense, tarn_error *err)
{
    struct tn_dense_desc *const d = &dense->desc;

    if (d->rows == 0 || d->in == 0 || d->out == 0)
        return tn_fail(err, TARN_EINVAL,
                       "rows, in, out are %zu, %zu, %zu; each must be at least 1", d->rows,
                       d->in, d->out);
    d->ldx = d->ldx ? d->ldx : d->in;
    d->ldy = d->ldy ? d->ldy : d->out;
    if (d->ldx < d->in || d->ldy < d->out)
        return tn_fail(err, TARN_EINVAL,
                       "ldx, ldy are %zu, %zu; they must be at least the widths, %zu and %zu",
                       d->ldx, d->ldy, d->in, d->out);
    if (d->packed && d->trains)
        return tn_fail(err, TARN_EINVAL,
                       "packed is true; it must be false where weights change");
    return TARN_OK;
}

tarn_status tn_dense_init(struct tn_dense *d, const struct tn_dense_desc *desc,
                          const struct tn_host *host, tarn_error *err)
{
    *d = (struct tn_dense){.desc = *desc, .host = host};
    if (rounds(desc) && tn_matmul_rounds(host))
        d->desc.elements = TN_BF16_INPUTS;

    tarn_status status = check(d, err);

    if (status == TARN_OK)
        status = plan_forward(d, err);
    if (status == TARN_OK && desc->trains)
        status = plan_inputs(d, err);
    if (status == TARN_OK && desc->trains)
        status = plan_weights(d, err);
    if (status == TARN_OK && tn_dense_scratch_size(d) == SIZE_MAX)
        status = tn_fail(err, TARN_EINVAL,
                         "rows, in, out are %zu, %zu, %zu; such matrices do not fit in memory",
                         desc->rows, desc->in, desc->out);
    if (status != TARN_OK)
        tn_dense_clear(d);
    return status;
}

void tn_dense_clear(struct tn_dense *d)
{
    tn_matmul_free(d->forward);
    tn_matmul_free(d->inputs);
    tn_matmul_free(d->weights);
    *d = (struct tn_dense){0};
}

/* ---- memory ------------------------------------------------------------- */

static struct tn_rows rows_of(const struct tn_dense *d, size_t rows, size_t width)
{
    return tn_rows_on(d->host, rows, width);
}

/* What a call works in. Sums of columns are done before the products begin. */
struct work {
    uint16_t *x, *W, *dy; /* NULL unless they are rounded here */
    void *scratch;        /* of the products, of the sums */
};

static size_t shared_scratch(const struct tn_dense *d)
{
    const struct tn_rows dy = rows_of(d, d->desc.rows, d->desc.out);
    size_t most = tn_matmul_scratch_size(d->forward);

    if (d->desc.trains) {
        most = tn_max(most, tn_matmul_scratch_size(d->inputs));
        most = tn_max(most, tn_matmul_scratch_size(d->weights));
        most = tn_max(most, d->desc.bias ? tn_column_sums_scratch(&dy) : 0);
    }
    return most;
}

static struct work lay_out(const struct tn_dense *d, struct tn_arena *arena)
{
    const size_t size = sizeof(uint16_t);
    struct work work = {0};

    if (rounds(&d->desc)) {
        work.x = tn_arena_alloc(arena, d->desc.rows, d->desc.in * size);
        work.W = tn_arena_alloc(arena, d->desc.out, d->desc.in * size);
        if (d->desc.trains)
            work.dy = tn_arena_alloc(arena, d->desc.rows, d->desc.out * size);
    }
    work.scratch = tn_arena_alloc(arena, 1, shared_scratch(d));
    return work;
}

static struct work work_open(const struct tn_dense *d, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);

    return lay_out(d, &arena);
}

size_t tn_dense_scratch_size(const struct tn_dense *d)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(d, &arena);
    return tn_arena_bytes(&arena);
}

/* ---- rounding ----------------------------------------------------------- */

struct rounding {
    struct tn_rows r;
    uint16_t *to;
    const float *from;
    size_t ld;
};

static void round_rows(void *arg, size_t from, size_t n)
{
    const struct rounding *const job = arg;

    job->r.kernels->narrow(job->to + from * job->r.width, (ptrdiff_t)job->r.width,
                           job->from + from * job->ld, (ptrdiff_t)job->ld, n, job->r.width);
}

/* The matrix for a product: itself, or its bf16 copy in `to`. */
static const void *rounded(struct tn_rows r, uint16_t *to, const float *from, size_t ld)
{
    if (!to)
        return from;
    tn_rows_parallel(&r, round_rows, &(struct rounding){r, to, from, ld});
    return to;
}

/* ---- use ---------------------------------------------------------------- */

float *tn_dense_pack(const struct tn_dense *d, const float *W, struct tn_arena *arena)
{
    float *const packed = tn_arena_alloc(arena, 1, tn_matmul_packed_size(d->forward));

    if (packed)
        tn_matmul_pack(d->forward, packed, W);
    return packed;
}

struct tn_dense tn_dense_of_rows(const struct tn_dense *d, size_t rows)
{
    struct tn_dense fewer = *d;

    fewer.desc.rows = rows;
    return fewer;
}

void tn_dense_forward(const struct tn_dense *d, float *y, const float *x, const float *W,
                      const float *b, void *scratch)
{
    const size_t rows = d->desc.rows, in = d->desc.in, out = d->desc.out;
    const struct work work = work_open(d, scratch);

    tn_matmul_run_rows(d->forward, y, rounded(rows_of(d, rows, in), work.x, x, d->desc.ldx),
                       rounded(rows_of(d, out, in), work.W, W, in), b, rows, work.scratch);
}

/* The gradient of the outputs for products, and the sum of its columns: for bf16 read once. */
static const void *gradients_of(const struct tn_dense *d, float *db, const float *dy,
                                const struct work *work)
{
    const struct tn_rows rows = rows_of(d, d->desc.rows, d->desc.out);

    if (!d->desc.bias)
        return rounded(rows, work->dy, dy, d->desc.ldy);
    tn_column_sums(&rows, db, dy, d->desc.ldy, work->dy ? round_rows : NULL,
                   &(struct rounding){rows, work->dy, dy, d->desc.ldy}, work->scratch);
    return work->dy ? (const void *)work->dy : dy;
}

void tn_dense_backward(const struct tn_dense *d, float *dx, float *dW, float *db,
                       const float *dy, const float *x, const float *W, void *scratch)
{
    const size_t rows = d->desc.rows, in = d->desc.in, out = d->desc.out;
    const struct work work = work_open(d, scratch);
    const void *const gradients = gradients_of(d, db, dy, &work);

    tn_matmul_run(d->weights, dW, gradients,
                  rounded(rows_of(d, rows, in), work.x, x, d->desc.ldx), NULL, work.scratch);
    if (dx)
        tn_matmul_run(d->inputs, dx, gradients, rounded(rows_of(d, out, in), work.W, W, in),
                      NULL, work.scratch);
}
