/* SPDX-License-Identifier: MIT */
/* linear_step.c - one position of every sequence.
 *
 *   s_i = s_{i-1} + phi(k_i) v_i^T     z_i = z_{i-1} + phi(k_i)            (18), (19)
 *   y_i = phi(q_i)^T s_i / phi(q_i)^T z_i                                   (20)
 *
 * The state of a head is s (C x M), then z (C), both with rows padded to STATE_PAD floats:
 * whole vectors on every machine, so that a state can move to another one. */
#include "layer/linear_step.h"

#include <string.h>

#include "layer/linear_tile.h"

enum {
    STATE_PAD = 16,
    FLOATS_ALONE = 1 << 18, /* states smaller than this in all are not worth waking threads */
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

static size_t state_floats(const tarn_attention *plan)
{
    return plan->map.C * padded(plan->M) + padded(plan->map.C);
}

size_t tn_linear_step_state(const tarn_attention *plan)
{
    size_t bytes;
    const size_t factors[] = {plan->B, plan->H, state_floats(plan), sizeof(float)};

    return tn_size_product(&bytes, factors, 4) ? bytes : SIZE_MAX;
}

static struct rows *lay_out(const tarn_attention *plan, struct tn_arena *arena)
{
    struct rows *const rows = tn_arena_take(arena, plan->threads, sizeof *rows);
    const size_t C = padded(plan->map.C), M = padded(plan->M);

    for (size_t t = 0; t < plan->threads; t++) {
        float *const block = tn_arena_floats(arena, 2 * C + 2 * M);

        if (rows)
            rows[t] = (struct rows){block, block + C, block + 2 * C, block + 2 * C + M};
    }
    return rows;
}

void tn_linear_step_work(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, arena);
}

static void head_step(const struct tn_attention_call *call, const struct rows *rows,
                      size_t head)
{
    const tarn_attention *const plan = call->plan;
    const struct tn_feature_map *const map = &plan->map;
    const size_t b = head / plan->H, h = head % plan->H, width = padded(plan->M);
    float *const s = (float *)call->state + head * state_floats(plan);
    float *const z = s + map->C * width;
    const struct tn_recurrence r = {
        .o = rows->y,
        .S = s,
        .ldS = (ptrdiff_t)width,
        .q = rows->q,
        .k = rows->k,
        .v = rows->v,
        .n = 1,
        .rows = map->C,
        .width = width,
    };
    float den;

    map->row->forward(map, rows->q, tn_in(call->arrays->q, b, h, 0));
    map->row->forward(map, rows->k, tn_in(call->arrays->k, b, h, 0));
    memcpy(rows->v, tn_in(call->arrays->v, b, h, 0), plan->M * sizeof(float));
    plan->kernels->recur(&r);                                                     /* (18) */
    plan->kernels->recur_sum(&den, z, rows->q, 0, rows->k, 0, 1, padded(map->C)); /* (19) */
    const bool normalises = plan->options.value[TN_LINEAR_NORMALISE] != 0.0;
    const float by = normalises ? tn_linear_inverse(plan, den) : 1.0f;

    plan->kernels->scale(tn_out(call->arrays->y, b, h, 0), rows->y, by, plan->M); /* (20) */
}

static void group_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const tarn_attention *const plan = step->call->plan;
    const struct rows *const rows = &step->rows[thread];
    const size_t first = task * step->group;
    const size_t last = tn_min(plan->B * plan->H, first + step->group);

    memset(rows->q, 0, 2 * (padded(plan->map.C) + padded(plan->M)) * sizeof(float));
    for (size_t head = first; head < last; head++)
        head_step(step->call, rows, head);
}

void tn_linear_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const size_t heads = plan->B * plan->H;
    const bool alone = heads < FLOATS_ALONE / state_floats(plan);
    const size_t threads = alone ? 1 : plan->threads;
    struct tn_arena arena = tn_arena_over(call->work);
    struct step step = {
        .call = call,
        .rows = lay_out(plan, &arena),
        .group = tn_blocks(heads, threads * GROUPS),
    };

    tn_parallel(threads, tn_blocks(heads, step.group), group_step, &step);
}
