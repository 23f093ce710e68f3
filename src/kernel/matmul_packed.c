/* SPDX-License-Identifier: MIT */
/* matmul_packed.c - the dense product of f32 by tarn's own loops, operands packed first
 * (kernel_body_packed.h): for large products on processors where oneDNN reads them in place.
 *
 * c is cut into rectangles. Where rows are many, b is packed once for all of them, by all
 * threads, and each rectangle packs its rows of a. Where they are few, all threads pack a too,
 * and a rectangle is a single panel of b wide. Where both are few and the sum is long, as in
 * the gradient of a layer's weights, the sum is cut into slices instead: each makes a c of its
 * own from what it packs itself, and these are added in order. All cuts are by the shape alone.
 *
 * A b that is held is packed already. */
#include "kernel/held.h"
#include "kernel/matmul_tile.h"

#include <string.h>

enum {
    ROWS = 128,         /* of a rectangle, about, where b is shared */
    ROWS_SLICED = 256,  /* where each packs b for itself */
    COLS_MIN = 256,     /* narrower ones pack more than they multiply */
    PIECES_SHARED = 4,  /* of a sum that is not long */
    TASKS_WANTED = 16,  /* so many threads find work */
    WORK_MIN = 1 << 20, /* multiply-adds: smaller products are not worth packing */
    SIDE_MIN = 32
};

struct packed {
    size_t rows, cols;           /* of a rectangle: whole panels */
    size_t down, across, slices; /* how many */
    size_t piece;                /* of the sum */
    size_t depth;                /* of a slice: whole pieces */
    bool shares_a;               /* packed once, for rectangles side by side */
};

/* ---- planning ----------------------------------------------------------- */

/* Rows of about equal number, `most` at most but for the last panel. */
static void cut_rows(struct packed *own, const struct tn_matmul *plan, size_t most)
{
    const size_t m = plan->desc.m;

    own->rows = tn_round_up(tn_blocks(m, tn_blocks(m, most)), plan->host->kernels->panel_rows);
    own->down = tn_blocks(m, own->rows);
}

/* Threads that take neighbours read the same rows of a, and each panel of b is read by one. */
static void cut_shared(struct packed *own, const struct tn_matmul *plan)
{
    own->cols = tn_panel_size(plan->host->kernels, true);
    own->across = tn_blocks(plan->desc.n, own->cols);
    own->depth = plan->desc.k;
    own->shares_a = true;
}

static void cut(struct packed *own, const struct tn_matmul *plan)
{
    const size_t n = plan->desc.n, k = plan->desc.k, piece = tn_held_piece(plan);
    const size_t pieces = tn_blocks(k, piece);
    const size_t wide = tn_panel_size(plan->host->kernels, true);

    *own =
        (struct packed){.cols = tn_round_up(n, wide), .across = 1, .slices = 1, .piece = piece};
    cut_rows(own, plan, ROWS);
    if (plan->desc.held || (own->down < TASKS_WANTED && pieces <= PIECES_SHARED)) {
        cut_shared(own, plan);
        return;
    }
    while (own->down * own->across < TASKS_WANTED && own->cols > COLS_MIN) {
        own->cols = tn_round_up((own->cols + 1) / 2, wide);
        own->across = tn_blocks(n, own->cols);
    }
    if (own->down * own->across < TASKS_WANTED && pieces > 1) {
        cut_rows(own, plan, ROWS_SLICED);
        own->slices = tn_blocks(TASKS_WANTED, own->down * own->across);
    }
    own->depth = tn_blocks(pieces, own->slices) * own->piece;
    own->slices = tn_blocks(k, own->depth);
}

/* What a run works in. */
struct work {
    const float *held; /* all of b, packed; NULL if slices pack it */
    float *b;          /* the same if it is packed here */
    float *slices;     /* m x n for each */
    float *a_panels;   /* of a rectangle and a piece of the sum, for each thread; or all of a */
    float *b_panels;
    size_t a_size, b_size; /* floats of the two */
};

static struct work lay_out(const struct tn_matmul *plan, struct tn_arena *arena)
{
    const struct tn_matmul_desc *const d = &plan->desc;
    const struct packed *const own = plan->own;
    const struct tn_kernels *const kernels = plan->host->kernels;
    const size_t a_row = own->rows / kernels->panel_rows * tn_panel_width(kernels, false);
    struct work work = {
        .a_size = a_row * (own->shares_a ? d->k : own->piece),
        .b_size = own->slices > 1 ? own->cols * own->piece : 0,
    };

    if (own->slices > 1)
        work.slices = tn_arena_take(arena, own->slices * d->m, d->n * sizeof(float));
    else if (!d->held)
        work.b = tn_arena_take(arena, d->k, tn_held_width(plan) * sizeof(float));
    work.a_panels = tn_arena_take(arena, own->shares_a ? own->down : plan->host->threads,
                                  work.a_size * sizeof(float));
    work.b_panels = tn_arena_take(arena, plan->host->threads, work.b_size * sizeof(float));
    return work;
}

/* oneDNN multiplies at the processor's limit where its vectors are of 512 bits. A b that is
 * held costs no packing, and gives the bits that it gives to a few rows. */
static bool is_worth_it(const struct tn_matmul *plan)
{
    const struct tn_matmul_desc *const d = &plan->desc;

    if (d->held)
        return true;
#ifdef TN_HAVE_ONEDNN
    if (plan->host->kernels->lanes == 16)
        return false;
#endif
    return d->m >= SIDE_MIN && d->n >= SIDE_MIN &&
           (double)d->m * (double)d->n * (double)d->k >= WORK_MIN;
}

static tarn_status create(struct tn_matmul *plan, tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);

    if (plan->desc.elements != TN_F32)
        return tn_fail(err, TARN_EMACHINE, "backend: 'packed' needs f32 matrices");
    if (!plan->desc.backend && !is_worth_it(plan))
        return tn_fail(err, TARN_EMACHINE, "backend: 'packed' needs larger matrices");
    struct packed *const own = tn_allocate(&plan->host->allocator, sizeof *own);

    if (!own)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a matrix product plan");
    plan->own = own;
    cut(own, plan);
    lay_out(plan, &arena);
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
    plan->own = NULL;
}

/* ---- running ------------------------------------------------------------ */

struct job {
    const struct tn_matmul *plan;
    const struct tn_matmul_arrays *arrays;
    const struct packed *own;
    struct work work;
};

/* A piece of an operand: items are rows of a or columns of b, steps go along the sum. */
struct piece {
    const float *at;
    ptrdiff_t ld;
    bool across; /* items lie side by side */
    size_t items, steps;
};

static struct piece piece_of_a(const struct job *job, size_t row, size_t rows, size_t p,
                               size_t depth)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const float *const a = job->arrays->a;

    return (struct piece){d->transpose_a ? a + p * d->lda + row : a + row * d->lda + p,
                          (ptrdiff_t)d->lda, d->transpose_a, rows, depth};
}

static struct piece piece_of_b(const struct job *job, size_t col, size_t cols, size_t p,
                               size_t depth)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const float *const b = job->arrays->b;

    return (struct piece){d->transpose_b ? b + col * d->ldb + p : b + p * d->ldb + col,
                          (ptrdiff_t)d->ldb, !d->transpose_b, cols, depth};
}

static void pack(const struct job *job, float *panels, bool of_b, struct piece piece)
{
    job->plan->host->kernels->pack(panels, of_b, piece.at, piece.ld, piece.across, piece.items,
                                   piece.steps);
}

static struct tn_ahead ahead_of(struct piece piece)
{
    if (piece.steps == 0) /* the last piece has no next */
        return (struct tn_ahead){0};
    return piece.across ? (struct tn_ahead){piece.at, piece.ld, piece.steps, piece.items, 0}
                        : (struct tn_ahead){piece.at, piece.ld, piece.items, piece.steps, 0};
}

/* ---- packing ------------------------------------------------------------ */

/* Where the panels of a rectangle's rows and the piece of the sum from p on are, in all of
 * a. */
static float *shared_a(const struct job *job, size_t row, size_t p)
{
    const struct packed *const own = job->own;

    return job->work.a_panels + row / own->rows * job->work.a_size +
           p * (job->work.a_size / job->plan->desc.k);
}

/* One panel of one rectangle. */
static void pack_panel_of_a(const struct job *job, size_t index)
{
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const struct tn_kernels *const kernels = job->plan->host->kernels;
    const size_t panels = tn_panels(kernels, false, job->own->rows), panel = index % panels;
    const size_t row = index / panels * job->own->rows,
                 rows = tn_min(job->own->rows, job->arrays->m - row);
    const size_t first = tn_panel_row(kernels, rows, panel);

    if (panel >= tn_panels(kernels, false, rows))
        return;
    for (size_t p = 0; p < d->k; p += job->own->piece) {
        const size_t depth = tn_min(job->own->piece, d->k - p);

        pack(job, shared_a(job, row, p) + panel * depth * tn_panel_width(kernels, false), false,
             piece_of_a(job, row + first, tn_panel_row(kernels, rows, panel + 1) - first, p,
                        depth));
    }
}

/* That are packed for all rectangles. */
static size_t panels_of_a(const struct job *job)
{
    const struct packed *const own = job->own;

    return own->shares_a ? own->down * tn_panels(job->plan->host->kernels, false, own->rows)
                         : 0;
}

/* What rectangles share: b unless it is held, then a if it is shared. */
static void pack_shared(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const size_t of_b = job->work.b ? tn_held_panels(job->plan) : 0;

    (void)thread;
    if (index < of_b)
        tn_held_pack(job->plan, job->work.b, job->arrays->b, index);
    else
        pack_panel_of_a(job, index - of_b);
}

/* ---- multiplying -------------------------------------------------------- */

static struct tn_rectangle rectangle_at(const struct job *job, size_t index)
{
    const struct packed *const own = job->own;
    const size_t row = index / own->across * own->rows, col = index % own->across * own->cols;

    return (struct tn_rectangle){row, col, tn_min(own->rows, job->arrays->m - row),
                                 tn_min(own->cols, job->plan->desc.n - col)};
}

/* The panel of b that comes after the sum's piece from p on: of the same columns, or of the
 * next ones, which this thread takes next while it has some of its own. */
static struct tn_ahead next_of_b(const struct job *job, size_t index, size_t p, size_t depth)
{
    const struct packed *const own = job->own;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const bool stays = p + depth < d->k;
    const size_t task = stays ? index : index + 1, from = stays ? p + depth : 0;
    const size_t left = tn_min(own->piece, d->k - from);

    return (struct tn_ahead){
        job->work.held + tn_held_at(job->plan, task % own->across * own->cols, from, left), 0,
        1, own->cols * left, 0};
}

static void run_rectangle(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const bool shares_a = job->own->shares_a;
    const struct tn_rectangle part = rectangle_at(job, index);
    float *const own_a = shares_a ? NULL : job->work.a_panels + thread * job->work.a_size;
    float *const c = job->arrays->c + part.row * d->ldc + part.col;

    for (size_t p = 0; p < d->k; p += job->own->piece) {
        const size_t depth = tn_min(job->own->piece, d->k - p);
        const size_t left = tn_min(depth, d->k - p - depth);
        const bool last = left == 0;
        struct tn_ahead ahead[2] = {
            shares_a ? next_of_b(job, index, p, depth)
                     : ahead_of(piece_of_a(job, part.row, part.rows, p + depth, left)),
            {0}};

        if (!shares_a)
            pack(job, own_a, false, piece_of_a(job, part.row, part.rows, p, depth));
        job->plan->host->kernels->product_packed(&(struct tn_panels){
            .c = c,
            .a = shares_a ? shared_a(job, part.row, p) : own_a,
            .b = job->work.held + tn_held_at(job->plan, part.col, p, depth),
            .bias = last && d->bias ? job->arrays->bias + part.col : NULL,
            .ldc = (ptrdiff_t)d->ldc,
            .m = part.rows,
            .n = part.cols,
            .k = depth,
            .add = d->add || p > 0,
            .relu = last && d->activation == TN_RELU,
            .ahead = ahead,
        });
    }
    for (size_t i = 0; i < part.rows && d->activation == TN_GELU; i++)
        job->plan->host->kernels->gelu(c + i * d->ldc, c + i * d->ldc, part.cols);
}

static void run_slice(void *arg, size_t index, size_t thread)
{
    const struct job *const job = arg;
    const struct tn_matmul_desc *const d = &job->plan->desc;
    const size_t tasks = job->own->down * job->own->across, slice = index / tasks;
    const struct tn_rectangle part = rectangle_at(job, index % tasks);
    const size_t from = slice * job->own->depth, to = tn_min(d->k, from + job->own->depth);
    float *const a = job->work.a_panels + thread * job->work.a_size;
    float *const b = job->work.b_panels + thread * job->work.b_size;
    float *const c = job->work.slices + (slice * d->m + part.row) * d->n + part.col;

    for (size_t p = from; p < to; p += job->own->piece) {
        const size_t depth = tn_min(job->own->piece, to - p);
        const size_t left = tn_min(depth, to - p - depth);
        struct tn_ahead ahead[3] = {
            ahead_of(piece_of_a(job, part.row, part.rows, p + depth, left)),
            ahead_of(piece_of_b(job, part.col, part.cols, p + depth, left)),
            {0}};

        pack(job, a, false, piece_of_a(job, part.row, part.rows, p, depth));
        pack(job, b, true, piece_of_b(job, part.col, part.cols, p, depth));
        job->plan->host->kernels->product_packed(&(struct tn_panels){
            .c = c,
            .a = a,
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
                                       (ptrdiff_t)(d->m * d->n), job->own->slices, d->n);
    finish_row(job, c);
}

static void run(const struct tn_matmul *plan, const struct tn_matmul_arrays *arrays)
{
    struct packed own = *(const struct packed *)plan->own;
    const size_t threads = plan->host->threads;
    struct tn_arena arena = tn_arena_over(arrays->scratch);
    struct job job = {plan, arrays, &own, lay_out(plan, &arena)};

    own.down = tn_blocks(arrays->m, own.rows);
    const size_t tasks = own.down * own.across;

    job.work.held = plan->desc.held ? arrays->b : job.work.b;
    if (own.slices > 1) {
        tn_parallel(threads, own.slices * tasks, run_slice, &job);
        tn_parallel(threads, plan->desc.m, add_slices, &job);
        return;
    }
    tn_parallel(threads, (job.work.b ? tn_held_panels(plan) : 0) + panels_of_a(&job),
                pack_shared, &job);
    tn_parallel(threads, tasks, run_rectangle, &job);
}

extern const struct tn_matmul_backend tn_matmul_packed;
const struct tn_matmul_backend tn_matmul_packed = {
    .name = "packed",
    .create = create,
    .run = run,
    .free = release,
    .held_size = tn_held_size,
    .hold = tn_held_hold,
};
