/* SPDX-License-Identifier: MIT */
/* linear_step.c - the next position of some sequences.
 *
 *   s_i = s_{i-1} + phi(k_i) v_i^T     z_i = z_{i-1} + phi(k_i)            (18), (19)
 *   y_i = phi(q_i)^T s_i / phi(q_i)^T z_i                                   (20)
 *
 * A float that holds a sum of a million terms rounds every further one, and rounds equal ones
 * the same way: a stream that repeats itself was wrong by half a percent after a million steps.
 * So the sums are of two parts, s = far + near: near has the last steps, up to BLOCK of them,
 * and is then added to far. Until then far is zero and not looked at.
 *
 * The state of a sequence is a count of steps, near s (C x M) and near z (C) of every head,
 * then far s and far z of every head. Sequences that end before the first block does have no
 * far: half of the state. Rows are padded to STATE_PAD floats: whole vectors on every machine,
 * so that a state can move to another one. */
#include "layer/linear_step.h"

#include <string.h>

#include "layer/linear_tile.h"

enum {
    STATE_PAD = 16,
    BLOCK = 1024,           /* steps; a million are about as many blocks */
    FLOATS_ALONE = 1 << 18, /* sums smaller than this in all are not worth waking threads */
    GROUPS = 4              /* groups of heads per thread, to even out the load */
};

struct rows {
    float *q, *k; /* C, padded */
    float *v, *y; /* M, padded */
};

struct step {
    const struct tn_attention_call *call;
    struct rows *rows; /* one per thread */
    size_t group;      /* heads per task */
};

static size_t padded(size_t width)
{
    return tn_round_up(width, STATE_PAD);
}

/* Of near, and of far. */
static size_t sum_floats(const tarn_attention *plan)
{
    return plan->map.C * padded(plan->M) + padded(plan->map.C);
}

static bool has_far(const tarn_attention *plan)
{
    return plan->steps == 0 || plan->steps >= BLOCK;
}

size_t tn_linear_state(const tarn_attention *plan)
{
    size_t bytes;
    const size_t factors[] = {has_far(plan) ? 2 : 1, plan->H, sum_floats(plan), sizeof(float)};

    if (!tn_size_product(&bytes, factors, 4) || bytes > SIZE_MAX - STATE_PAD * sizeof(float))
        return SIZE_MAX;
    return bytes + STATE_PAD * sizeof(float);
}

/* The count, near and far. */
void tn_linear_state_parts(const tarn_attention *plan, size_t parts[3])
{
    const size_t sums = plan->H * sum_floats(plan) * sizeof(float);

    parts[0] = STATE_PAD * sizeof(float);
    parts[1] = sums;
    parts[2] = has_far(plan) ? sums : 0;
}

static struct rows *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    struct rows *const rows = tn_arena_take(arena, threads, sizeof *rows);
    const size_t C = padded(plan->map.C), M = padded(plan->M);

    for (size_t t = 0; t < threads; t++) {
        float *const block = tn_arena_floats(arena, 2 * C + 2 * M);

        if (rows)
            rows[t] = (struct rows){block, block + C, block + 2 * C, block + 2 * C + M};
    }
    return rows;
}

void tn_linear_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    lay_out(plan, threads, arena);
}

/* The 32 bits of the state's first float. From BLOCK on they say where in a block we are. */
static uint32_t count_of(const void *state)
{
    uint32_t count;

    memcpy(&count, state, sizeof count);
    return count;
}

struct head_state {
    float *near, *far; /* far is NULL where there is none */
};

static struct head_state state_of(const tarn_attention *plan, void *state, size_t h)
{
    const size_t floats = sum_floats(plan);
    float *const sums = (float *)state + STATE_PAD;

    return (struct head_state){sums + h * floats,
                               has_far(plan) ? sums + (plan->H + h) * floats : NULL};
}

/* rows->y = q s, and returns q z, near sums only, after this step. */
static float step_near(const tarn_attention *plan, float *near, const struct rows *rows)
{
    const size_t C = plan->map.C, width = padded(plan->M);
    const struct tn_recurrence r = {
        .o = rows->y,
        .S = near,
        .ldS = (ptrdiff_t)width,
        .q = rows->q,
        .k = rows->k,
        .v = rows->v,
        .n = 1,
        .rows = C,
        .width = width,
    };
    float den;

    plan->host.kernels->recur(&r); /* (18) */
    plan->host.kernels->recur_sum(&den, near + C * width, rows->q, 0, rows->k, 0, 1,
                                  padded(C)); /* (19) */
    return den;
}

/* The same of far, added. */
static float add_far(const tarn_attention *plan, const float *far, const struct rows *rows)
{
    const size_t C = plan->map.C, width = padded(plan->M);

    plan->host.kernels->product(rows->y, 0, rows->q, 0, 1, far, (ptrdiff_t)width, 1, width, C,
                                true);
    return plan->host.kernels->dot(rows->q, far + C * width, C);
}

static float advance(const tarn_attention *plan, const struct head_state *state,
                     const struct rows *rows, uint32_t count)
{
    float den = step_near(plan, state->near, rows);

    if (!state->far)
        return den;
    if (count >= BLOCK)
        den += add_far(plan, state->far, rows);
    if ((count + 1) % BLOCK == 0) {
        plan->host.kernels->add(state->far, state->far, state->near, sum_floats(plan));
        memset(state->near, 0, sum_floats(plan) * sizeof(float));
    }
    return den;
}

static void head_step(const struct step *step, const struct rows *rows, size_t head)
{
    const struct tn_attention_call *const call = step->call;
    const tarn_attention *const plan = call->plan;
    const struct tn_feature_map *const map = &plan->map;
    const size_t b = head / plan->H, h = head % plan->H;
    const struct head_state state = state_of(plan, call->states[b], h);

    map->row->forward(map, rows->q, tn_in(call->arrays->in[TN_QUERY], b, h, 0));
    map->row->forward(map, rows->k, tn_in(call->arrays->in[TN_KEY], b, h, 0));
    memcpy(rows->v, tn_in(call->arrays->in[TN_VALUE], b, h, 0), plan->M * sizeof(float));
    const float den = advance(plan, &state, rows, count_of(call->states[b]));
    const bool normalises = plan->options.value[TN_LINEAR_NORMALISE] != 0.0;
    const float by = normalises ? tn_linear_inverse(plan, den) : 1.0f;

    plan->host.kernels->scale(tn_out(call->arrays->y, b, h, 0), rows->y, by,
                              plan->M); /* (20) */
}

static void group_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const tarn_attention *const plan = step->call->plan;
    const struct rows *const rows = &step->rows[thread];
    const size_t first = task * step->group;
    const size_t last = tn_min(step->call->n * plan->H, first + step->group);

    memset(rows->q, 0, 2 * (padded(plan->map.C) + padded(plan->M)) * sizeof(float));
    for (size_t head = first; head < last; head++)
        head_step(step, rows, head);
}

static void count_on(void *state)
{
    const uint32_t count = count_of(state), next = count + 1 < 2 * BLOCK ? count + 1 : BLOCK;

    memcpy(state, &next, sizeof next);
}

void tn_linear_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const size_t heads = call->n * plan->H;
    const bool alone = heads < FLOATS_ALONE / sum_floats(plan);
    const size_t threads = alone ? 1 : call->threads;
    struct tn_arena arena = tn_arena_over(call->work);
    struct step step = {
        .call = call,
        .rows = lay_out(plan, threads, &arena),
        .group = tn_blocks(heads, threads * GROUPS),
    };

    tn_parallel(threads, tn_blocks(heads, step.group), group_step, &step);
    for (size_t b = 0; b < call->n; b++) /* when all heads have seen the count */
        count_on(call->states[b]);
}
