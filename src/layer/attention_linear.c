/* SPDX-License-Identifier: MIT */
/* attention_linear.c - linear attention.                                          Paper
 * (4)-(20)
 *
 *   y_i = phi(q_i)^T S_i / (phi(q_i)^T z_i + eps)
 *   S_i = sum_j phi(k_j) v_j^T     z_i = sum_j phi(k_j)    over j <= i when causal, else all
 *
 * The passes over a group of heads are in linear_pass.c. Here they are spread over threads and
 * over segments of the sequence (linear_cut.h):
 *
 *   - A task takes a sequence and a group of heads through one segment after another. Causal,
 *     forward keeps the sums that each segment starts from; backward goes from the last segment
 *     to the first, over each from left to right (13) and then from right to left (14), (15),
 *     when its rows still are in a cache.
 *   - Where heads are few a segment is a task of its own. It starts from sums over other
 *     segments, which are formed first and cost an extra product.
 *
 * With states forward gives what single steps give, bit for bit (linear_state.h): near sums go
 * position by position through one block after another, where far sums are added. Near sums of
 * a block do not depend on other blocks; where heads are fewer than threads, blocks are tasks,
 * and far sums are added when all of them are done. Backward starts from the sums of state0 and
 * from the gradient of state1, but for that it is the same. */
#include <string.h>

#include "layer/linear_cut.h"
#include "layer/linear_state.h"
#include "layer/linear_sums.h"

enum { BLOCKS = 4 }; /* with a state, blocks of a thread at once, where they are tasks */

static const tarn_option_info options[] = {
    [TN_LINEAR_EPS] = {"eps", "added to the denominator", 0.0, 1.0, 1e-6, false, NULL},
    [TN_LINEAR_NORMALISE] = {"normalise", "1: divide by the normaliser; 0: numerator only", 0,
                             1, 1, true, NULL},
    [TN_LINEAR_CHUNK] =
        {"chunk", "positions per chunk when causal; 0: one at a time, -1: chosen by width", -1,
         TN_LINEAR_TILE, -1, true, NULL},
    {0},
};

/* ---- Memory ------------------------------------------------------------- */

static size_t head_count(const tarn_attention *plan)
{
    return plan->B * plan->H;
}

/* Heads that go together at most, leaving work for every thread. The size of the workspace
 * depends on it, results do not. */
static size_t group_max(const tarn_attention *plan, struct tn_linear_cut cut)
{
    const size_t tasks = head_count(plan) * (cut.shared ? cut.segments : 1);

    return tn_max(1, tn_min(tn_min(plan->H, TN_LINEAR_GROUP), tasks / plan->host.threads));
}

/* The inverse of one denominator per position, then sums. */
static size_t inverses(const tarn_attention *plan)
{
    return plan->options.value[TN_LINEAR_NORMALISE] != 0.0 ? head_count(plan) * plan->N : 0;
}

static size_t saved(const tarn_attention *plan)
{
    return inverses(plan) +
           tn_linear_cut_of(plan).kept * head_count(plan) * tn_linear_sizes_of(plan).kept;
}

/* Sums of all heads, `count` of each: the i-th of all heads, then the next. */
struct sums {
    float *at;
    size_t count;
};

/* Everything a call works in. */
struct work {
    const struct tn_attention_call *call;
    struct tn_linear_cut cut;
    size_t group, groups;          /* heads of a group, groups of a sequence */
    struct tn_linear_tiles *tiles; /* one per thread */
    struct sums saved;             /* St, from forward to backward */
    struct sums S, R;              /* St and Rt between tasks */
    float *slopes;                 /* between tasks, of all heads */
    size_t slopes_ld;              /* of a head: N, or a segment, or none */
    size_t blocks;                 /* at once, where blocks are tasks; else 0 */
    float *ends;                   /* blocks + 1 of all heads, see run_near() */
    float *sums;                   /* denominators of these blocks, of all heads */
};

/* Blocks as tasks where heads alone would leave a quarter of the threads idle. Results do not
 * depend on it. */
static size_t block_tasks(const tarn_attention *plan)
{
    const size_t rounds = tn_blocks(head_count(plan), plan->host.threads);
    const bool enough = 4 * head_count(plan) >= 3 * rounds * plan->host.threads;

    return plan->causal && !enough && plan->N > TN_LINEAR_BLOCK ? BLOCKS * plan->host.threads
                                                                : 0;
}

/* Between tasks: causal, no segment starts from the sum over the last (of R: over the
 * first). */
static struct sums sums_take(const tarn_attention *plan, struct tn_linear_cut cut,
                             struct tn_arena *arena)
{
    const size_t count = !cut.shared ? 0 : plan->causal ? cut.segments - 1 : cut.segments;
    const size_t floats = count * head_count(plan) * tn_linear_sizes_of(plan).kept;

    return (struct sums){tn_arena_floats(arena, floats), count};
}

static struct work lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    const struct tn_linear_cut cut = tn_linear_cut_of(plan);
    const size_t group = group_max(plan, cut);
    const bool has_slopes = plan->causal && inverses(plan) > 0;
    const size_t slopes = !has_slopes ? 0 : cut.shared ? plan->N : cut.q_each;
    struct work work = {.cut = cut, .slopes_ld = slopes};

    work.tiles = tn_arena_take(arena, plan->host.threads, sizeof *work.tiles);
    work.S = sums_take(plan, cut, arena);
    work.R = sums_take(plan, cut, arena);
    work.slopes = tn_arena_floats(arena, cut.shared ? head_count(plan) * slopes : 0);
    work.blocks = block_tasks(plan);
    if (work.blocks > 0) {
        const size_t sums = (work.blocks + 1) * tn_linear_sum_floats(plan);

        work.ends = tn_arena_floats(arena, sums * head_count(plan));
        /* Of a forward pass; the slopes are a backward pass's. */
        work.sums = cut.shared && has_slopes
                        ? work.slopes
                        : tn_arena_floats(arena, plan->N * head_count(plan));
    }
    for (size_t t = 0; t < plan->host.threads; t++) {
        const struct tn_linear_tiles tiles =
            tn_linear_tiles_take(plan, group, cut.shared ? 0 : slopes, arena);

        if (work.tiles)
            work.tiles[t] = tiles;
    }
    return work;
}

static void work_size(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, arena);
}

/* Heads go together only where they lie together. */
static struct work work_open(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const tarn_input q = call->arrays->in[TN_QUERY];
    struct tn_arena arena = tn_arena_over(call->work);
    struct work work = lay_out(plan, &arena);

    work.call = call;
    work.group =
        tn_magnitude(q.head) < tn_magnitude(q.position) ? group_max(plan, work.cut) : 1;
    work.groups = tn_blocks(plan->H, work.group);
    if (call->saved && work.cut.kept)
        work.saved = (struct sums){call->saved + inverses(plan), work.cut.kept};
    return work;
}

/* ---- Tasks: segment by segment, sequence by sequence, group by group ---- */

/* A group of heads with the segments from .. to: one of them where they are shared, else
 * all. */
struct task {
    const struct work *work;
    struct tn_linear_group group;
    size_t from, to;
};

static struct task task_open(const struct work *work, size_t index, size_t thread)
{
    const tarn_attention *const plan = work->call->plan;
    const struct tn_linear_cut cut = work->cut;
    const size_t segment = index / (plan->B * work->groups);
    const size_t b = index / work->groups % plan->B, h = index % work->groups * work->group;
    const struct tn_linear_tiles *const tiles = &work->tiles[thread];
    float *const slopes =
        cut.shared ? work->slopes + (b * plan->H + h) * work->slopes_ld : tiles->slopes;
    struct task task = {
        .work = work,
        .group = {.plan = plan,
                  .call = work->call,
                  .tiles = tiles,
                  .slopes = {slopes, work->slopes_ld, 0},
                  .b = b,
                  .h = h,
                  .heads = tn_min(work->group, plan->H - h)},
        .from = segment,
        .to = cut.shared ? segment + 1 : cut.segments,
    };

    tn_linear_group_open(&task.group);
    return task;
}

static struct tn_linear_span span_of(const struct task *task, size_t segment)
{
    return tn_linear_span_of(task->group.plan, task->work->cut, segment);
}

static float *sums_of(const struct task *task, struct sums sums, size_t i)
{
    const struct tn_linear_group *const a = &task->group;

    return sums.at + ((i * a->plan->B + a->b) * a->plan->H + a->h) * a->sizes.kept;
}

/* Which of the kept sums is that before a segment, or that of R over it. Causal, the first
 * segment has none: its number wraps and is none of them. */
static size_t sum_number(const struct task *task, size_t segment)
{
    return task->group.plan->causal ? segment - 1 : segment;
}

/* ---- States ------------------------------------------------------------- */

/* Near and far of the group in the floats of a state or of its gradient; NULL: none, and far
 * too where it is not in use yet, after `count` positions. */
static float *near_of(const struct tn_linear_group *a, const float *state)
{
    return state ? tn_linear_near(a->plan, (float *)(uintptr_t)state, a->h) : NULL;
}

static float *far_of(const struct tn_linear_group *a, const float *state, size_t count)
{
    return state && count >= TN_LINEAR_BLOCK
               ? tn_linear_far(a->plan, (float *)(uintptr_t)state, a->h)
               : NULL;
}

/* Positions of the sequence before position i of the call. */
static size_t count_at(const struct tn_linear_group *a, size_t i)
{
    return tn_call_count(a->call, a->b) + tn_min(i, a->length);
}

/* Where the block of position i ends; the last one, and what is past the length, at N. */
static size_t block_end(const struct tn_linear_group *a, size_t i)
{
    const size_t end = i + TN_LINEAR_BLOCK - count_at(a, i) % TN_LINEAR_BLOCK;

    return i < a->length && end <= a->length ? end : a->plan->N;
}

/* Whether near is added to far after position i - 1. */
static bool is_block_end(const struct tn_linear_group *a, size_t i)
{
    return i > 0 && i <= a->length && count_at(a, i) % TN_LINEAR_BLOCK == 0;
}

static void add_state0(const struct tn_linear_group *a)
{
    const float *const state = tn_call_state0(a->call, a->b);
    const float *const near = near_of(a, state), *const far = far_of(a, state, count_at(a, 0));

    if (near)
        tn_linear_sum_add(a, a->tiles->St, near, 1.0f);
    if (far)
        tn_linear_sum_add(a, a->tiles->St, far, 1.0f);
}

/* ---- Starts of segments ------------------------------------------------- */

/* St for the start of a segment: causal, the sum over those before it, else the total; summed
 * here if it is not among `sums`. */
static void start_keys(const struct task *task, struct sums sums, size_t segment)
{
    const struct tn_linear_group *const a = &task->group;
    const size_t i = a->plan->causal ? sum_number(task, segment) : sums.count - 1;

    tn_linear_sums_load(a, a->tiles->St, i < sums.count ? sums_of(task, sums, i) : NULL);
    if (a->plan->causal && segment == 0)
        add_state0(a);
    if (!a->plan->causal && sums.count == 0)
        tn_linear_sum_keys(a, span_of(task, segment));
}

/* Rt for the end of a segment: causal, the sum over those behind it, else the total. */
static void start_queries(const struct task *task, size_t segment)
{
    const struct tn_linear_group *const a = &task->group;
    const struct sums sums = task->work->R;
    const size_t i = a->plan->causal ? segment : sums.count - 1;

    tn_linear_sums_load(a, a->tiles->Rt, i < sums.count ? sums_of(task, sums, i) : NULL);
}

/* ---- Forward ------------------------------------------------------------ */

static void sum_keys(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);
    const struct tn_linear_group *const a = &task.group;

    tn_linear_sums_load(a, a->tiles->St, NULL);
    if (a->plan->causal && task.from == 0)
        add_state0(a);
    tn_linear_sum_keys(a, span_of(&task, task.from));
    tn_linear_sums_keep(a, a->tiles->St, sums_of(&task, task.work->S, task.from));
}

static void scan_keys(void *arg, size_t head, size_t thread)
{
    const struct work *const work = arg;

    (void)thread;
    tn_linear_sums_scan(work->call->plan, work->S.at, head, work->S.count, false);
}

static void sum_all_keys(struct work *work)
{
    const tarn_attention *const plan = work->call->plan;

    tn_parallel(plan->host.threads, work->S.count * plan->B * work->groups, sum_keys, work);
    tn_parallel(plan->host.threads, head_count(plan), scan_keys, work);
}

static void run_forward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);
    const struct tn_linear_group *const a = &task.group;
    const struct sums saved = task.work->saved;

    start_keys(&task, task.work->S, task.from);
    tn_linear_turn_St(a);
    for (size_t segment = task.from; segment < task.to; segment++) {
        const size_t i = sum_number(&task, segment);

        if (i < saved.count) {
            tn_linear_turn_S(a);
            tn_linear_sums_keep(a, a->tiles->St, sums_of(&task, saved, i));
        }
        tn_linear_forward(a, span_of(&task, segment));
    }
}

static size_t task_count(const struct work *work)
{
    return (work->cut.shared ? work->cut.segments : 1) * work->call->plan->B * work->groups;
}

/* ---- Forward with states ------------------------------------------------ */

static void start_near(const struct tn_linear_group *a, const float *near)
{
    tn_linear_sum_load(a, a->tiles->S, a->tiles->z, near);
}

static void start_far(const struct tn_linear_group *a, const float *far)
{
    tn_linear_sum_load(a, a->tiles->R, a->tiles->far_z, far);
}

static void store_state(const struct tn_linear_group *a, float *state)
{
    float *const far = tn_linear_far(a->plan, state, a->h);

    tn_linear_sum_store(a, tn_linear_near(a->plan, state, a->h), a->tiles->S, a->tiles->z);
    if (far)
        tn_linear_sum_store(a, far, a->tiles->R, a->tiles->far_z);
}

/* What the segment that begins at position i starts from, for backward; with `far` only what
 * far adds to that. */
static void keep_start(const struct task *task, size_t i, bool near, bool far)
{
    const struct tn_linear_group *const a = &task->group;
    float *const kept =
        sums_of(task, task->work->saved, sum_number(task, i / task->work->cut.q_each));

    if (near) {
        tn_linear_turn_S(a);
    } else {
        tn_linear_sums_load(a, a->tiles->St, kept);
    }
    if (far)
        tn_linear_turn_far(a);
    tn_linear_sums_keep(a, a->tiles->St, kept);
}

/* Positions from .. to of one block, near or far or both, in pieces that end where segments
 * begin. */
static void run_block(const struct task *task, size_t from, size_t to, bool near)
{
    const struct tn_linear_group *const a = &task->group;
    const size_t each = task->work->cut.q_each;

    for (size_t i = from, end; i < to; i = end) {
        end = task->work->saved.count ? tn_min(to, (i / each + 1) * each) : to;
        const struct tn_linear_span span = {i, end, i, end};

        if (task->work->saved.count && i > 0 && i % each == 0)
            keep_start(task, i, near, a->far);
        if (near)
            tn_linear_forward(a, span);
        else
            tn_linear_add_far(a, span);
    }
}

/* All blocks of a group of heads, one after the other. */
static void run_blocks(void *arg, size_t index, size_t thread)
{
    struct task task = task_open(arg, index, thread);
    struct tn_linear_group *const a = &task.group;
    const float *const state0 = tn_call_state0(a->call, a->b);
    float *const state1 = tn_call_state1(a->call, a->b);

    a->sizes.chunk = 0; /* as steps */
    start_near(a, near_of(a, state0));
    start_far(a, far_of(a, state0, count_at(a, 0)));
    for (size_t from = 0, to; from < a->plan->N; from = to) {
        to = block_end(a, from);
        a->far = count_at(a, from) >= TN_LINEAR_BLOCK;
        run_block(&task, from, to, true);
        if (is_block_end(a, to))
            tn_linear_fold(a);
    }
    if (state1)
        store_state(a, state1);
}

/* Blocks as tasks, some at once: near sums, then far sums from block to block, then these
 * added. */
struct blocks {
    const struct work *work;
    size_t first; /* of those at once, in each sequence */
};

/* Of block i of those at once: near after it, and when all are there, far before it. The one
 * past them is what far goes on from. */
static float *end_of(const struct work *work, size_t i, const struct tn_linear_group *a)
{
    const tarn_attention *const plan = a->plan;

    return work->ends + ((i * plan->B + a->b) * plan->H + a->h) * tn_linear_sum_floats(plan);
}

/* The first position of a block; N: there is none. */
static size_t block_from(const struct tn_linear_group *a, size_t block)
{
    size_t from = 0;

    for (size_t i = 0; i < block && from < a->plan->N; i++)
        from = block_end(a, from);
    return from;
}

static struct task block_open(const struct blocks *blocks, size_t index, size_t thread)
{
    const struct work *const work = blocks->work;
    const size_t positions = work->call->plan->N; /* the last block may be that long */
    struct task task = task_open(work, index % (work->call->plan->B * work->groups), thread);
    struct tn_linear_group *const a = &task.group;

    a->sizes.chunk = 0; /* as steps */
    a->sums = (struct tn_linear_numbers){work->sums + (a->b * a->plan->H + a->h) * positions,
                                         positions, block_from(a, blocks->first)};
    return task;
}

static void run_near(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    const struct work *const work = blocks->work;
    const size_t i = index / (work->call->plan->B * work->groups), block = blocks->first + i;
    struct task task = block_open(blocks, index, thread);
    struct tn_linear_group *const a = &task.group;
    const size_t from = block_from(a, block);

    if (from == a->plan->N)
        return;
    if (count_at(a, from) < TN_LINEAR_BLOCK)
        a->sums.at = NULL; /* there is no far to wait for */
    start_near(a, block == 0 ? near_of(a, tn_call_state0(a->call, a->b)) : NULL);
    run_block(&task, from, block_end(a, from), true);
    tn_linear_sum_store(a, end_of(work, i, a), a->tiles->S, a->tiles->z);
}

static void scan_far(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    const struct work *const work = blocks->work;
    const struct task task = task_open(work, index, thread);
    const struct tn_linear_group *const a = &task.group;
    const float *const state0 = tn_call_state0(a->call, a->b);
    float *const state1 = tn_call_state1(a->call, a->b), *const on =
                                                             end_of(work, work->blocks, a);
    size_t from = block_from(a, blocks->first);

    if (from == a->plan->N)
        return;
    start_far(a, blocks->first > 0 ? on : far_of(a, state0, count_at(a, 0)));
    for (size_t i = 0; i < work->blocks && from < a->plan->N; i++) {
        start_near(a, end_of(work, i, a));
        tn_linear_sum_store(a, end_of(work, i, a), a->tiles->R, a->tiles->far_z);
        from = block_end(a, from);
        if (is_block_end(a, from))
            tn_linear_fold(a);
    }
    tn_linear_sum_store(a, on, a->tiles->R, a->tiles->far_z);
    if (state1 && from == a->plan->N)
        store_state(a, state1);
}

static void run_far(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    const struct work *const work = blocks->work;
    const size_t i = index / (work->call->plan->B * work->groups);
    struct task task = block_open(blocks, index, thread);
    struct tn_linear_group *const a = &task.group;
    const size_t from = block_from(a, blocks->first + i);

    if (from == a->plan->N || count_at(a, from) < TN_LINEAR_BLOCK)
        return;
    a->far = true;
    start_far(a, end_of(work, i, a));
    run_block(&task, from, block_end(a, from), false);
}

static void forward_states(struct work *work)
{
    const tarn_attention *const plan = work->call->plan;
    const size_t groups = plan->B * work->groups, all = plan->N / TN_LINEAR_BLOCK + 2;
    struct blocks blocks = {work, 0};

    if (work->blocks == 0)
        tn_parallel(plan->host.threads, groups, run_blocks, work);
    for (; work->blocks > 0 && blocks.first < all; blocks.first += work->blocks) {
        tn_parallel(plan->host.threads, work->blocks * groups, run_near, &blocks);
        tn_parallel(plan->host.threads, groups, scan_far, &blocks);
        tn_parallel(plan->host.threads, work->blocks * groups, run_far, &blocks);
    }
}

static void forward(const struct tn_attention_call *call)
{
    struct work work = work_open(call);

    if (tn_call_has_states(call)) {
        forward_states(&work);
        return;
    }
    if (work.cut.shared)
        sum_all_keys(&work);
    tn_parallel(call->plan->host.threads, task_count(&work), run_forward, &work);
}

/* ---- Backward ----------------------------------------------------------- */

static struct sums known_keys(const struct work *work)
{
    return work->saved.count ? work->saved : work->S;
}

static void run_queries(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);
    const struct tn_linear_group *const a = &task.group;
    const size_t i = sum_number(&task, task.from);
    const bool sums = i < task.work->R.count;

    start_keys(&task, known_keys(task.work), task.from);
    tn_linear_sums_load(a, a->tiles->Rt, NULL);
    tn_linear_query_gradients(a, span_of(&task, task.from), sums);
    if (sums)
        tn_linear_sums_keep(a, a->tiles->Rt, sums_of(&task, task.work->R, i));
}

static void scan_queries(void *arg, size_t head, size_t thread)
{
    const struct work *const work = arg;

    (void)thread;
    tn_linear_sums_scan(work->call->plan, work->R.at, head, work->R.count,
                        work->call->plan->causal);
}

/* The gradient of state1 reaches the keys through the sums that they went to: near1 from the
 * last end of a block on, before it far1. Rt has it added, that of near1 first. */
static void add_dstate1(const struct tn_linear_group *a, bool near, float by)
{
    const float *const d = tn_call_dstate1(a->call, a->b);
    const float *const sum = near ? near_of(a, d) : far_of(a, d, count_at(a, a->plan->N));

    if (sum)
        tn_linear_sum_add(a, a->tiles->Rt, sum, by);
}

/* Where near1 begins. */
static size_t near_from(const struct tn_linear_group *a)
{
    const size_t over = count_at(a, a->length) % TN_LINEAR_BLOCK;

    return over < a->length ? a->length - over : 0;
}

static void far_for_near(const struct tn_linear_group *a)
{
    add_dstate1(a, false, 1.0f);
    add_dstate1(a, true, -1.0f);
}

static void key_gradients(const struct task *task, struct tn_linear_span span)
{
    const struct tn_linear_group *const a = &task->group;
    const size_t from = near_from(a);
    struct tn_linear_span late = span;

    if (!a->call->arrays->dstate1 || from <= span.k_from || from > span.k_to) {
        tn_linear_key_gradients(a, span);
        return;
    }
    late.k_from = span.k_to = from;
    tn_linear_key_gradients(a, late);
    far_for_near(a);
    tn_linear_key_gradients(a, span);
}

/* When Rt has gone over all positions it is the gradient of the sums before them: of near0, and
 * of far0, which is in far1 even if near0 still is in near1. */
static void store_dstate0(const struct tn_linear_group *a)
{
    float *const d = tn_call_dstate0(a->call, a->b);

    if (!d)
        return;
    float *const far = tn_linear_far(a->plan, d, a->h);

    tn_linear_sum_take(a, near_of(a, d), a->tiles->Rt);
    if (near_from(a) == 0)
        far_for_near(a);
    if (far && count_at(a, 0) >= TN_LINEAR_BLOCK)
        tn_linear_sum_take(a, far, a->tiles->Rt);
    else if (far)
        memset(far, 0, a->heads * tn_linear_sum_floats(a->plan) * sizeof(float));
}

static void run_keys(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);
    const struct tn_linear_group *const a = &task.group;
    const struct tn_linear_span span = span_of(&task, task.from);

    start_queries(&task, task.from);
    if (a->plan->causal)
        add_dstate1(a, span.k_to >= near_from(a), 1.0f);
    key_gradients(&task, span);
    if (a->plan->causal && task.from == 0)
        store_dstate0(a);
}

/* From the last segment to the first, Rt going on from each to the one before. */
static void run_backward(void *arg, size_t index, size_t thread)
{
    struct task task = task_open(arg, index, thread);
    struct tn_linear_group *const a = &task.group;

    tn_linear_sums_load(a, a->tiles->Rt, NULL);
    if (a->plan->causal)
        add_dstate1(a, true, 1.0f);
    for (size_t segment = task.to; segment-- > task.from;) {
        const struct tn_linear_span span = span_of(&task, segment);

        a->slopes.from = span.q_from;
        start_keys(&task, known_keys(task.work), segment);
        tn_linear_query_gradients(a, span, !a->plan->causal);
        key_gradients(&task, span);
    }
    if (a->plan->causal)
        store_dstate0(a);
}

static void backward(const struct tn_attention_call *call)
{
    struct work work = work_open(call);
    const size_t threads = call->plan->host.threads, tasks = task_count(&work);

    if (!work.cut.shared) {
        tn_parallel(threads, tasks, run_backward, &work);
        return;
    }
    if (work.saved.count == 0)
        sum_all_keys(&work);
    tn_parallel(threads, tasks, run_queries, &work);
    tn_parallel(threads, head_count(call->plan), scan_queries, &work);
    tn_parallel(threads, tasks, run_keys, &work);
}

/* ---- The row ------------------------------------------------------------ */

static double products(const tarn_attention *plan, size_t positions)
{
    return 2.0 * (double)head_count(plan) * (double)positions * (double)plan->map.C *
           (double)plan->M;
}

/* S and its use. */
static double forward_flops(const tarn_attention *plan)
{
    return products(plan, plan->Nk) + products(plan, plan->N);
}

/* dq, dk, dv and the sum over queries; causal attention has to form S again. */
static double backward_flops(const tarn_attention *plan)
{
    return 2.0 * products(plan, plan->N) + 2.0 * products(plan, plan->Nk) +
           (plan->causal ? products(plan, plan->Nk) : 0.0);
}

extern const struct tn_attention_kind tn_attention_linear;
const struct tn_attention_kind tn_attention_linear = {
    .about = {"linear", "phi(q) (phi(k)^T v), linear in the length, eq. (4)-(20)", options},
    .has_map = true,
    .inputs = tn_query_key_value,
    .saved = saved,
    .work = work_size,
    .forward = forward,
    .backward = backward,
    .state = tn_linear_state,
    .step_work = tn_linear_step_work,
    .step = tn_linear_step,
    .forward_flops = forward_flops,
    .backward_flops = backward_flops,
};
