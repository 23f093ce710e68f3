/* SPDX-License-Identifier: MIT */
/* matmul_packed.c - the dense product with packed operands (kernel_body_packed.h).
 * packed_cut.c says how it is cut.
 *
 * Packed weights in bf16 are widened to f32, which is exact, in registers. Where both operands
 * are rounded to bf16, that is done as they are packed: where instructions multiply pairs of
 * bf16, two steps of the sum become a word; elsewhere rounded values are multiplied as f32, so
 * that results are the same up to the order of the sums. */
#include "kernel/packed_cut.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------- */

/* What a run works in. */
struct work {
    float *b;        /* all of b, packed; NULL: it came packed, or slices pack it */
    float *slices;   /* m x n for each */
    float *a_panels; /* all of a, or a piece of a rectangle's rows for each thread */
    float *b_panels; /* a piece of a slice's columns for each thread */
    float *words;    /* of two steps, before they are packed, for each thread */
    size_t a_size, b_size, words_size; /* floats of a rectangle, of a thread's */
};

static size_t floats_of_rows(const struct tn_matmul *plan, size_t panels)
{
    return panels * tn_panel_width(plan->host->kernels, false);
}

/* Of all rectangles, also for fewer rows than the plan's: each has a panel more than its rows
 * need, at most, and is one of m / TN_CUT_ROWS + 1. */
static size_t panels_most(const struct tn_matmul *plan)
{
    const size_t m = plan->desc.m;

    return m / plan->host->kernels->panel_rows + 2 * tn_blocks(m, TN_CUT_ROWS);
}

static size_t words_of_piece(const struct tn_matmul *plan, const struct tn_packed_cut *cut)
{
    const struct tn_kernels *const kernels = plan->host->kernels;
    const size_t rows = cut->packing == TN_EACH ? cut->rows : kernels->panel_rows;
    const size_t cols = cut->slices > 1 ? cut->cols : tn_panel_size(kernels, true);

    return tn_packed_pairs(plan) ? tn_max(rows, cols) * cut->piece : 0;
}

static struct work lay_out(const struct tn_matmul *plan, const struct tn_packed_cut *cut,
                           struct tn_arena *arena)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const size_t k = tn_packed_steps(plan);
    const size_t size = sizeof(float), panels = cut->rows / plan->host->kernels->panel_rows;
    struct work work = {
        .a_size = floats_of_rows(plan, panels) * (cut->packing == TN_EACH ? cut->piece : k),
        .b_size = cut->slices > 1 ? cut->cols * cut->piece : 0,
        .words_size = words_of_piece(plan, cut),
    };

    if (cut->slices > 1)
        work.slices = tn_arena_alloc(arena, cut->slices * d->m, d->n * size);
    else if (!d->packed)
        work.b = tn_arena_alloc(arena, k, cut->width * size);
    if (cut->packing == TN_TOGETHER)
        work.a_panels =
            tn_arena_alloc(arena, k, floats_of_rows(plan, panels_most(plan)) * size);
    else if (cut->packing == TN_EACH)
        work.a_panels = tn_arena_alloc(arena, plan->host->threads, work.a_size * size);
    work.b_panels = tn_arena_alloc(arena, plan->host->threads, work.b_size * size);
    work.words = tn_arena_alloc(arena, plan->host->threads, work.words_size * size);
    return work;
}

/* Cuts that are computed once; a step of one stream would spend 2 % of its time on it. */
struct cuts {
    struct tn_packed_cut all_rows, one_row;
};

static struct tn_packed_cut cut_for(const struct tn_matmul *plan, size_t m)
{
    const struct cuts *const cuts = plan->own;

    if (m == plan->desc.m)
        return cuts->all_rows;
    return m == 1 ? cuts->one_row : tn_packed_cut_for(plan, m);
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);

    if (plan->desc.elements > TN_BF16)
        return tn_fail(err, TARN_EMACHINE, "backend: 'packed' does not multiply %s",
                       tn_element_name(plan->desc.elements));
    struct cuts *const cuts = tn_allocate(&plan->host->allocator, sizeof *cuts);

    if (!cuts)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a matrix product plan");
    *cuts = (struct cuts){tn_packed_cut_for(plan, plan->desc.m), tn_packed_cut_for(plan, 1)};
    plan->own = cuts;
    lay_out(plan, &cuts->all_rows, &arena);
    plan->scratch = tn_arena_bytes(&arena);
    if (plan->scratch == SIZE_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "m, n, k are %zu, %zu, %zu; such matrices do not fit in memory",
                       plan->desc.m, plan->desc.n, plan->desc.k);
    return TARN_OK;
}

static void release(struct tn_matmul *plan)
{
    if (plan->own)
        tn_release(&plan->host->allocator, plan->own);
}

/* ---- pieces of operands ------------------------------------------------- */

struct job {
    const struct tn_matmul *plan;
    const struct tn_matmul_arrays *arrays;
    struct tn_packed_cut cut;
    struct work work;
    const void *b; /* all of it, packed; NULL if slices pack it */
};

/* A piece of an operand: items are rows of a or columns of b, steps go along the sum. */
struct piece {
    const float *at;
    size_t ld;
    bool across; /* items lie side by side */
    size_t items, steps;
};

/* Elements of the sum before step p, where a word is one step of two. */
static size_t elements_before(const struct tn_matmul *plan, size_t p)
{
    return tn_packed_pairs(plan) ? tn_min(2 * p, plan->desc.k) : p;
}

static struct piece piece_of_a(const struct job *job, size_t row, size_t rows, size_t step,
                               size_t depth)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t p = elements_before(job->plan, step);
    const size_t first = d->transpose_a ? p * d->lda + row : row * d->lda + p;

    return (struct piece){job->arrays->a + first, d->lda, d->transpose_a, rows,
                          elements_before(job->plan, step + depth) - p};
}

static struct piece piece_of_b(const struct job *job, size_t col, size_t cols, size_t step,
                               size_t depth)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t p = elements_before(job->plan, step);
    const size_t first = d->transpose_b ? col * d->ldb + p : p * d->ldb + col;

    return (struct piece){(const float *)job->arrays->b + first, d->ldb, !d->transpose_b, cols,
                          elements_before(job->plan, step + depth) - p};
}

/* A piece as words of two steps. Columns of b fill whole panels, as product_bf16() has
 * them. */
static struct piece paired(const struct job *job, bool of_b, struct piece piece, size_t thread)
{
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    float *const to = job->work.words + thread * job->work.words_size;
    const size_t words = tn_blocks(piece.steps, 2);
    const size_t items =
        of_b ? tn_round_up(piece.items, tn_panel_size(kernels, true)) : piece.items;
    const size_t ld = piece.across ? items : words;

    if (items > piece.items || (!piece.across && piece.steps % 2 != 0))
        memset(to, 0, items * words * sizeof *to);
    if (piece.across)
        kernels->pair_rows((uint32_t *)to, (ptrdiff_t)ld, piece.at, (ptrdiff_t)piece.ld,
                           piece.steps, piece.items);
    else
        kernels->narrow((uint16_t *)to, (ptrdiff_t)(2 * ld), piece.at, (ptrdiff_t)piece.ld,
                        piece.items, piece.steps);
    return (struct piece){to, ld, piece.across, items, words};
}

static void round_to_bf16(const struct tn_kernels *kernels, float *x, size_t n)
{
    uint16_t rounded[1024];

    for (size_t i = 0, some; i < n; i += some) {
        some = tn_min(sizeof rounded / sizeof rounded[0], n - i);
        kernels->narrow(rounded, (ptrdiff_t)some, x + i, (ptrdiff_t)some, 1, some);
        kernels->widen(x + i, (ptrdiff_t)some, rounded, (ptrdiff_t)some, 1, some);
    }
}

static void pack(const struct job *job, float *panels, bool of_b, struct piece piece,
                 size_t thread)
{
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    const bool pairs = tn_packed_pairs(job->plan);

    if (pairs)
        piece = paired(job, of_b, piece, thread);
    kernels->pack(panels, of_b, piece.at, (ptrdiff_t)piece.ld, piece.across, piece.items,
                  piece.steps);
    if (tn_matmul_rounds(&job->plan->desc) && !pairs)
        round_to_bf16(kernels, panels,
                      tn_panels(kernels, of_b, piece.items) * tn_panel_width(kernels, of_b) *
                          piece.steps);
}

/* A piece that is packed next; the last has no next. */
static struct tn_ahead ahead_of(struct piece piece)
{
    if (piece.steps == 0)
        return (struct tn_ahead){0};
    return piece.across
               ? (struct tn_ahead){piece.at, (ptrdiff_t)piece.ld, piece.steps, piece.items, 0}
               : (struct tn_ahead){piece.at, (ptrdiff_t)piece.ld, piece.items, piece.steps, 0};
}

/* ---- packing before the product ----------------------------------------- */

/* Where the panels of a rectangle's rows and the piece of the sum from p on are, in all of
 * a. */
static float *panels_at(const struct job *job, size_t row, size_t p)
{
    return job->work.a_panels + row / job->cut.rows * job->work.a_size +
           p * (job->work.a_size / tn_packed_steps(job->plan));
}

/* One panel of one rectangle. */
static void pack_panel_of_a(const struct job *job, size_t index, size_t thread)
{
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    const size_t k = tn_packed_steps(job->plan);
    const size_t panels = tn_panels(kernels, false, job->cut.rows), panel = index % panels;
    const size_t row = index / panels * job->cut.rows;
    const size_t rows = tn_min(job->cut.rows, job->arrays->m - row);
    const size_t first = tn_panel_row(kernels, rows, panel);

    if (panel >= tn_panels(kernels, false, rows))
        return;
    for (size_t p = 0, depth; p < k; p += depth) {
        depth = tn_min(job->cut.piece, k - p);
        pack(job, panels_at(job, row, p) + panel * depth * tn_panel_width(kernels, false),
             false,
             piece_of_a(job, row + first, tn_panel_row(kernels, rows, panel + 1) - first, p,
                        depth),
             thread);
    }
}

static size_t panels_of_b(const struct job *job)
{
    return job->work.b ? tn_packed_panels(job->plan) : 0;
}

static size_t panels_of_a(const struct job *job)
{
    return job->cut.packing == TN_TOGETHER
               ? job->cut.down * tn_panels(job->plan->host->kernels, false, job->cut.rows)
               : 0;
}

/* What rectangles share: b unless it came packed, then a if all threads pack it. */
static void pack_panel(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;

    if (index >= panels_of_b(job)) {
        pack_panel_of_a(job, index - panels_of_b(job), thread);
        return;
    }
    const struct tn_packed_panel panel = tn_packed_panel_at(job->plan, index);

    pack(job, job->work.b + panel.at, true,
         piece_of_b(job, panel.col, panel.cols, panel.p, panel.depth), thread);
}

/* ---- multiplying -------------------------------------------------------- */

struct rectangle {
    size_t row, col, rows, cols;
};

static struct rectangle rectangle_at(const struct job *job, size_t index)
{
    const struct tn_packed_cut *const cut = &job->cut;
    const size_t row = index / cut->across * cut->rows, col = index % cut->across * cut->cols;

    return (struct rectangle){row, col, tn_min(cut->rows, job->arrays->m - row),
                              tn_min(cut->cols, job->plan->desc.n - col)};
}

/* Bytes of the packed b, which is bf16 only if it came so. */
static size_t bytes_of_panels(const struct job *job, size_t elements)
{
    return elements * (job->work.b ? sizeof(float) : tn_element_size(job->plan->desc.elements));
}

static const void *weights_at(const struct job *job, size_t col, size_t p, size_t depth)
{
    return (const char *)job->b +
           bytes_of_panels(job, tn_packed_at(job->cut.width, col, p, depth));
}

/* The panel of b after the sum's piece from p on: of the same columns, or of the next ones,
 * which this thread takes next while it has some of its own. */
static struct tn_ahead next_of_b(const struct job *job, size_t index, size_t p, size_t depth)
{
    const struct tn_packed_cut *const cut = &job->cut;
    const size_t k = tn_packed_steps(job->plan);
    const bool stays = p + depth < k;
    const size_t task = stays ? index : index + 1, from = stays ? p + depth : 0;
    const size_t left = tn_min(cut->piece, k - from);
    const size_t bytes = bytes_of_panels(job, cut->cols * left);

    return (struct tn_ahead){weights_at(job, task % cut->across * cut->cols, from, left), 0, 1,
                             bytes / sizeof(float), 0};
}

/* What comes after the sum's piece from p on: weights where rows were packed before the
 * product, else the rows of the next piece. Few rows read weights front to back. */
static struct tn_ahead next_of(const struct job *job, size_t index, struct rectangle part,
                               size_t p, size_t depth)
{
    const size_t left = tn_packed_steps(job->plan) - p - depth;

    switch (job->cut.packing) {
    case TN_TOGETHER:
        return next_of_b(job, index, p, depth);
    case TN_EACH:
        return ahead_of(piece_of_a(job, part.row, part.rows, p + depth, tn_min(depth, left)));
    case TN_IN_PLACE:
        break;
    }
    return (struct tn_ahead){0};
}

/* Rows of a rectangle, and a piece of the sum. */
static const float *rows_of_a(const struct job *job, struct rectangle part, size_t p,
                              size_t depth, size_t thread)
{
    const struct piece piece = piece_of_a(job, part.row, part.rows, p, depth);

    if (job->cut.packing == TN_IN_PLACE)
        return piece.at;
    if (job->cut.packing == TN_TOGETHER)
        return panels_at(job, part.row, p);
    float *const panels = job->work.a_panels + thread * job->work.a_size;

    pack(job, panels, false, piece, thread);
    return panels;
}

static void multiply(const struct job *job, struct tn_panels panels)
{
    const struct tn_kernels *const kernels = job->plan->host->kernels;

    if (tn_packed_pairs(job->plan)) {
        panels.k *= 2;
        kernels->product_bf16(&panels);
    } else {
        kernels->product_packed(&panels);
    }
}

static void run_rectangle(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t k = tn_packed_steps(job->plan);
    const struct rectangle part = rectangle_at(job, index);
    float *const c = job->arrays->c + part.row * d->ldc + part.col;

    for (size_t p = 0, depth; p < k; p += depth) {
        depth = tn_min(job->cut.piece, k - p);
        const bool last = p + depth == k;
        struct tn_ahead ahead[2] = {next_of(job, index, part, p, depth), {0}};

        multiply(job, (struct tn_panels){
                          .c = c,
                          .a = rows_of_a(job, part, p, depth, thread),
                          .b = weights_at(job, part.col, p, depth),
                          .bias = last && d->bias ? job->arrays->bias + part.col : NULL,
                          .ldc = (ptrdiff_t)d->ldc,
                          .lda = job->cut.packing == TN_IN_PLACE ? (ptrdiff_t)d->lda : 0,
                          .m = part.rows,
                          .n = part.cols,
                          .k = depth,
                          .bf16 = d->packed && d->elements == TN_BF16,
                          .add = d->add || p > 0,
                          .relu = last && d->activation == TN_RELU,
                          .ahead = ahead,
                      });
    }
    for (size_t i = 0; i < part.rows && d->activation == TN_GELU; i++)
        job->plan->host->kernels->gelu(c + i * d->ldc, c + i * d->ldc, part.cols);
}

/* ---- slices of the sum -------------------------------------------------- */

static void run_slice(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t tasks = job->cut.down * job->cut.across, slice = index / tasks;
    const struct rectangle part = rectangle_at(job, index % tasks);
    const size_t from = slice * job->cut.depth,
                 to = tn_min(tn_packed_steps(job->plan), from + job->cut.depth);
    float *const b = job->work.b_panels + thread * job->work.b_size;

    for (size_t p = from, depth; p < to; p += depth) {
        depth = tn_min(job->cut.piece, to - p);
        const size_t left = tn_min(depth, to - p - depth);
        struct tn_ahead ahead[3] = {
            ahead_of(piece_of_a(job, part.row, part.rows, p + depth, left)),
            ahead_of(piece_of_b(job, part.col, part.cols, p + depth, left)),
            {0}};

        pack(job, b, true, piece_of_b(job, part.col, part.cols, p, depth), thread);
        multiply(job, (struct tn_panels){
                          .c = job->work.slices + (slice * d->m + part.row) * d->n + part.col,
                          .a = rows_of_a(job, part, p, depth, thread),
                          .b = b,
                          .ldc = (ptrdiff_t)d->n,
                          .m = part.rows,
                          .n = part.cols,
                          .k = depth,
                          .add = p > from,
                          .ahead = ahead,
                      });
    }
}

/* c = activation(c + bias) for a row of it. */
static void finish_row(const struct job *job, float *c)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_kernels *const kernels = job->plan->host->kernels;

    if (d->bias)
        kernels->add(c, c, job->arrays->bias, d->n);
    if (d->activation == TN_RELU)
        kernels->relu(c, c, d->n);
    else if (d->activation == TN_GELU)
        kernels->gelu(c, c, d->n);
}

static void add_slices(void *arg, size_t row, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    float *const c = job->arrays->c + row * d->ldc;

    (void)thread;
    if (!d->add)
        memset(c, 0, d->n * sizeof *c);
    job->plan->host->kernels->sum_rows(c, job->work.slices + row * d->n,
                                       (ptrdiff_t)(d->m * d->n), job->cut.slices, d->n);
    finish_row(job, c);
}

/* ---- the backend -------------------------------------------------------- */

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    struct tn_arena arena = tn_arena_over(arrays->scratch);
    struct job job = {.plan = plan, .arrays = arrays, .cut = cut_for(plan, arrays->m)};
    const size_t tasks = job.cut.down * job.cut.across * job.cut.slices;

    job.work = lay_out(plan, &job.cut, &arena);
    job.b = d->packed ? arrays->b : job.work.b;
    if (job.cut.slices > 1) {
        tn_parallel(plan->host->threads, tasks, run_slice, &job);
        tn_parallel(plan->host->threads, d->m, add_slices, &job);
        return;
    }
    const size_t panels = panels_of_b(&job) + panels_of_a(&job);

    if (panels > 0)
        tn_parallel(plan->host->threads, panels, pack_panel, &job);
    tn_parallel(plan->host->threads, tasks, run_rectangle, &job);
}

extern const struct tn_matmul_backend tn_matmul_packed;
const struct tn_matmul_backend tn_matmul_packed = {.name = "packed",
                                                   .create = create,
                                                   .packed_size = tn_packed_size,
                                                   .pack = tn_packed_pack,
                                                   .run = run,
                                                   .free = release};
