/* SPDX-License-Identifier: MIT */
/* attention_gated.c - a kind that only the tests have: linear attention that forgets.
 *
 *   S_j = a g_j S_{j-1} + k_j v_j^T          y_i = S_i^T q_i, or S_N^T q_i if not causal
 *
 * g is a gate, one number per head and key; a is a decay, one learned number per head. With
 * dS_j = dL/dS_j, which starts from the gradient of the state after the last key:
 *
 *   dq_i = S_i dy_i     dk_j = dS_j v_j     dv_j = dS_j^T k_j     dS_{j-1} += a g_j dS_j
 *   dg_j = a <dS_j, S_{j-1}>                da = sum_j g_j <dS_j, S_{j-1}>
 *
 * It is this file and a row in more_kinds.def. The state is S of every head. */
#include <string.h>

#include "layer/attention_kind.h"

enum { QUERY, KEY, VALUE, GATE, DECAY };

/* Not const, with room for more: test_config.c makes them unfit for a model. */
extern tarn_attention_input tn_gated_inputs[];
tarn_attention_input tn_gated_inputs[TARN_ATTENTION_INPUTS + 2] = {
    [QUERY] = {.name = "query", .help = "what a position looks for"},
    [KEY] = {.name = "key", .help = "what a position is found by", .at_keys = true},
    [VALUE] = {.name = "value",
               .help = "what a position gives",
               .width = TARN_VALUE_WIDTH,
               .at_keys = true},
    [GATE] = {.name = "gate",
              .help = "how much of the past a position keeps",
              .width = TARN_SCALAR,
              .at_keys = true,
              .activation = TARN_INPUT_SIGMOID,
              .start = 3.0f},
    [DECAY] = {.name = "decay",
               .help = "how much of the past a head keeps",
               .width = TARN_SCALAR,
               .parameter = true,
               .activation = TARN_INPUT_SIGMOID,
               .start = 4.0f},
    {0},
};

static size_t sum_floats(const tarn_attention *plan)
{
    return plan->D * plan->M;
}

static size_t state(const tarn_attention *plan)
{
    return plan->H * sum_floats(plan);
}

/* S after every key. */
static size_t saved(const tarn_attention *plan)
{
    const size_t factors[] = {plan->B, plan->H, plan->Nk, plan->D, plan->M};
    size_t floats;

    return tn_size_product(&floats, factors, 5) ? floats : SIZE_MAX;
}

/* S and dS of a thread. */
static float *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    return tn_arena_floats(arena, 2 * threads * sum_floats(plan));
}

static void work(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, plan->host.threads, arena);
}

static void step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    (void)plan;
    (void)threads;
    (void)arena;
}

/* ---- Forward ------------------------------------------------------------ */

static float number(const struct tn_attention_call *call, size_t input, size_t b, size_t h,
                    size_t n)
{
    return *tn_in(call->arrays->in[input], b, h, n);
}

static void take_key(const struct tn_attention_call *call, float *S, size_t b, size_t h,
                     size_t j)
{
    const size_t D = call->plan->D, M = call->plan->M;
    const float *const k = tn_in(call->arrays->in[KEY], b, h, j);
    const float *const v = tn_in(call->arrays->in[VALUE], b, h, j);
    const float keep = number(call, DECAY, 0, h, 0) * number(call, GATE, b, h, j);

    for (size_t d = 0; d < D; d++)
        for (size_t m = 0; m < M; m++)
            S[d * M + m] = keep * S[d * M + m] + k[d] * v[m];
}

static void give(const struct tn_attention_call *call, const float *S, size_t b, size_t h,
                 size_t i)
{
    const size_t D = call->plan->D, M = call->plan->M;
    const float *const q = tn_in(call->arrays->in[QUERY], b, h, i);
    float *const y = tn_out(call->arrays->y, b, h, i);

    for (size_t m = 0; m < M; m++)
        y[m] = 0.0f;
    for (size_t d = 0; d < D; d++)
        for (size_t m = 0; m < M; m++)
            y[m] += q[d] * S[d * M + m];
}

struct task {
    const struct tn_attention_call *call;
    float *sums; /* 2 per thread */
};

static struct task task_open(const struct tn_attention_call *call)
{
    struct tn_arena arena = tn_arena_over(call->work);

    return (struct task){call, lay_out(call->plan, call->plan->host.threads, &arena)};
}

static float *saved_at(const struct tn_attention_call *call, size_t b, size_t h, size_t j)
{
    const tarn_attention *const plan = call->plan;

    return call->saved + ((b * plan->H + h) * plan->Nk + j) * sum_floats(plan);
}

static void start_sum(const struct tn_attention_call *call, float *S, size_t b, size_t h)
{
    const size_t floats = sum_floats(call->plan);
    const float *const before = tn_call_state0(call, b);

    if (before)
        memcpy(S, before + h * floats, floats * sizeof *S);
    else
        memset(S, 0, floats * sizeof *S);
}

static void forward_task(void *arg, size_t index, size_t thread)
{
    const struct task *const task = arg;
    const struct tn_attention_call *const call = task->call;
    const tarn_attention *const plan = call->plan;
    const size_t b = index / plan->H, h = index % plan->H, floats = sum_floats(plan);
    const size_t keys = tn_key_length(call, b);
    float *const S = task->sums + 2 * thread * floats;

    start_sum(call, S, b, h);
    for (size_t j = 0; j < keys; j++) {
        take_key(call, S, b, h, j);
        if (call->saved)
            memcpy(saved_at(call, b, h, j), S, floats * sizeof *S);
        if (plan->causal)
            give(call, S, b, h, j);
    }
    for (size_t i = plan->causal ? keys : 0; i < plan->N; i++)
        give(call, S, b, h, i);
    if (call->arrays->state1)
        memcpy(tn_call_state1(call, b) + h * floats, S, floats * sizeof *S);
}

static void forward(const struct tn_attention_call *call)
{
    struct task task = task_open(call);

    tn_parallel(call->plan->host.threads, call->plan->B * call->plan->H, forward_task, &task);
}

static void step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;

    for (size_t b = 0; b < call->n; b++)
        for (size_t h = 0; h < plan->H; h++) {
            float *const S = tn_state_floats(call->states[b]) + h * sum_floats(plan);

            take_key(call, S, b, h, 0);
            give(call, S, b, h, 0);
        }
}

/* ---- Backward ----------------------------------------------------------- */

/* dq of query i, which saw S, and what it adds to dS. */
static void query_backward(const struct tn_attention_call *call, float *dS, const float *S,
                           size_t b, size_t h, size_t i)
{
    const size_t D = call->plan->D, M = call->plan->M;
    const float *const q = tn_in(call->arrays->in[QUERY], b, h, i);
    const float *const dy = tn_in(call->arrays->dy, b, h, i);
    float *const dq = tn_out(call->arrays->din[QUERY], b, h, i);

    for (size_t d = 0; d < D; d++) {
        dq[d] = 0.0f;
        for (size_t m = 0; m < M; m++) {
            dq[d] += S[d * M + m] * dy[m];
            dS[d * M + m] += q[d] * dy[m];
        }
    }
}

/* dk, dv and the gate of key j, which found S; dS becomes that of S. Returns what it adds to
 * da. */
static double key_backward(const struct tn_attention_call *call, float *dS, const float *S,
                           size_t b, size_t h, size_t j)
{
    const size_t D = call->plan->D, M = call->plan->M;
    const tarn_output *const din = call->arrays->din;
    const float *const k = tn_in(call->arrays->in[KEY], b, h, j);
    const float *const v = tn_in(call->arrays->in[VALUE], b, h, j);
    const float a = number(call, DECAY, 0, h, 0), g = number(call, GATE, b, h, j);
    float *const dk = tn_out(din[KEY], b, h, j), *const dv = tn_out(din[VALUE], b, h, j);
    double kept = 0.0;

    memset(dv, 0, M * sizeof *dv);
    for (size_t d = 0; d < D; d++) {
        dk[d] = 0.0f;
        for (size_t m = 0; m < M; m++) {
            float *const at = &dS[d * M + m];

            dk[d] += *at * v[m];
            dv[m] += *at * k[d];
            kept += (double)*at * (double)S[d * M + m];
            *at *= a * g;
        }
    }
    *tn_out(din[GATE], b, h, j) = (float)((double)a * kept);
    return (double)g * kept;
}

static void clear_padding(const struct tn_attention_call *call, size_t b, size_t h)
{
    const tarn_attention *const plan = call->plan;

    for (size_t j = tn_key_length(call, b); j < plan->Nk; j++) {
        memset(tn_out(call->arrays->din[KEY], b, h, j), 0, plan->D * sizeof(float));
        memset(tn_out(call->arrays->din[VALUE], b, h, j), 0, plan->M * sizeof(float));
        *tn_out(call->arrays->din[GATE], b, h, j) = 0.0f;
    }
}

static double head_backward(const struct task *task, size_t b, size_t h, size_t thread)
{
    const struct tn_attention_call *const call = task->call;
    const tarn_attention *const plan = call->plan;
    const size_t floats = sum_floats(plan), keys = tn_key_length(call, b);
    float *const first = task->sums + 2 * thread * floats, *const dS = first + floats;
    const float *const given = tn_call_dstate1(call, b);
    double da = 0.0;

    start_sum(call, first, b, h);
    memset(dS, 0, floats * sizeof *dS);
    if (given)
        memcpy(dS, given + h * floats, floats * sizeof *dS);
    for (size_t i = plan->N; i-- > (plan->causal ? keys : 0);)
        query_backward(call, dS, keys > 0 ? saved_at(call, b, h, keys - 1) : first, b, h, i);
    for (size_t j = keys; j-- > 0;) {
        if (plan->causal)
            query_backward(call, dS, saved_at(call, b, h, j), b, h, j);
        da += key_backward(call, dS, j > 0 ? saved_at(call, b, h, j - 1) : first, b, h, j);
    }
    clear_padding(call, b, h);
    if (call->arrays->dstate0)
        memcpy(tn_call_dstate0(call, b) + h * floats, dS, floats * sizeof *dS);
    return da;
}

/* A head of all sequences, so that its decay has one writer. */
static void backward_task(void *arg, size_t h, size_t thread)
{
    const struct task *const task = arg;
    double da = 0.0;

    for (size_t b = 0; b < task->call->plan->B; b++)
        da += head_backward(task, b, h, thread);
    *tn_out(task->call->arrays->din[DECAY], 0, h, 0) = (float)da;
}

static void backward(const struct tn_attention_call *call)
{
    struct task task = task_open(call);

    tn_parallel(call->plan->host.threads, call->plan->H, backward_task, &task);
}

/* ---- The row ------------------------------------------------------------ */

extern const struct tn_attention_kind tn_attention_gated;
const struct tn_attention_kind tn_attention_gated = {
    .about = {"gated", "linear attention with a gate and a decay",
              (const tarn_option_info[]){{0}}},
    .inputs = tn_gated_inputs,
    .saved = saved,
    .work = work,
    .forward = forward,
    .backward = backward,
    .state = state,
    .step_work = step_work,
    .step = step,
};
