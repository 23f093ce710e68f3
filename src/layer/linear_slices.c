/* SPDX-License-Identifier: MIT */
/* linear_slices.c - linear attention of a slice of sequences that are cut: sums of it alone,
 * and passes that start from the sums of others. */
#include <string.h>

#include "layer/linear.h"

/* What a call sums or, of all slices, is given. */
struct slice {
    struct tn_linear_work work;
    float *sums;
    const float *keys, *queries; /* sums of all slices */
};

static size_t sum_of(const struct tn_linear_head *a)
{
    return (a->b * a->plan->H + a->h) * tn_linear_sum_floats(a->plan);
}

static void sum_slice_keys(void *arg, size_t index, size_t thread)
{
    const struct slice *const slice = arg;
    const struct tn_linear_task task = tn_linear_task_open(&slice->work, index, thread);
    const struct tn_linear_head *const a = &task.head;

    tn_linear_sum_load(a, a->tiles->S, a->tiles->z, NULL);
    tn_linear_sum_keys(a, 0, a->plan->N);
    tn_linear_sum_store(a, slice->sums + sum_of(a), a->tiles->S, a->tiles->z);
}

static void sum_slice_queries(void *arg, size_t index, size_t thread)
{
    const struct slice *const slice = arg;
    const struct tn_linear_task task = tn_linear_task_open(&slice->work, index, thread);
    const struct tn_linear_head *const a = &task.head;

    tn_linear_sum_load_t(a, a->tiles->Rt, NULL);
    tn_linear_sum_queries(a, 0, a->plan->N);
    tn_linear_sum_store_t(a, slice->sums + sum_of(a), a->tiles->Rt);
}

static void sum_slice(const struct tn_attention_call *call, float *sums, tn_work *task)
{
    struct slice slice = {.work = tn_linear_work_open(call), .sums = sums};

    tn_parallel(call->plan->host.threads, call->plan->B * call->plan->H, task, &slice);
}

static void of_keys(const struct tn_attention_call *call, float *sums)
{
    sum_slice(call, sums, sum_slice_keys);
}

static void of_queries(const struct tn_attention_call *call, float *sums)
{
    sum_slice(call, sums, sum_slice_queries);
}

static size_t sums_floats(const tarn_attention *plan)
{
    return plan->H * tn_linear_sum_floats(plan);
}

/* Far is read after the first block; near then has what the next positions add. */
static void to_state(const tarn_attention *plan, float *floats, const float *sum, size_t count)
{
    float *const near = tn_linear_near(plan, floats, 0), *const far =
                                                             tn_linear_far(plan, floats, 0);
    const size_t bytes = sums_floats(plan) * sizeof *sum;
    const bool in_far = far && count >= TN_LINEAR_BLOCK;

    memset(near, 0, bytes);
    if (far)
        memset(far, 0, bytes);
    memcpy(in_far ? far : near, sum, bytes);
}

static void to_gradient(const tarn_attention *plan, float *floats, const float *sum)
{
    float *const far = tn_linear_far(plan, floats, 0);

    memcpy(tn_linear_near(plan, floats, 0), sum, sums_floats(plan) * sizeof *sum);
    if (far)
        memcpy(far, sum, sums_floats(plan) * sizeof *sum);
}

static void run_slice(void *arg, size_t index, size_t thread)
{
    const struct slice *const slice = arg;
    const struct tn_linear_task task = tn_linear_task_open(&slice->work, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range queries = tn_linear_queries_of(&task);

    tn_linear_sum_load(a, a->tiles->S, a->tiles->z, slice->keys + sum_of(a));
    tn_linear_forward(a, queries.from, queries.to);
}

static void run_slice_back(void *arg, size_t index, size_t thread)
{
    const struct slice *const slice = arg;
    const struct tn_linear_task task = tn_linear_task_open(&slice->work, index, thread);
    const struct tn_linear_head *const a = &task.head;
    const struct tn_linear_range queries = tn_linear_queries_of(&task),
                                 keys = tn_linear_keys_of(&task);

    tn_linear_sum_load_t(a, a->tiles->St, slice->keys + sum_of(a));
    tn_linear_sum_load_t(a, a->tiles->Rt, NULL);
    tn_linear_query_gradients(a, queries.from, queries.to);
    tn_linear_sum_load_t(a, a->tiles->Rt, slice->queries + sum_of(a));
    tn_linear_key_gradients(a, keys.from, keys.to);
}

static void forward_slice(const struct tn_attention_call *call, const float *keys)
{
    struct slice slice = {.work = tn_linear_work_open(call), .keys = keys};

    tn_parallel(call->plan->host.threads, tn_linear_task_count(&slice.work), run_slice, &slice);
}

static void backward_slice(const struct tn_attention_call *call, const float *keys,
                           const float *queries)
{
    struct slice slice = {.work = tn_linear_work_open(call), .keys = keys, .queries = queries};

    tn_parallel(call->plan->host.threads, tn_linear_task_count(&slice.work), run_slice_back,
                &slice);
}

const struct tn_attention_sums tn_linear_slices = {
    .floats = sums_floats,
    .of_keys = of_keys,
    .of_queries = of_queries,
    .to_state = to_state,
    .to_gradient = to_gradient,
    .forward = forward_slice,
    .backward = backward_slice,
};
