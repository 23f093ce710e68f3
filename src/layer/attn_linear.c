/* SPDX-License-Identifier: MIT */
/* attn_linear.c - linear attention.                                          Paper (4)-(20)
 *
 *   y_i = phi(q_i)^T S_i / (phi(q_i)^T z_i + eps)
 *   S_i = sum_j phi(k_j) v_j^T     z_i = sum_j phi(k_j)    over j <= i when causal, else all
 *
 * The passes over a group of heads are in linear_pass.c. Here they are spread over threads:
 * over sequences and groups of heads, and where heads are few, over segments of the sequence
 * too. A segment starts from sums over other segments, which are formed first and cost an extra
 * product; whether there are segments depends on the sizes and never on the number of threads,
 * which keeps results equal to the last bit. */
#include "layer/linear_pass.h"
#include "layer/linear_step.h"

enum {
    HEADS_ENOUGH = 8, /* sequences x heads that need no segments */
    SEGMENT_MIN = 512 /* positions */
};

static const tarn_option_info options[] = {
    [TN_LINEAR_EPS] = {"eps", "added to the denominator", 0.0, 1.0, 1e-6, false, NULL},
    [TN_LINEAR_NORMALISE] = {"normalise", "0: the numerator alone", 0, 1, 1, true, NULL},
    [TN_LINEAR_CHUNK] = {"chunk",
                         "positions per chunk when causal; 0: one by one, -1: by width", -1,
                         TN_LINEAR_TILE, -1, true, NULL},
    {0},
};

/* ---- Sizes -------------------------------------------------------------- */

static size_t head_count(const tarn_attention *plan)
{
    return plan->B * plan->H;
}

static size_t segment_count(const tarn_attention *plan)
{
    const size_t heads = head_count(plan), positions = tn_max(plan->N, plan->Nk);

    if (heads >= HEADS_ENOUGH)
        return 1;
    return tn_max(1, tn_min(TN_LINEAR_SEGMENTS / heads, positions / SEGMENT_MIN));
}

/* Heads that go together at most, leaving work for every thread. The size of the workspace depends
 * on it, results do not.
 * */
static size_t group_max(const tarn_attention *plan)
{
    const size_t tasks = head_count(plan) * segment_count(plan);

    return tn_max(1, tn_min(tn_min(plan->H, TN_LINEAR_GROUP), tasks / plan->threads));
}

/* The inverse of one denominator per position. */
static size_t saved(const tarn_attention *plan)
{
    return plan->options.value[TN_LINEAR_NORMALISE] != 0.0 ? head_count(plan) * plan->N : 0;
}

/* ---- Memory ------------------------------------------------------------- */

/* Everything a call works in. With one segment a state belongs to a thread and a head of its
 * group, with several to a segment and a head. */
struct work {
    const struct tn_attention_call *call;
    size_t segments;
    size_t group, groups;          /* heads of a group, groups of a sequence */
    struct tn_linear_tiles *tiles; /* one per thread */
    struct tn_linear_state *states;
    float *slopes; /* of the denominators, one per position, from pass to pass of backward */
};

static struct work lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    const size_t segments = segment_count(plan), group = group_max(plan);
    const size_t states = segments == 1 ? plan->threads * group : segments * head_count(plan);
    struct work work = {.segments = segments};

    work.tiles = tn_arena_take(arena, plan->threads, sizeof *work.tiles);
    work.states = tn_arena_take(arena, states, sizeof *work.states);
    work.slopes = tn_arena_floats(arena, saved(plan));
    for (size_t t = 0; t < plan->threads; t++) {
        const struct tn_linear_tiles tiles = tn_linear_tiles_take(plan, group, arena);

        if (work.tiles)
            work.tiles[t] = tiles;
    }
    for (size_t s = 0; s < states; s++) {
        const struct tn_linear_state state = tn_linear_state_take(plan, arena);

        if (work.states)
            work.states[s] = state;
    }
    return work;
}

static void work_size(const tarn_attention *plan, struct tn_arena *arena)
{
    struct tn_arena step = *arena;

    lay_out(plan, arena);
    tn_linear_step_work(plan, &step); /* in the same place: a call is one or the other */
    arena->used = tn_max(arena->used, step.used);
}

/* Heads go together only where they lie together. */
static struct work work_open(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const tarn_input q = call->arrays->q;
    struct tn_arena arena = tn_arena_over(call->work);
    struct work work = lay_out(plan, &arena);

    work.call = call;
    work.group = tn_magnitude(q.head) < tn_magnitude(q.position) ? group_max(plan) : 1;
    work.groups = tn_blocks(plan->H, work.group);
    return work;
}

/* ---- Tasks: segment by segment, sequence by sequence, group by group ---- */

struct task {
    struct tn_linear_group group;
    struct tn_linear_span span;
};

static struct tn_linear_span span_of(const struct work *work, size_t segment)
{
    const tarn_attention *const plan = work->call->plan;

    /* Whole tiles, but for the last. */
    const size_t q_each = tn_round_up(tn_blocks(plan->N, work->segments), TN_LINEAR_TILE);
    const size_t k_each = tn_round_up(tn_blocks(plan->Nk, work->segments), TN_LINEAR_TILE);

    return (struct tn_linear_span){
        .q_from = tn_min(plan->N, segment * q_each),
        .q_to = tn_min(plan->N, (segment + 1) * q_each),
        .k_from = tn_min(plan->Nk, segment * k_each),
        .k_to = tn_min(plan->Nk, (segment + 1) * k_each),
    };
}

static struct task task_open(const struct work *work, size_t index, size_t thread)
{
    const tarn_attention *const plan = work->call->plan;
    const size_t segment = index / (plan->B * work->groups);
    const size_t b = index / work->groups % plan->B, h = index % work->groups * work->group;
    const size_t state =
        work->segments == 1 ? thread * group_max(plan) : (segment * plan->B + b) * plan->H + h;
    struct task task = {
        .group = {.plan = plan,
                  .call = work->call,
                  .tiles = &work->tiles[thread],
                  .states = &work->states[state],
                  .slopes = work->slopes,
                  .b = b,
                  .h = h,
                  .heads = tn_min(work->group, plan->H - h)},
        .span = span_of(work, segment),
    };

    tn_linear_group_open(&task.group);
    return task;
}

static void sum_forward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_clear(&task.group);
    tn_linear_sum(&task.group, task.span);
}

static void sum_backward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_clear(&task.group);
    tn_linear_sum_keys(&task.group, task.span);
    tn_linear_sum_queries(&task.group, task.span);
}

static void scan_forward(void *arg, size_t head, size_t thread)
{
    const struct work *const work = arg;

    (void)thread;
    tn_linear_scan_forward(work->call->plan, work->states + head, work->segments,
                           head_count(work->call->plan));
}

static void scan_backward(void *arg, size_t head, size_t thread)
{
    const struct work *const work = arg;

    (void)thread;
    tn_linear_scan_backward(work->call->plan, work->states + head, work->segments,
                            head_count(work->call->plan));
}

static void run_forward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_forward(&task.group, task.span);
}

static void run_backward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_query_gradients(&task.group, task.span, true);
    tn_linear_key_gradients(&task.group, task.span);
}

/* The only segment: causal passes start from zero and sum as they go, others sum first. */
static void whole_forward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_clear(&task.group);
    if (!task.group.plan->causal)
        tn_linear_sum(&task.group, task.span);
    tn_linear_forward(&task.group, task.span);
}

static void whole_backward(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    tn_linear_clear(&task.group);
    if (!task.group.plan->causal)
        tn_linear_sum_keys(&task.group, task.span);
    tn_linear_query_gradients(&task.group, task.span, false);
    tn_linear_key_gradients(&task.group, task.span);
}

/* Sums each segment, gives each the sums it starts from, runs each. */
static void run(const struct tn_attention_call *call, tn_task *whole, tn_task *sum,
                tn_task *scan, tn_task *part)
{
    struct work work = work_open(call);
    const size_t threads = call->plan->threads;
    const size_t tasks = work.segments * call->plan->B * work.groups;

    if (work.segments == 1) {
        tn_parallel(threads, tasks, whole, &work);
        return;
    }
    tn_parallel(threads, tasks, sum, &work);
    tn_parallel(threads, head_count(call->plan), scan, &work);
    tn_parallel(threads, tasks, part, &work);
}

static void forward(const struct tn_attention_call *call)
{
    run(call, whole_forward, sum_forward, scan_forward, run_forward);
}

static void backward(const struct tn_attention_call *call)
{
    run(call, whole_backward, sum_backward, scan_backward, run_backward);
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

extern const struct tn_attention_kind tn_attn_linear;
const struct tn_attention_kind tn_attn_linear = {
    .about = {"linear", "phi(q) (phi(k)^T v), time linear in the length (4)-(20)", options},
    .has_map = true,
    .saved = saved,
    .work = work_size,
    .state = tn_linear_step_state,
    .forward = forward,
    .backward = backward,
    .step = tn_linear_step,
    .forward_flops = forward_flops,
    .backward_flops = backward_flops,
};
