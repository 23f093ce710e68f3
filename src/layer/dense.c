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

static tarn_status plan_forward(struct tn_dense *dense, tarn_error *err)
{
    const struct tn_dense_desc *const d = &dense->desc;
    struct tn_matmul_desc desc = product(d, d->rows, d->out, d->in);

    desc.lda = d->ldx;
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

    desc.lda = d->ldy;
    desc.ldc = d->ldx;
    desc.add = d->add_dx;
    return tn_matmul_create(&dense->inputs, &desc, dense->host, err);
}

static tarn_status plan_weights(struct tn_dense *dense, tarn_error *err)
{
    const struct tn_dense_desc *const d = &dense->desc;
    struct tn_matmul_desc desc = product(d, d->out, d->in, d->rows);

    desc.lda = d->ldy;
    desc.ldb = d->ldx;
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

static struct tn_rows outputs_of(const struct tn_dense *d)
{
    return tn_rows_on(d->host, d->desc.rows, d->desc.out);
}

/* Sums of columns are done before the products begin. */
size_t tn_dense_scratch_size(const struct tn_dense *d)
{
    const struct tn_rows dy = outputs_of(d);
    size_t most = tn_matmul_scratch_size(d->forward);

    if (d->desc.trains) {
        most = tn_max(most, tn_matmul_scratch_size(d->inputs));
        most = tn_max(most, tn_matmul_scratch_size(d->weights));
        most = tn_max(most, d->desc.bias ? tn_column_sums_scratch(&dy) : 0);
    }
    return most;
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
    tn_matmul_run_rows(d->forward, y, x, W, b, d->desc.rows, scratch);
}

void tn_dense_backward(const struct tn_dense *d, float *dx, float *dW, float *db,
                       const float *dy, const float *x, const float *W, void *scratch)
{
    const struct tn_rows outputs = outputs_of(d);

    if (d->desc.bias)
        tn_column_sums(&outputs, db, dy, d->desc.ldy, scratch);
    tn_matmul_run(d->weights, dW, dy, x, NULL, scratch);
    if (dx)
        tn_matmul_run(d->inputs, dx, dy, W, NULL, scratch);
}
