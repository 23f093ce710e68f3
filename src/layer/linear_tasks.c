/* SPDX-License-Identifier: MIT */
#include "layer/linear.h"

enum {
    HEADS_ENOUGH = 8, /* sequences x heads to spread over threads without causal parts */
    PARTS_MAX = 32,   /* of all heads */
    PART_MIN = 512,   /* positions */
    SEGMENT_MIN = 1056,
    ROWS_PER_SUM = 32,    /* floats of rows for each float of sums that is kept */
    PACKED_MAX = 3 << 19, /* floats of packed rows of a thread: what a cache may hold */
    BLOCKS = 4            /* of a thread at once, where blocks are tasks */
};

/* ---- Parts and segments ------------------------------------------------- */

static size_t head_count(const tarn_attention *plan)
{
    return plan->B * plan->H;
}

static size_t tiles_of(size_t positions, size_t parts)
{
    return tn_round_up(tn_blocks(positions, parts), TN_LINEAR_SHORT_TILE);
}

/* Positions whose rows are worth a sum that is kept. */
static size_t positions_per_sum(const tarn_attention *plan)
{
    const size_t rows = 2 * (plan->D + plan->M);

    return tn_blocks(tn_linear_sum_floats(plan) * ROWS_PER_SUM, rows);
}

static size_t segment_of(const tarn_attention *plan)
{
    return tiles_of(tn_min(plan->N, tn_max(SEGMENT_MIN, positions_per_sum(plan))), 1);
}

struct tn_linear_cut tn_linear_cut_of(const tarn_attention *plan)
{
    const bool keeps = tn_linear_sizes_of(plan).normalises; /* dot_product.c has no place */
    const bool whole = plan->causal && head_count(plan) >= HEADS_ENOUGH;
    const size_t positions = tn_max(plan->N, plan->Nk);
    const size_t parts =
        whole ? 1 : tn_max(1, tn_min(PARTS_MAX / head_count(plan), positions / PART_MIN));
    struct tn_linear_cut cut = {
        .parts = parts,
        .q_part = tiles_of(plan->N, parts),
        .k_part = tiles_of(plan->Nk, parts),
        .segment = tiles_of(plan->N, parts),
    };

    if (keeps && plan->causal && parts == 1)
        cut.segment = segment_of(plan);
    if (keeps && plan->causal)
        cut.kept = tn_blocks(plan->N, cut.segment) - 1;
    else
        cut.kept = keeps && (parts > 1 || plan->Nk >= positions_per_sum(plan));
    return cut;
}

/* ---- Memory ------------------------------------------------------------- */

/* Rows that a thread keeps packed: those of a tile, and of a causal segment if they fit in a
 * cache. */
static size_t packed_rows(const tarn_attention *plan, struct tn_linear_cut cut)
{
    const size_t most = PACKED_MAX / tn_linear_packed_floats(plan);
    const bool keeps = plan->causal && cut.segment <= most;

    return keeps ? tn_max(TN_LINEAR_TILE, cut.segment) : TN_LINEAR_TILE;
}

/* The inverse of one denominator per position, then sums. */
static size_t inverses(const tarn_attention *plan)
{
    return tn_linear_sizes_of(plan).normalises ? head_count(plan) * plan->N : 0;
}

static size_t sums_floats(const tarn_attention *plan, size_t count)
{
    return count * head_count(plan) * tn_linear_sum_floats(plan);
}

size_t tn_linear_saved(const tarn_attention *plan)
{
    return inverses(plan) + sums_floats(plan, tn_linear_cut_of(plan).kept);
}

/* Of parts: causal, none starts from the sum over the last (of R: over the first). */
static struct tn_linear_sums sums_take(const tarn_attention *plan, struct tn_linear_cut cut,
                                       struct tn_arena *arena)
{
    const size_t count = cut.parts == 1 ? 0 : plan->causal ? cut.parts - 1 : cut.parts;

    return (struct tn_linear_sums){tn_arena_floats(arena, sums_floats(plan, count)), count};
}

/* Blocks as tasks where heads alone would leave a quarter of the threads idle. Results do not
 * depend on it. */
static size_t block_tasks(const tarn_attention *plan)
{
    const size_t rounds = tn_blocks(head_count(plan), plan->host.threads);
    const bool enough = 4 * head_count(plan) >= 3 * rounds * plan->host.threads;

    return plan->causal && !enough && plan->N > TN_LINEAR_BLOCK ? BLOCKS * plan->host.threads
                                                                : 0;
}

static struct tn_linear_work lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    const struct tn_linear_cut cut = tn_linear_cut_of(plan);
    struct tn_linear_work work = {.cut = cut, .blocks = block_tasks(plan)};

    work.tiles = tn_arena_alloc(arena, plan->host.threads, sizeof *work.tiles);
    work.S = sums_take(plan, cut, arena);
    work.R = sums_take(plan, cut, arena);
    if (work.blocks > 0) {
        work.ends = tn_arena_floats(arena, sums_floats(plan, work.blocks + 1));
        work.pending = tn_arena_floats(arena, head_count(plan) * plan->N);
    }
    for (size_t t = 0; t < plan->host.threads; t++) {
        const struct tn_linear_tiles tiles =
            tn_linear_tiles_lay_out(plan, packed_rows(plan, cut), arena);

        if (work.tiles)
            work.tiles[t] = tiles;
    }
    return work;
}

void tn_linear_work_size(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, arena);
}

struct tn_linear_work tn_linear_work_open(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    struct tn_arena arena = tn_arena_over(call->work);
    struct tn_linear_work work = lay_out(plan, &arena);

    work.call = call;
    if (call->saved)
        work.saved = (struct tn_linear_sums){call->saved + inverses(plan), work.cut.kept};
    return work;
}

/* ---- Tasks -------------------------------------------------------------- */

struct tn_linear_task tn_linear_task_open(const struct tn_linear_work *work, size_t index,
                                          size_t thread)
{
    const tarn_attention *const plan = work->call->plan;
    struct tn_linear_task task = {
        .work = work,
        .head = {.plan = plan,
                 .call = work->call,
                 .tiles = &work->tiles[thread],
                 .b = index / plan->H % plan->B,
                 .h = index % plan->H},
        .part = index / head_count(plan),
    };

    tn_linear_head_open(&task.head);
    return task;
}

size_t tn_linear_task_count(const struct tn_linear_work *work)
{
    return work->cut.parts * head_count(work->call->plan);
}

struct tn_linear_range tn_linear_range_of(size_t i, size_t each, size_t end)
{
    return (struct tn_linear_range){tn_min(end, i * each), tn_min(end, (i + 1) * each)};
}

struct tn_linear_range tn_linear_queries_of(const struct tn_linear_task *task)
{
    return tn_linear_range_of(task->part, task->work->cut.q_part, task->head.plan->N);
}

struct tn_linear_range tn_linear_keys_of(const struct tn_linear_task *task)
{
    return tn_linear_range_of(task->part, task->work->cut.k_part, task->head.plan->Nk);
}

float *tn_linear_sums_at(const struct tn_linear_task *task, struct tn_linear_sums sums,
                         size_t i)
{
    const struct tn_linear_head *const a = &task->head;
    const size_t head = (i * a->plan->B + a->b) * a->plan->H + a->h;

    return i < sums.count ? sums.at + head * tn_linear_sum_floats(a->plan) : NULL;
}

/* ---- Prefix sums -------------------------------------------------------- */

struct scan {
    const tarn_attention *plan;
    struct tn_linear_sums sums;
    bool suffix;
};

static void scan_head(void *arg, size_t head, size_t thread)
{
    const struct scan *const scan = arg;
    const size_t floats = tn_linear_sum_floats(scan->plan);
    const size_t stride = head_count(scan->plan) * floats, count = scan->sums.count;
    float *const first = scan->sums.at + head * floats;

    (void)thread;
    for (size_t i = 1; i < count; i++) {
        const size_t at = scan->suffix ? count - 1 - i : i;
        const size_t done = scan->suffix ? at + 1 : at - 1;

        scan->plan->host.kernels->axpy(first + at * stride, 1.0f, first + done * stride,
                                       floats);
    }
}

void tn_linear_scan(const struct tn_linear_work *work, struct tn_linear_sums sums, bool suffix)
{
    const tarn_attention *const plan = work->call->plan;
    struct scan scan = {plan, sums, suffix};

    tn_parallel(plan->host.threads, head_count(plan), scan_head, &scan);
}
