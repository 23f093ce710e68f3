/* SPDX-License-Identifier: MIT */
/* attention_linear.c - linear attention: the passes of linear.h, put in order. */
#include <string.h>

#include "layer/linear.h"

static const tarn_option_info options[] = {
    [TN_LINEAR_EPS] = {"eps", "added to the denominator", 0.0, 1.0, 1e-6, false, NULL},
    [TN_LINEAR_NORMALISE] = {"normalise", "1: divide by the normaliser; 0: numerator only", 0,
                             1, 1, true, NULL},
    [TN_LINEAR_CHUNK] =
        {"chunk", "positions per chunk when causal; 0: one at a time, -1: chosen by width", -1,
         TN_LINEAR_SHORT_TILE, -1, true, NULL},
    {0},
};

/* Causal: numbers of the segments of a part, and the positions of one. */
static struct tn_linear_range segments_of(const struct tn_linear_task *task)
{
    const struct tn_linear_range positions = tn_linear_queries_of(task);
    const size_t each = task->work->cut.segment;

    return (struct tn_linear_range){positions.from / each, tn_blocks(positions.to, each)};
}

static struct tn_linear_range segment_of(const struct tn_linear_task *task, size_t segment)
{
    return tn_linear_range_of(segment, task->work->cut.segment, task->head.plan->N);
}

/* ---- Sums over parts ---------------------------------------------------- */

static void add_state0(const struct tn_linear_head *a, float *St)
{
    const float *const state = tn_call_state0(a->call, a->b);
    const float *const near = tn_linear_near(a->plan, state, a->h);
    const float *const far = tn_linear_far_of(a, state, tn_linear_count_at(a, 0));

    if (near)
        tn_linear_sum_add_t(a, St, near, 1.0f);
    if (far)
        tn_linear_sum_add_t(a, St, far, 1.0f);
}

static void sum_keys(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range keys = tn_linear_keys_of(&task);

    tn_linear_sum_load(a, a->tiles->S, a->tiles->z, NULL);
    tn_linear_sum_keys(a, keys.from, keys.to);
    tn_linear_sum_store(a, tn_linear_sums_at(&task, task.work->S, task.part), a->tiles->S,
                        a->tiles->z);
}

static void sum_parts(struct tn_linear_work *work)
{
    const tarn_attention *const plan = work->call->plan;

    tn_parallel(plan->host.threads, work->S.count * plan->B * plan->H, sum_keys, work);
    tn_linear_scan(work, work->S, false);
}

/* ---- Forward ------------------------------------------------------------ */

static void run_causal(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range segments = segments_of(&task);

    tn_linear_sum_load(a, a->tiles->S, a->tiles->z,
                       tn_linear_sums_at(&task, task.work->S, task.part - 1));
    for (size_t segment = segments.from; segment < segments.to; segment++) {
        const struct tn_linear_range positions = segment_of(&task, segment);
        float *const kept = tn_linear_sums_at(&task, task.work->saved, segment - 1);

        if (kept)
            tn_linear_sum_store(a, kept, a->tiles->S, a->tiles->z);
        tn_linear_forward(a, positions.from, positions.to);
    }
}

/* S and z over all keys: the last of the sums over parts, or formed here. */
static void start_from_all(const struct tn_linear_task *task)
{
    const struct tn_linear_head *const a = &task->head;
    const struct tn_linear_sums sums = task->work->S;

    tn_linear_sum_load(a, a->tiles->S, a->tiles->z,
                       tn_linear_sums_at(task, sums, sums.count - 1));
    if (sums.count == 0)
        tn_linear_sum_keys(a, 0, a->plan->Nk);
}

static void run_all(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range queries = tn_linear_queries_of(&task);
    float *const kept = tn_linear_sums_at(&task, task.work->saved, task.part);

    start_from_all(&task);
    if (kept)
        tn_linear_sum_store(a, kept, a->tiles->S, a->tiles->z);
    tn_linear_forward(a, queries.from, queries.to);
}

static void forward(const struct tn_attention_call *call)
{
    struct tn_linear_work work = tn_linear_work_open(call);

    if (tn_call_has_states(call)) {
        tn_linear_prefill(&work);
        return;
    }
    sum_parts(&work);
    tn_parallel(call->plan->host.threads, tn_linear_task_count(&work),
                call->plan->causal ? run_causal : run_all, &work);
}

/* ---- Gradients of states ------------------------------------------------ */

/* The gradient of state1 reaches the keys through the sums that they went to: near1 from the
 * last end of a block on, before it far1. Rt has it added, that of near1 first. */
static void add_dstate1(const struct tn_linear_head *a, bool near, float by)
{
    const float *const d = tn_call_dstate1(a->call, a->b);
    const float *const sum = near ? tn_linear_near(a->plan, d, a->h)
                                  : tn_linear_far_of(a, d, tn_linear_count_at(a, a->plan->N));

    if (sum)
        tn_linear_sum_add_t(a, a->tiles->Rt, sum, by);
}

/* Where near1 begins. */
static size_t near_from(const struct tn_linear_head *a)
{
    const size_t over = tn_linear_count_at(a, a->length) % TN_LINEAR_BLOCK;

    return over < a->length ? a->length - over : 0;
}

static void far_for_near(const struct tn_linear_head *a)
{
    add_dstate1(a, false, 1.0f);
    add_dstate1(a, true, -1.0f);
}

static void key_gradients(const struct tn_linear_head *a, struct tn_linear_range positions)
{
    const size_t near = near_from(a);

    if (!a->call->arrays->dstate1 || near <= positions.from || near > positions.to) {
        tn_linear_key_gradients(a, positions.from, positions.to);
        return;
    }
    tn_linear_key_gradients(a, near, positions.to);
    far_for_near(a);
    tn_linear_key_gradients(a, positions.from, near);
}

/* When Rt has gone over all positions it is the gradient of the sums before them: of near0, and
 * of far0, which is in far1 even if near0 still is in near1. */
static void store_dstate0(const struct tn_linear_head *a)
{
    float *const d = tn_call_dstate0(a->call, a->b);

    if (!d)
        return;
    float *const far = tn_linear_far(a->plan, d, a->h);

    tn_linear_sum_store_t(a, tn_linear_near(a->plan, d, a->h), a->tiles->Rt);
    if (near_from(a) == 0)
        far_for_near(a);
    if (far && tn_linear_count_at(a, 0) >= TN_LINEAR_BLOCK)
        tn_linear_sum_store_t(a, far, a->tiles->Rt);
    else if (far)
        memset(far, 0, tn_linear_sum_floats(a->plan) * sizeof(float));
}

/* ---- Backward, causal --------------------------------------------------- */

/* Of the parts but the first, which nothing is before. */
static void sum_queries(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_work *const work = arg;
    const size_t first_part = work->call->plan->B * work->call->plan->H;
    const struct tn_linear_task task = tn_linear_task_open(work, first_part + index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range queries = tn_linear_queries_of(&task);

    tn_linear_sum_load_t(a, a->tiles->Rt, NULL);
    tn_linear_sum_queries(a, queries.from, queries.to);
    tn_linear_sum_store_t(a, tn_linear_sums_at(&task, work->R, task.part - 1), a->tiles->Rt);
}

/* St at the start of a segment: state0 is in the sums that forward kept, not in those of
 * sum_parts(). */
static void start_segment(const struct tn_linear_task *task, size_t segment)
{
    const struct tn_linear_head *const a = &task->head;
    const struct tn_linear_work *const work = task->work;

    tn_linear_sum_load_t(
        a, a->tiles->St,
        tn_linear_sums_at(task, work->saved.count ? work->saved : work->S, segment - 1));
    if (segment == 0 || work->saved.count == 0)
        add_state0(a, a->tiles->St);
}

/* From the last segment of a part to the first, Rt going on from each to the one before. */
static void run_segments(void *arg, size_t index, size_t thread)
{
    struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range segments = segments_of(&task);

    a->keeps = task.work->cut.segment <= a->tiles->rows;
    if (a->keeps)
        tn_linear_head_clear(a, task.work->cut.segment);
    tn_linear_sum_load_t(a, a->tiles->Rt, tn_linear_sums_at(&task, task.work->R, task.part));
    add_dstate1(a, tn_linear_queries_of(&task).to >= near_from(a), 1.0f);
    for (size_t segment = segments.to; segment-- > segments.from;) {
        const struct tn_linear_range positions = segment_of(&task, segment);

        a->first = positions.from;
        a->then = segment > segments.from ? segment_of(&task, segment - 1).from : a->plan->N;
        start_segment(&task, segment);
        tn_linear_query_gradients(a, positions.from, positions.to);
        key_gradients(a, positions);
    }
    if (task.part == 0)
        store_dstate0(a);
}

static void backward_causal(struct tn_linear_work *work)
{
    const tarn_attention *const plan = work->call->plan;

    if (work->saved.count == 0)
        sum_parts(work);
    tn_parallel(plan->host.threads, work->R.count * plan->B * plan->H, sum_queries, work);
    tn_linear_scan(work, work->R, true);
    tn_parallel(plan->host.threads, tn_linear_task_count(work), run_segments, work);
}

/* ---- Backward, not causal ----------------------------------------------- */

static void run_queries(const struct tn_linear_task *task)
{
    const struct tn_linear_head *const a = &task->head;
    const struct tn_linear_range queries = tn_linear_queries_of(task);
    const float *const total = tn_linear_sums_at(task, task->work->saved, 0);

    if (total) {
        tn_linear_sum_load_t(a, a->tiles->St, total);
    } else {
        start_from_all(task);
        tn_linear_transpose_S(a);
    }
    tn_linear_sum_load_t(a, a->tiles->Rt, NULL);
    tn_linear_query_gradients(a, queries.from, queries.to);
}

static void run_both(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);

    run_queries(&task);
    tn_linear_key_gradients(&task.head, 0, task.head.plan->Nk);
}

static void run_part_queries(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);

    run_queries(&task);
    tn_linear_sum_store_t(&task.head, tn_linear_sums_at(&task, task.work->R, task.part),
                          task.head.tiles->Rt);
}

static void run_part_keys(void *arg, size_t index, size_t thread)
{
    const struct tn_linear_task task = tn_linear_task_open(arg, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_sums R = task.work->R;
    const struct tn_linear_range keys = tn_linear_keys_of(&task);

    tn_linear_sum_load_t(a, a->tiles->Rt, tn_linear_sums_at(&task, R, R.count - 1));
    tn_linear_key_gradients(a, keys.from, keys.to);
}

static void backward_all(struct tn_linear_work *work)
{
    const size_t threads = work->call->plan->host.threads, tasks = tn_linear_task_count(work);

    if (work->cut.parts == 1) {
        tn_parallel(threads, tasks, run_both, work);
        return;
    }
    if (work->saved.count == 0)
        sum_parts(work);
    tn_parallel(threads, tasks, run_part_queries, work);
    tn_linear_scan(work, work->R, false);
    tn_parallel(threads, tasks, run_part_keys, work);
}

static void backward(const struct tn_attention_call *call)
{
    struct tn_linear_work work = tn_linear_work_open(call);

    if (call->plan->causal)
        backward_causal(&work);
    else
        backward_all(&work);
}

/* ---- The row ------------------------------------------------------------ */

static double products(const tarn_attention *plan, size_t positions)
{
    return 2.0 * (double)plan->B * (double)plan->H * (double)positions * (double)plan->map.C *
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
    .saved = tn_linear_saved,
    .work = tn_linear_work_size,
    .forward = forward,
    .backward = backward,
    .state = tn_linear_state,
    .step_work = tn_linear_step_work,
    .step = tn_linear_step,
    .sums = &tn_linear_slices,
    .forward_flops = forward_flops,
    .backward_flops = backward_flops,
};
