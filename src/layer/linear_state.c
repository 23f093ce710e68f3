/* SPDX-License-Identifier: MIT */
#include "layer/linear.h"

#include <string.h>

enum {
    FLOATS_ALONE = 1 << 18, /* sums smaller than this in all are not worth waking threads */
    GROUPS = 4              /* groups of heads per thread, to even out the load */
};

/* ---- Memory ------------------------------------------------------------- */

static size_t padded(size_t width)
{
    return tn_round_up(width, TN_LINEAR_STATE_PAD);
}

size_t tn_linear_sum_floats(const tarn_attention *plan)
{
    return plan->map.C * padded(plan->M) + padded(plan->map.C);
}

static bool has_far(const tarn_attention *plan)
{
    return plan->steps == 0 || plan->steps >= TN_LINEAR_BLOCK;
}

size_t tn_linear_state(const tarn_attention *plan)
{
    size_t floats;
    const size_t factors[] = {has_far(plan) ? 2 : 1, plan->H, tn_linear_sum_floats(plan)};

    return tn_size_product(&floats, factors, 3) ? floats : SIZE_MAX;
}

float *tn_linear_near(const tarn_attention *plan, const float *state, size_t h)
{
    return state ? (float *)(uintptr_t)state + h * tn_linear_sum_floats(plan) : NULL;
}

float *tn_linear_far(const tarn_attention *plan, const float *state, size_t h)
{
    return has_far(plan) ? tn_linear_near(plan, state, plan->H + h) : NULL;
}

/* ---- Sums of a head ----------------------------------------------------- */

void tn_linear_sum_load(const struct tn_linear_head *a, float *S, float *z, const float *sum)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t ld = padded(s->M);

    memset(S, 0, s->C * s->S_ld * sizeof(float));
    memset(z, 0, s->C_ld * sizeof(float));
    if (!sum)
        return;
    for (size_t c = 0; c < s->C; c++)
        memcpy(S + c * s->S_ld, sum + c * ld, s->M * sizeof(float));
    memcpy(z, sum + s->C * ld, s->C * sizeof(float));
}

static void clear(const struct tn_linear_head *a, float *sum)
{
    memset(sum, 0, tn_linear_sum_floats(a->plan) * sizeof(float));
}

void tn_linear_sum_store(const struct tn_linear_head *a, float *sum, const float *S,
                         const float *z)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t ld = padded(s->M);

    clear(a, sum);
    for (size_t c = 0; c < s->C; c++)
        memcpy(sum + c * ld, S + c * s->S_ld, s->M * sizeof(float));
    memcpy(sum + s->C * ld, z, s->C * sizeof(float));
}

void tn_linear_sum_add(const struct tn_linear_head *a, float *sum, const float *S,
                       const float *z)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const size_t ld = padded(s->M);

    for (size_t c = 0; c < s->C; c++)
        kernels->axpy(sum + c * ld, 1.0f, S + c * s->S_ld, s->M);
    kernels->axpy(sum + s->C * ld, 1.0f, z, s->C);
}

/* z is St's row for the value that is always 1. */
void tn_linear_sum_load_t(const struct tn_linear_head *a, float *St, const float *sum)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t ld = padded(s->M);

    memset(St, 0, s->rows * s->St_ld * sizeof(float));
    if (!sum)
        return;
    a->plan->host.kernels->transpose(St, (ptrdiff_t)s->St_ld, sum, (ptrdiff_t)ld, s->C, s->M);
    if (s->normalises)
        memcpy(St + s->M * s->St_ld, sum + s->C * ld, s->C * sizeof(float));
}

void tn_linear_sum_store_t(const struct tn_linear_head *a, float *sum, const float *St)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t ld = padded(s->M);

    clear(a, sum);
    a->plan->host.kernels->transpose(sum, (ptrdiff_t)ld, St, (ptrdiff_t)s->St_ld, s->M, s->C);
    if (s->normalises)
        memcpy(sum + s->C * ld, St + s->M * s->St_ld, s->C * sizeof(float));
}

void tn_linear_sum_add_t(const struct tn_linear_head *a, float *St, const float *sum, float by)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t ld = padded(s->M);

    for (size_t m = 0; m < s->rows; m++)
        for (size_t c = 0; c < s->C; c++)
            St[m * s->St_ld + c] += by * sum[m < s->M ? c * ld + m : s->C * ld + c];
}

/* ---- One position ------------------------------------------------------- */

struct rows {
    float *q, *k; /* C, in whole vectors */
    float *v, *y; /* M, in whole vectors */
};

struct step {
    const struct tn_attention_call *call;
    struct tn_linear_sizes sizes;
    struct rows *rows; /* one per thread */
    size_t group;      /* heads per task */
};

static struct rows *lay_out(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    const struct tn_linear_sizes s = tn_linear_sizes_of(plan);
    struct rows *const rows = tn_arena_alloc(arena, threads, sizeof *rows);

    for (size_t t = 0; t < threads; t++) {
        float *const q = tn_arena_floats(arena, 2 * (s.C_ld + s.width));

        if (rows)
            rows[t] = (struct rows){q, q + s.C_ld, q + 2 * s.C_ld, q + 2 * s.C_ld + s.width};
    }
    return rows;
}

void tn_linear_step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    lay_out(plan, threads, arena);
}

/* rows->y = q s, and returns q z, near sums only, after this position. */
static float step_near(const struct step *step, float *near, const struct rows *rows)
{
    const struct tn_linear_sizes *const s = &step->sizes;
    const struct tn_kernels *const kernels = step->call->plan->host.kernels;
    const size_t ld = padded(s->M);
    const struct tn_recurrence r = {
        .o = rows->y,
        .S = near,
        .ldS = (ptrdiff_t)ld,
        .q = rows->q,
        .k = rows->k,
        .v = rows->v,
        .n = 1,
        .rows = s->C,
        .width = s->width,
    };
    float den = 0.0f;

    kernels->recur(&r); /* (18) */
    if (s->normalises)
        kernels->recur_sum(&den, near + s->C * ld, rows->q, 0, rows->k, 0, 1,
                           s->C_ld); /* (19) */
    return den;
}

/* The same of far, added. */
static float add_far(const struct step *step, const float *far, const struct rows *rows)
{
    const struct tn_linear_sizes *const s = &step->sizes;
    const struct tn_kernels *const kernels = step->call->plan->host.kernels;
    const size_t ld = padded(s->M);

    kernels->product(rows->y, 0, rows->q, 0, 1, far, (ptrdiff_t)ld, 1, s->width, s->C, true);
    return kernels->dot(rows->q, far + s->C * ld, s->C);
}

static float advance(const struct step *step, float *near, float *far, const struct rows *rows,
                     size_t count)
{
    const tarn_attention *const plan = step->call->plan;
    float den = step_near(step, near, rows);

    if (!far)
        return den;
    if (count >= TN_LINEAR_BLOCK)
        den += add_far(step, far, rows);
    if ((count + 1) % TN_LINEAR_BLOCK == 0) {
        plan->host.kernels->add(far, far, near, tn_linear_sum_floats(plan));
        memset(near, 0, tn_linear_sum_floats(plan) * sizeof(float));
    }
    return den;
}

static void head_step(const struct step *step, const struct rows *rows, size_t head)
{
    const struct tn_attention_call *const call = step->call;
    const tarn_attention *const plan = call->plan;
    const struct tn_feature_map *const map = &plan->map;
    const size_t b = head / plan->H, h = head % plan->H;
    float *const state = tn_state_floats(call->states[b]);

    map->row->forward(map, rows->q, tn_in(call->arrays->in[TN_QUERY], b, h, 0));
    map->row->forward(map, rows->k, tn_in(call->arrays->in[TN_KEY], b, h, 0));
    memcpy(rows->v, tn_in(call->arrays->in[TN_VALUE], b, h, 0), plan->M * sizeof(float));
    const float den =
        advance(step, tn_linear_near(plan, state, h), tn_linear_far(plan, state, h), rows,
                tn_state_count(call->states[b]));
    const float by = step->sizes.normalises ? tn_linear_inverse(plan, den) : 1.0f;

    plan->host.kernels->scale(tn_out(call->arrays->y, b, h, 0), rows->y, by,
                              plan->M); /* (20) */
}

static void group_step(void *arg, size_t task, size_t thread)
{
    const struct step *const step = arg;
    const struct tn_linear_sizes *const s = &step->sizes;
    const struct rows *const rows = &step->rows[thread];
    const size_t first = task * step->group;
    const size_t last = tn_min(step->call->n * step->call->plan->H, first + step->group);

    memset(rows->q, 0, 2 * (s->C_ld + s->width) * sizeof(float));
    for (size_t head = first; head < last; head++)
        head_step(step, rows, head);
}

void tn_linear_step(const struct tn_attention_call *call)
{
    const tarn_attention *const plan = call->plan;
    const size_t heads = call->n * plan->H;
    const bool alone = heads < FLOATS_ALONE / tn_linear_sum_floats(plan);
    const size_t threads = alone ? 1 : call->threads;
    struct tn_arena arena = tn_arena_over(call->work);
    struct step step = {
        .call = call,
        .sizes = tn_linear_sizes_of(plan),
        .rows = lay_out(plan, threads, &arena),
        .group = tn_blocks(heads, threads * GROUPS),
    };

    tn_parallel(threads, tn_blocks(heads, step.group), group_step, &step);
}
