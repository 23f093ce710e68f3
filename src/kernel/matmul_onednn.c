/* SPDX-License-Identifier: MIT */
/* matmul_onednn.c - the dense product by oneDNN, version 2 or 3.
 *
 * oneDNN's own threads may split the sum over k, so that its results depend on their number.
 * Here c is cut into rectangles by the shape alone and oneDNN makes each of them on one thread.
 * That costs a few per cent against its own splitting: the operands are packed once per
 * rectangle. */
#include <string.h>

#include "kernel/matmul.h"
#include "kernel/onednn.h"

enum {
    TILES_WANTED = 64,     /* so many threads find work */
    SIDE_MIN = 128,        /* narrower ones pack more than they multiply */
    WORK_MIN = 1 << 18,    /* multiply-adds: below, starting a thread takes longer */
    MAKING_BYTES = 1 << 20 /* what oneDNN allocates for a product, at most */
};

enum { A, B, C, BIAS, DESCRIBED };

/* ---- what differs between version 2 and 3 ------------------------------- */

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t describe(dnnl_memory_desc_t *md, const dnnl_dims_t sizes,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_create_with_strides(md, 2, sizes, type, strides);
}

static void forget(dnnl_memory_desc_t md[DESCRIBED])
{
    for (size_t i = 0; i < DESCRIBED; i++)
        dnnl_memory_desc_destroy(md[i]);
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind)
{
    return dnnl_post_ops_append_eltwise(ops, kind, 0.0f, 0.0f);
}

static dnnl_status_t plan_product(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  dnnl_memory_desc_t md[DESCRIBED], bool bias,
                                  const_dnnl_primitive_attr_t attr)
{
    return dnnl_matmul_primitive_desc_create(pd, engine, md[A], md[B], bias ? md[BIAS] : NULL,
                                             md[C], attr);
}

#else

static dnnl_status_t describe(dnnl_memory_desc_t *md, const dnnl_dims_t sizes,
                              dnnl_data_type_t type, const dnnl_dims_t strides)
{
    return dnnl_memory_desc_init_by_strides(md, 2, sizes, type, strides);
}

static void forget(dnnl_memory_desc_t md[DESCRIBED])
{
    (void)md;
}

static dnnl_status_t append_sum(dnnl_post_ops_t ops)
{
    return dnnl_post_ops_append_sum(ops, 1.0f);
}

static dnnl_status_t append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t kind)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, kind, 0.0f, 0.0f);
}

static dnnl_status_t plan_product(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  dnnl_memory_desc_t md[DESCRIBED], bool bias,
                                  const_dnnl_primitive_attr_t attr)
{
    dnnl_matmul_desc_t desc;
    const dnnl_status_t status =
        dnnl_matmul_desc_init(&desc, &md[A], &md[B], bias ? &md[BIAS] : NULL, &md[C]);

    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL)
                                  : status;
}

#endif

/* ---- planning ----------------------------------------------------------- */

struct onednn {
    dnnl_engine_t engine;
    size_t rows, cols;               /* of a rectangle */
    size_t down, across;             /* rectangles */
    size_t scratch;                  /* bytes per thread, aligned */
    dnnl_primitive_t products[2][2]; /* [fewer rows][fewer columns], if there are such */
};

/* Halves the longer side while that is worth another thread. */
static void cut(struct onednn *own, size_t m, size_t n, size_t k)
{
    own->rows = m;
    own->cols = n;
    own->down = own->across = 1;
    while (own->down * own->across < TILES_WANTED && tn_max(own->rows, own->cols) > SIDE_MIN &&
           (double)own->rows * (double)own->cols * (double)k >= 2.0 * WORK_MIN) {
        size_t *const side = own->rows > own->cols ? &own->rows : &own->cols;

        *side = tn_round_up((*side + 1) / 2, 32);
        own->down = tn_blocks(m, own->rows);
        own->across = tn_blocks(n, own->cols);
    }
}

/* A product that is being made: all that oneDNN has made for it so far. */
struct making {
    const struct tn_matmul_desc *desc;
    dnnl_engine_t engine;
    size_t rows, cols;
    dnnl_post_ops_t ops;
    dnnl_primitive_attr_t attr;
    dnnl_memory_desc_t md[DESCRIBED];
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t product;
};

/* Old c first, then the activation: the order of matmul.h, and the one that oneDNN fuses. */
static dnnl_status_t make_attributes(struct making *m)
{
    dnnl_status_t status = dnnl_primitive_attr_create(&m->attr);

    if (status == dnnl_success) /* the scratchpad is the caller's */
        status = dnnl_primitive_attr_set_scratchpad_mode(m->attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success)
        status = dnnl_post_ops_create(&m->ops);
    if (status == dnnl_success && m->desc->add)
        status = append_sum(m->ops);
    if (status == dnnl_success && m->desc->activation == TN_RELU)
        status = append_eltwise(m->ops, dnnl_eltwise_relu);
    if (status == dnnl_success && m->desc->activation == TN_GELU)
        status = append_eltwise(m->ops, dnnl_eltwise_gelu_erf);
    return status == dnnl_success ? dnnl_primitive_attr_set_post_ops(m->attr, m->ops) : status;
}

static dnnl_status_t describe_matrix(dnnl_memory_desc_t *md, size_t rows, size_t cols,
                                     dnnl_data_type_t type, size_t ld, bool transposed)
{
    const dnnl_dims_t dims = {(dnnl_dim_t)rows, (dnnl_dim_t)cols};
    const dnnl_dims_t strides = {transposed ? 1 : (dnnl_dim_t)ld,
                                 transposed ? (dnnl_dim_t)ld : 1};

    return describe(md, dims, type, strides);
}

static dnnl_status_t make_description(struct making *m)
{
    const struct tn_matmul_desc *const d = m->desc;
    const dnnl_data_type_t type = d->elements == TN_BF16 ? dnnl_bf16 : dnnl_f32;
    const size_t rows = m->rows, cols = m->cols;
    dnnl_status_t status = describe_matrix(&m->md[A], rows, d->k, type, d->lda, d->transpose_a);

    if (status == dnnl_success)
        status = describe_matrix(&m->md[B], d->k, cols, type, d->ldb, d->transpose_b);
    if (status == dnnl_success)
        status = describe_matrix(&m->md[C], rows, cols, dnnl_f32, d->ldc, false);
    if (status == dnnl_success)
        status = describe_matrix(&m->md[BIAS], 1, cols, dnnl_f32, cols, false);
    return status == dnnl_success ? plan_product(&m->pd, m->engine, m->md, d->bias, m->attr)
                                  : status;
}

/* oneDNN's plain loops, named "ref:...", are slower than ours. */
static bool is_fast(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    return dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success &&
           strncmp(name, "ref", 3) != 0;
}

static dnnl_status_t make(void *context)
{
    struct making *const m = context;
    dnnl_status_t status = make_attributes(m);

    if (status == dnnl_success)
        status = make_description(m);
    if (status == dnnl_success)
        status =
            is_fast(m->pd) ? dnnl_primitive_create(&m->product, m->pd) : dnnl_unimplemented;
    return status;
}

static dnnl_status_t make_product(dnnl_primitive_t *product, dnnl_engine_t engine,
                                  const struct tn_matmul_desc *desc, size_t rows, size_t cols)
{
    struct making m = {.desc = desc, .engine = engine, .rows = rows, .cols = cols};
    const dnnl_status_t status = tn_onednn_guarded(make, &m, MAKING_BYTES);

    *product = m.product;
    dnnl_primitive_desc_destroy(m.pd);
    forget(m.md);
    dnnl_post_ops_destroy(m.ops);
    dnnl_primitive_attr_destroy(m.attr);
    return status;
}

static dnnl_status_t make_engine(void *context)
{
    struct onednn *const own = context;

    return dnnl_engine_create(&own->engine, dnnl_cpu, 0);
}

static dnnl_status_t make_products(struct onednn *own, const struct tn_matmul_desc *d)
{
    dnnl_status_t status = tn_onednn_guarded(make_engine, own, MAKING_BYTES);

    for (size_t i = 0; status == dnnl_success && i < 4; i++) {
        dnnl_primitive_t *const product = &own->products[i / 2][i % 2];
        const size_t rows = i / 2 ? d->m % own->rows : own->rows;
        const size_t cols = i % 2 ? d->n % own->cols : own->cols;

        if (rows == 0 || cols == 0)
            continue;
        status = make_product(product, own->engine, d, rows, cols);
        if (status == dnnl_success)
            own->scratch =
                tn_max(own->scratch, tn_onednn_bytes_of(*product, DNNL_ARG_SCRATCHPAD));
    }
    return status;
}

static void release(struct tn_matmul *plan)
{
    struct onednn *const own = plan->own;

    if (!own)
        return;
    for (size_t i = 0; i < 4; i++)
        dnnl_primitive_destroy(own->products[i / 2][i % 2]);
    dnnl_engine_destroy(own->engine);
    tn_release(&plan->host->allocator, own);
    plan->own = NULL;
}

/* It multiplies at the processor's limit where instructions are for bf16, and f32 where vectors
 * are of 512 bits; elsewhere it reads f32 in place (docs/decisions.md). */
static bool is_best(const struct tn_matmul *plan)
{
    return plan->desc.elements == TN_BF16 || plan->host->kernels->lanes == 16;
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    if (plan->desc.packed)
        return tn_fail(err, TARN_EMACHINE,
                       "backend: 'onednn' needs weights that are not packed");
    if (plan->desc.elements == TN_BF16_INPUTS)
        return tn_fail(err, TARN_EMACHINE, "backend: 'onednn' does not round what it reads");
    if (!plan->desc.backend && !is_best(plan))
        return tn_fail(err, TARN_EMACHINE, "backend: 'onednn' is slower than 'packed' here");

    struct onednn *const own = tn_allocate(&plan->host->allocator, sizeof *own);

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a matrix product plan");
    *own = (struct onednn){0};
    plan->own = own;
    cut(own, plan->desc.m, plan->desc.n, plan->desc.k);

    const dnnl_status_t status = make_products(own, &plan->desc);

    if (status != dnnl_success) {
        release(plan);
        if (status == dnnl_out_of_memory)
            return tn_fail(err, TARN_ENOMEM,
                           "not enough memory for a matrix product by oneDNN");
        return tn_fail(err, TARN_EMACHINE,
                       "backend: oneDNN has no fast product of these types on this machine");
    }
    plan->scratch = own->scratch ? own->scratch * plan->host->threads + TN_ALIGN - 1 : 0;
    return TARN_OK;
}

/* ---- running ------------------------------------------------------------ */

struct job {
    const struct tn_matmul *plan;
    const struct tn_matmul_arrays *arrays;
};

static const void *element_at(const void *matrix, size_t index, size_t size)
{
    return (const char *)matrix + index * size;
}

static dnnl_status_t run_product(dnnl_primitive_t product, const struct job *job,
                                 struct tn_rectangle part, size_t thread)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_matmul_arrays *const arrays = job->arrays;
    const struct onednn *const own = job->plan->own;
    const size_t size = d->elements == TN_BF16 ? sizeof(uint16_t) : sizeof(float);
    const size_t in_a = d->transpose_a ? part.row : part.row * d->lda;
    const size_t in_b = d->transpose_b ? part.col * d->ldb : part.col;
    const struct tn_onednn_array of[] = {
        {DNNL_ARG_SRC, element_at(arrays->a, in_a, size)},
        {DNNL_ARG_WEIGHTS, element_at(arrays->b, in_b, size)},
        {DNNL_ARG_DST, arrays->c + part.row * d->ldc + part.col},
        {DNNL_ARG_BIAS, d->bias ? arrays->bias + part.col : NULL},
        {DNNL_ARG_SCRATCHPAD,
         own->scratch ? tn_arena_over(arrays->scratch).base + thread * own->scratch : NULL},
    };

    return tn_onednn_run(product, own->engine, of, sizeof of / sizeof of[0]);
}

enum { ATTEMPTS = 3 };

/* The small objects of a run come from malloc, which may lack memory for a moment. Sums by the
 * definition, which needs none, are in another order: the caller hears of it. */
static void run_part(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct onednn *const own = job->plan->own;
    const size_t i = index / own->across, j = index % own->across;
    const size_t row = i * own->rows, col = j * own->cols;
    const struct tn_rectangle part = {row, col, tn_min(own->rows, d->m - row),
                                      tn_min(own->cols, d->n - col)};
    const dnnl_primitive_t product =
        own->products[part.rows < own->rows][part.cols < own->cols];

    for (size_t attempt = 0; attempt < ATTEMPTS; attempt++)
        if (run_product(product, job, part, thread) == dnnl_success)
            return;
    tn_matmul_plain_part(job->plan, job->arrays, part);
    tn_matmul_lose();
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct onednn *const own = plan->own;

    tn_parallel(plan->host->threads, own->down * own->across, run_part,
                &(struct job){plan, arrays});
}

extern const struct tn_matmul_backend tn_matmul_onednn;
const struct tn_matmul_backend tn_matmul_onednn = {
    .name = "onednn",
    .create = create,
    .run = run,
    .free = release,
};
