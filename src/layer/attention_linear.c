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
 *     segments, which are formed first and cost an extra product. */
#include "layer/linear_cut.h"
#include "layer/linear_step.h"
#include "layer/linear_sums.h"

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
};

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

/* St for the start of a segment: causal, the sum over those before it, else the total; summed
 * here if it is not among `sums`. */
static void start_keys(const struct task *task, struct sums sums, size_t segment)
{
    const struct tn_linear_group *const a = &task->group;
    const size_t i = a->plan->causal ? sum_number(task, segment) : sums.count - 1;

    tn_linear_sums_load(a, a->tiles->St, i < sums.count ? sums_of(task, sums, i) : NULL);
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

static void forward(const struct tn_attention_call *call)
{
    struct work work = work_open(call);

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

static void run_keys(void *arg, size_t index, size_t thread)
{
    const struct task task = task_open(arg, index, thread);

    start_queries(&task, task.from);
    tn_linear_key_gradients(&task.group, span_of(&task, task.from));
}

/* From the last segment to the first, Rt going on from each to the one before. */
static void run_backward(void *arg, size_t index, size_t thread)
{
    struct task task = task_open(arg, index, thread);
    struct tn_linear_group *const a = &task.group;

    tn_linear_sums_load(a, a->tiles->Rt, NULL);
    for (size_t segment = task.to; segment-- > task.from;) {
        const struct tn_linear_span span = span_of(&task, segment);

        a->slopes.from = span.q_from;
        start_keys(&task, known_keys(task.work), segment);
        tn_linear_query_gradients(a, span, !a->plan->causal);
        tn_linear_key_gradients(a, span);
    }
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
    .parts = tn_linear_state_parts,
    .forward_flops = forward_flops,
    .backward_flops = backward_flops,
};
