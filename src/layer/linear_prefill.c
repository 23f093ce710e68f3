/* SPDX-License-Identifier: MIT */
/* linear_prefill.c - linear attention from states to states, many positions at a time.
 *
 * What single steps give, bit for bit (linear.h): near sums go position by position
 * through one block after another, where far sums are added. Near sums of a block do not depend
 * on other blocks; where heads are fewer than threads, blocks are tasks, and far sums are added
 * when all of them are done. */
#include "layer/linear.h"

#include <string.h>

/* ---- States ------------------------------------------------------------- */

float *tn_linear_far_of(const struct tn_linear_head *a, const float *state, size_t count)
{
    return count >= TN_LINEAR_BLOCK ? tn_linear_far(a->plan, state, a->h) : NULL;
}

size_t tn_linear_count_at(const struct tn_linear_head *a, size_t i)
{
    return tn_call_count(a->call, a->b) + tn_min(i, a->length);
}

static void start_near(const struct tn_linear_head *a, const float *near)
{
    tn_linear_sum_load(a, a->tiles->S, a->tiles->z, near);
}

static void start_far(const struct tn_linear_head *a, const float *far)
{
    tn_linear_sum_load(a, a->tiles->R, a->tiles->far_z, far);
}

static void store_near(const struct tn_linear_head *a, float *near)
{
    tn_linear_sum_store(a, near, a->tiles->S, a->tiles->z);
}

static void store_far(const struct tn_linear_head *a, float *far)
{
    tn_linear_sum_store(a, far, a->tiles->R, a->tiles->far_z);
}

static const float *near0(const struct tn_linear_head *a)
{
    return tn_linear_near(a->plan, tn_call_state0(a->call, a->b), a->h);
}

static const float *far0(const struct tn_linear_head *a)
{
    return tn_linear_far_of(a, tn_call_state0(a->call, a->b), tn_linear_count_at(a, 0));
}

static void store_state1(const struct tn_linear_head *a)
{
    float *const state1 = tn_call_state1(a->call, a->b);

    if (!state1)
        return;
    float *const far = tn_linear_far(a->plan, state1, a->h);

    store_near(a, tn_linear_near(a->plan, state1, a->h));
    if (far)
        store_far(a, far);
}

/* far += near, which then is zero. */
static void fold(const struct tn_linear_head *a)
{
    const size_t floats = a->sizes.C * a->sizes.S_ld, z_floats = a->sizes.C_ld;
    const struct tn_linear_tiles *const t = a->tiles;

    a->plan->host.kernels->add(t->R, t->R, t->S, floats);
    a->plan->host.kernels->add(t->far_z, t->far_z, t->z, z_floats);
    memset(t->S, 0, floats * sizeof(float));
    memset(t->z, 0, z_floats * sizeof(float));
}

/* ---- Blocks ------------------------------------------------------------- */

/* Where the block of position i ends; the last one, and what is past the length, at N. */
static size_t block_end(const struct tn_linear_head *a, size_t i)
{
    const size_t end = i + TN_LINEAR_BLOCK - tn_linear_count_at(a, i) % TN_LINEAR_BLOCK;

    return i < a->length && end <= a->length ? end : a->plan->N;
}

/* Whether near is added to far after position i - 1. */
static bool is_block_end(const struct tn_linear_head *a, size_t i)
{
    return i > 0 && i <= a->length && tn_linear_count_at(a, i) % TN_LINEAR_BLOCK == 0;
}

/* What a segment starts from, for backward: near, and what far adds to that. */
static void keep_start(const struct tn_linear_task *task, size_t segment, bool near, bool far)
{
    const struct tn_linear_head *const a = &task->head;
    float *const kept = tn_linear_sums_at(task, task->work->saved, segment - 1);

    if (near)
        store_near(a, kept);
    if (far)
        tn_linear_sum_add(a, kept, a->tiles->R, a->tiles->far_z);
}

/* Positions from .. to of one block, near and where there is any far, or only far, in pieces
 * that end where segments begin. */
static void run_block(const struct tn_linear_task *task, size_t from, size_t to, bool near)
{
    const struct tn_linear_head *const a = &task->head;
    const bool keeps = task->work->saved.count > 0;
    const size_t each = task->work->cut.segment;

    for (size_t i = from, end; i < to; i = end) {
        end = keeps ? tn_min(to, (i / each + 1) * each) : to;
        if (keeps && i > 0 && i % each == 0)
            keep_start(task, i / each, near, a->far);
        if (near)
            tn_linear_forward(a, i, end);
        else
            tn_linear_add_far(a, i, end);
    }
}

/* All blocks of a head, one after the other. */
static void run_blocks(void *arg, size_t index, size_t thread)
{
    struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    struct tn_linear_head *const a = &task.head;

    a->sizes.chunk = 0; /* as steps */
    start_near(a, near0(a));
    start_far(a, far0(a));
    for (size_t from = 0, to; from < a->plan->N; from = to) {
        to = block_end(a, from);
        a->far = tn_linear_count_at(a, from) >= TN_LINEAR_BLOCK;
        run_block(&task, from, to, true);
        if (is_block_end(a, to))
            fold(a);
    }
    store_state1(a);
}

/* ---- Blocks as tasks ----------------------------------------------------
 *
 * Some at once: near sums, then far sums from block to block, then these added. */

struct blocks {
    const struct tn_linear_work *work;
    size_t first; /* of those at once, in each sequence */
};

/* Of block i of those at once: near after it, and when all are there, far before it. The one
 * past them is what far continues from. */
static float *end_of(const struct tn_linear_task *task, size_t i)
{
    const struct tn_linear_work *const work = task->work;

    return tn_linear_sums_at(task, (struct tn_linear_sums){work->ends, work->blocks + 1}, i);
}

/* The first position of a block; N: there is none. */
static size_t block_from(const struct tn_linear_head *a, size_t block)
{
    size_t from = 0;

    for (size_t i = 0; i < block && from < a->plan->N; i++)
        from = block_end(a, from);
    return from;
}

static struct tn_linear_task block_open(const struct blocks *blocks, size_t index,
                                        size_t thread)
{
    struct tn_linear_task task = tn_linear_task_open(blocks->work, index, thread);
    struct tn_linear_head *const a = &task.head;

    a->sizes.chunk = 0; /* as steps */
    a->pending = blocks->work->pending + (a->b * a->plan->H + a->h) * a->plan->N;
    return task;
}

static void run_near(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    struct tn_linear_task task = block_open(blocks, index, thread);
    struct tn_linear_head *const a = &task.head;
    const size_t block = blocks->first + task.part, from = block_from(a, block);

    if (from == a->plan->N)
        return;
    if (tn_linear_count_at(a, from) < TN_LINEAR_BLOCK)
        a->pending = NULL; /* a short block does not wait for far sums */
    start_near(a, block == 0 ? near0(a) : NULL);
    run_block(&task, from, block_end(a, from), true);
    store_near(a, end_of(&task, task.part));
}

static void scan_far(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    const size_t count = blocks->work->blocks;
    const struct tn_linear_task task = tn_linear_task_open(blocks->work, index, thread);
    const struct tn_linear_head *const a = &task.head;
    size_t from = block_from(a, blocks->first);

    if (from == a->plan->N)
        return;
    start_far(a, blocks->first > 0 ? end_of(&task, count) : far0(a));
    for (size_t i = 0; i < count && from < a->plan->N; i++) {
        start_near(a, end_of(&task, i));
        store_far(a, end_of(&task, i));
        from = block_end(a, from);
        if (is_block_end(a, from))
            fold(a);
    }
    store_far(a, end_of(&task, count));
    if (from == a->plan->N)
        store_state1(a);
}

static void run_far(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    struct tn_linear_task task = block_open(blocks, index, thread);
    struct tn_linear_head *const a = &task.head;
    const size_t from = block_from(a, blocks->first + task.part);

    if (from == a->plan->N || tn_linear_count_at(a, from) < TN_LINEAR_BLOCK)
        return;
    a->far = true;
    start_far(a, end_of(&task, task.part));
    run_block(&task, from, block_end(a, from), false);
}

void tn_linear_prefill(struct tn_linear_work *work)
{
    const tarn_attention *const plan = work->call->plan;
    const size_t heads = plan->B * plan->H, all = plan->N / TN_LINEAR_BLOCK + 2;
    struct blocks blocks = {work, 0};

    if (work->blocks == 0)
        tn_parallel(plan->host.threads, heads, run_blocks, work);
    for (; work->blocks > 0 && blocks.first < all; blocks.first += work->blocks) {
        tn_parallel(plan->host.threads, work->blocks * heads, run_near, &blocks);
        tn_parallel(plan->host.threads, heads, scan_far, &blocks);
        tn_parallel(plan->host.threads, work->blocks * heads, run_far, &blocks);
    }
}
