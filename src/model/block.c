/* SPDX-License-Identifier: MIT */
#include "model/block.h"

#include <math.h>

#include "layer/activation.h"

/* ---- Plans -------------------------------------------------------------- */

/* gelu's input is kept for backward, so the product may not apply it on the way out. */
static bool keeps_before(const struct tn_block_plan *plan)
{
    return plan->trains && tn_activation_keeps_input(plan->arch->activation);
}

static tarn_status init_products(struct tn_block_plan *plan, const struct tn_block_desc *desc,
                                 const struct tn_host *host, tarn_error *err)
{
    const size_t F = plan->rows.width, feed = plan->inner.width;
    const bool post = !plan->arch->norm_first;
    struct tn_dense_desc dense = {
        .rows = desc->rows,
        .bias = true,
        .trains = desc->trains,
        .packed = desc->packed,
        .elements = desc->elements,
    };
    tarn_status status;

    dense.in = dense.out = F;
    dense.add = !desc->trains;
    if ((status = tn_dense_init(&plan->out, &dense, host, err)) != TARN_OK)
        return status;
    dense.in = feed;
    if ((status = tn_dense_init(&plan->back, &dense, host, err)) != TARN_OK)
        return status;

    /* Post-norm, the input of a branch is also what the branch is added to. */
    dense.in = F;
    dense.add = false;
    dense.add_dx = post;
    dense.out = plan->projected;
    if ((status = tn_dense_init(&plan->project, &dense, host, err)) != TARN_OK)
        return status;
    dense.out = feed;
    dense.activation = keeps_before(plan) ? TN_IDENTITY : plan->arch->activation;
    return tn_dense_init(&plan->in, &dense, host, err);
}

tarn_status tn_block_init(struct tn_block_plan *plan, const struct tn_arch *arch,
                          const struct tn_block_desc *desc, const struct tn_host *host,
                          tarn_error *err)
{
    *plan = (struct tn_block_plan){
        .arch = arch,
        .rows = tn_rows_on(host, desc->rows, arch->config.width),
        .inner = tn_rows_on(host, desc->rows, arch->config.feed),
        .projected = tn_arch_projected(arch),
        .trains = desc->trains,
    };
    const tarn_status status = init_products(plan, desc, host, err);

    if (status != TARN_OK)
        tn_block_clear(plan);
    return status;
}

void tn_block_clear(struct tn_block_plan *plan)
{
    tn_dense_clear(&plan->project);
    tn_dense_clear(&plan->out);
    tn_dense_clear(&plan->in);
    tn_dense_clear(&plan->back);
}

struct tn_block_plan tn_block_of_rows(const struct tn_block_plan *plan, size_t rows)
{
    struct tn_block_plan fewer = *plan;

    fewer.rows.rows = fewer.inner.rows = rows;
    fewer.project = tn_dense_of_rows(&plan->project, rows);
    fewer.out = tn_dense_of_rows(&plan->out, rows);
    fewer.in = tn_dense_of_rows(&plan->in, rows);
    fewer.back = tn_dense_of_rows(&plan->back, rows);
    return fewer;
}

size_t tn_block_scratch_size(const struct tn_block_plan *plan)
{
    const size_t attention =
        tn_max(tn_dense_scratch_size(&plan->project), tn_dense_scratch_size(&plan->out));
    const size_t feed =
        tn_max(tn_dense_scratch_size(&plan->in), tn_dense_scratch_size(&plan->back));

    return tn_max(tn_max(attention, feed), tn_norm_scratch_size(&plan->rows));
}

/* ---- Memory ------------------------------------------------------------- */

struct tn_block_weights tn_block_pack(const struct tn_block_plan *plan,
                                      const struct tn_block_weights *weights,
                                      struct tn_arena *arena)
{
    struct tn_block_weights packed = *weights;

    packed.in[0] = tn_dense_pack(&plan->project, weights->in[0], arena);
    packed.out = tn_dense_pack(&plan->out, weights->out, arena);
    packed.feed_in = tn_dense_pack(&plan->in, weights->feed_in, arena);
    packed.feed_out = tn_dense_pack(&plan->back, weights->feed_out, arena);
    return packed;
}

struct tn_block_activations tn_block_activations_lay_out(const struct tn_block_plan *plan,
                                                         struct tn_arena *arena)
{
    const size_t R = plan->rows.rows, F = plan->rows.width, feed = plan->inner.width;
    struct tn_block_activations acts = {0};

    if (plan->arch->norm_first)
        acts.first = tn_arena_floats(arena, R * F);
    else if (plan->trains)
        acts.t = tn_arena_floats(arena, R * F);
    acts.inputs = tn_arena_floats(arena, R * plan->projected);
    acts.parameters = tn_arena_floats(arena, tn_arch_parameters(plan->arch));
    acts.mixed = tn_arena_floats(arena, R * F);
    if (plan->trains)
        acts.s = tn_arena_floats(arena, R * F);
    acts.z = tn_arena_floats(arena, R * F);
    acts.hidden = tn_arena_floats(arena, R * feed);
    if (keeps_before(plan))
        acts.before = tn_arena_floats(arena, R * feed);
    for (size_t i = 0; i < 2 && plan->trains; i++)
        acts.norm[i] = tn_arena_alloc(arena, R, sizeof *acts.norm[i]);
    return acts;
}

struct tn_block_gradients tn_block_gradients_take(const struct tn_block_plan *plan,
                                                  struct tn_arena *arena)
{
    const size_t R = plan->rows.rows, F = plan->rows.width;
    struct tn_block_gradients g = {.branch = tn_arena_floats(arena, R * F)};
    struct tn_arena feed = *arena;

    g.dparameters = tn_arena_floats(arena, tn_arch_parameters(plan->arch));
    feed = *arena;
    g.dinputs = tn_arena_floats(arena, R * plan->projected);
    g.dmixed = tn_arena_floats(arena, R * F);
    g.dhidden = tn_arena_floats(&feed, R * plan->inner.width);
    arena->used = tn_max(arena->used, feed.used);
    return g;
}

/* ---- Inputs of attention ------------------------------------------------------------- */

/* Floats of a head of input i. */
static ptrdiff_t head_width(const struct tn_arch *arch, size_t i)
{
    return (ptrdiff_t)(tn_arch_input_width(arch, i) / arch->config.heads);
}

tarn_attention_arrays tn_block_arrays(const struct tn_block *b, size_t N)
{
    const struct tn_arch *const arch = b->plan->arch;
    const ptrdiff_t n = (ptrdiff_t)N, F = (ptrdiff_t)b->plan->rows.width;
    const ptrdiff_t wide = (ptrdiff_t)b->plan->projected;
    tarn_attention_arrays arrays = {.y = {b->acts->mixed, n * F, F, (ptrdiff_t)arch->D}};

    for (size_t i = 0; arch->inputs[i].name; i++) {
        const size_t from = tn_arch_input_from(arch, i);

        arrays.in[i] =
            arch->inputs[i].parameter
                ? (tarn_input){b->acts->parameters + from, 0, 0, head_width(arch, i)}
                : (tarn_input){b->acts->inputs + from, n * wide, wide, head_width(arch, i)};
    }
    return arrays;
}

void tn_block_gradient_arrays(tarn_attention_arrays *arrays, const struct tn_block *b,
                              const struct tn_block_gradients *g)
{
    const struct tn_arch *const arch = b->plan->arch;
    const tarn_output y = arrays->y;

    arrays->dy = (tarn_input){g->dmixed, y.batch, y.position, y.head};
    for (size_t i = 0; arch->inputs[i].name; i++) {
        const tarn_input in = arrays->in[i];
        float *const to = arch->inputs[i].parameter ? g->dparameters : g->dinputs;

        arrays->din[i] =
            (tarn_output){to + tn_arch_input_from(arch, i), in.batch, in.position, in.head};
    }
}

/* ---- Activations of inputs ---------------------------------------------- */

static float activated(tarn_input_activation activation, float x)
{
    return activation == TARN_INPUT_SIGMOID ? 1.0f / (1.0f + expf(-x)) : x;
}

/* Its derivative, as a function of its result. */
static float activation_derivative(tarn_input_activation activation, float y)
{
    return activation == TARN_INPUT_SIGMOID ? y * (1.0f - y) : 1.0f;
}

static void activate(const struct tn_block *b)
{
    const struct tn_arch *const arch = b->plan->arch;

    for (size_t i = 0; arch->inputs[i].name; i++) {
        const tarn_attention_input *const input = &arch->inputs[i];
        const size_t width = tn_arch_input_width(arch, i), from = tn_arch_input_from(arch, i);

        for (size_t e = 0; e < width && input->parameter; e++)
            b->acts->parameters[from + e] = activated(input->activation, b->weights->in[i][e]);
        if (input->parameter || input->activation == TARN_INPUT_IDENTITY)
            continue;
        for (size_t r = 0; r < b->plan->rows.rows; r++)
            for (size_t e = from; e < from + width; e++) {
                float *const x = &b->acts->inputs[r * b->plan->projected + e];

                *x = activated(input->activation, *x);
            }
    }
}

/* dinputs become those before the activations; gradients of parameters are added. */
static void activate_backward(const struct tn_block *b, const struct tn_block_gradients *g,
                              const struct tn_block_weights *dw)
{
    const struct tn_arch *const arch = b->plan->arch;

    for (size_t i = 0; arch->inputs[i].name; i++) {
        const tarn_attention_input *const input = &arch->inputs[i];
        const size_t width = tn_arch_input_width(arch, i), from = tn_arch_input_from(arch, i);

        for (size_t e = 0; e < width && input->parameter; e++)
            dw->in[i][e] +=
                g->dparameters[from + e] *
                activation_derivative(input->activation, b->acts->parameters[from + e]);
        if (input->parameter || input->activation == TARN_INPUT_IDENTITY)
            continue;
        for (size_t r = 0; r < b->plan->rows.rows; r++)
            for (size_t e = from; e < from + width; e++) {
                const size_t at = r * b->plan->projected + e;

                g->dinputs[at] *= activation_derivative(input->activation, b->acts->inputs[at]);
            }
    }
}

/* ---- Forward ------------------------------------------------------------ */

/* y = dropout(y) + residual; outside of training the product did that. */
static void add_branch(const struct tn_block *b, float *y, const float *residual, uint64_t seed)
{
    const struct tn_dropout dropout = {.p = b->dropout, .seed = seed};

    if (!b->plan->trains)
        return;
    if (b->dropout == 0.0f)
        tn_rows_add(&b->plan->rows, y, residual, NULL);
    else
        tn_dropout_run(&b->plan->rows, &dropout, y, y, residual);
}

/* y = residual + E(z). */
static void feed_forward(const struct tn_block *b, float *y, const float *residual)
{
    const struct tn_block_plan *const plan = b->plan;
    const struct tn_block_weights *const w = b->weights;
    const struct tn_block_activations *const acts = b->acts;
    float *const first = acts->before ? acts->before : acts->hidden;

    tn_dense_forward(&plan->in, first, acts->z, w->feed_in, w->feed_in_bias, plan->scratch);
    if (acts->before)
        tn_activation_forward(&plan->inner, plan->arch->activation, acts->hidden, acts->before);
    tn_dense_forward(&plan->back, y, acts->hidden, w->feed_out, w->feed_out_bias,
                     plan->scratch);
    add_branch(b, y, residual, b->feed_seed);
}

enum { NORM1, NORM2 };

static void norm(const struct tn_block *b, size_t i, float *y, const float *x)
{
    tn_norm_forward(&b->plan->rows, y, b->acts->norm[i], x, b->weights->norm_gain[i],
                    b->weights->norm_bias[i], TN_NORM_EPS);
}

void tn_block_begin(const struct tn_block *b, const float *x)
{
    const struct tn_block_plan *const plan = b->plan;
    const struct tn_block_activations *const acts = b->acts;

    if (plan->arch->norm_first)
        norm(b, NORM1, acts->first, x);
    tn_dense_forward(&plan->project, acts->inputs, plan->arch->norm_first ? acts->first : x,
                     b->weights->in[0], b->weights->in_bias[0], plan->scratch);
    activate(b);
}

void tn_block_end(const struct tn_block *b, float *y, const float *x)
{
    const struct tn_block_plan *const plan = b->plan;
    const struct tn_block_activations *const acts = b->acts;
    float *const s = plan->trains ? acts->s : y, *const t = acts->t ? acts->t : acts->z;

    tn_dense_forward(&plan->out, s, acts->mixed, b->weights->out, b->weights->out_bias,
                     plan->scratch);
    add_branch(b, s, x, b->attention_seed);
    if (plan->arch->norm_first) {
        norm(b, NORM2, acts->z, s);
        feed_forward(b, y, s);
    } else {
        norm(b, NORM1, acts->z, s);
        feed_forward(b, t, acts->z);
        norm(b, NORM2, y, t);
    }
}

void tn_block_forward(const struct tn_block *b, float *y, const float *x)
{
    tn_block_begin(b, x);
    b->mix(b->arg, b);
    tn_block_end(b, y, x);
}

/* ---- Backward ----------------------------------------------------------- */

/* The gradient of what a branch gave before dropout, d itself without. */
static const float *branch_gradient(const struct tn_block *b,
                                    const struct tn_block_gradients *g, const float *d,
                                    uint64_t seed)
{
    const struct tn_dropout dropout = {.p = b->dropout, .seed = seed};

    if (b->dropout == 0.0f)
        return d;
    tn_dropout_run(&b->plan->rows, &dropout, g->branch, d, NULL);
    return g->branch;
}

/* dz of E(z), given the gradient d of the sum it went into: = or, post-norm, +=. */
static void feed_backward(const struct tn_block *b, float *dz, const float *d,
                          const struct tn_block_gradients *g, const struct tn_block_weights *dw)
{
    const struct tn_block_plan *const plan = b->plan;
    const struct tn_block_weights *const w = b->weights;
    const struct tn_block_activations *const acts = b->acts;
    const float *const given = branch_gradient(b, g, d, b->feed_seed);

    tn_dense_backward(&plan->back, g->dhidden, dw->feed_out, dw->feed_out_bias, given,
                      acts->hidden, w->feed_out, plan->scratch);
    tn_activation_backward(&plan->inner, plan->arch->activation, g->dhidden, g->dhidden,
                           acts->before ? acts->before : acts->hidden);
    tn_dense_backward(&plan->in, dz, dw->feed_in, dw->feed_in_bias, g->dhidden, acts->z,
                      w->feed_in, plan->scratch);
}

static void norm_backward(const struct tn_block *b, size_t i, float *dx, bool add,
                          const float *dy, const float *x, const struct tn_block_weights *dw)
{
    tn_norm_backward(&b->plan->rows, dx, add, dw->norm_gain[i], dw->norm_bias[i], dy, x,
                     b->acts->norm[i], b->weights->norm_gain[i], b->plan->scratch);
}

void tn_block_end_backward(const struct tn_block *b, float *d,
                           const struct tn_block_gradients *g,
                           const struct tn_block_weights *dw)
{
    const struct tn_block_activations *const acts = b->acts;

    if (b->plan->arch->norm_first) {
        feed_backward(b, g->branch, d, g, dw);
        norm_backward(b, NORM2, d, true, g->branch, acts->s, dw);
    } else {
        norm_backward(b, NORM2, d, false, d, acts->t, dw);
        feed_backward(b, d, d, g, dw);
        norm_backward(b, NORM1, d, false, d, acts->s, dw);
    }
    tn_dense_backward(&b->plan->out, g->dmixed, dw->out, dw->out_bias,
                      branch_gradient(b, g, d, b->attention_seed), acts->mixed, b->weights->out,
                      b->plan->scratch);
}

void tn_block_begin_backward(const struct tn_block *b, float *d,
                             const struct tn_block_gradients *g,
                             const struct tn_block_weights *dw, const float *x)
{
    const struct tn_block_plan *const plan = b->plan;
    const bool first = plan->arch->norm_first;

    activate_backward(b, g, dw);
    tn_dense_backward(&plan->project, first ? g->branch : d, dw->in[0], dw->in_bias[0],
                      g->dinputs, first ? b->acts->first : x, b->weights->in[0], plan->scratch);
    if (first)
        norm_backward(b, NORM1, d, true, g->branch, x, dw);
}

void tn_block_backward(const struct tn_block *b, float *d, const struct tn_block_gradients *g,
                       const struct tn_block_weights *dw, const float *x)
{
    tn_block_end_backward(b, d, g, dw);
    b->mix_backward(b->arg, b, g);
    tn_block_begin_backward(b, d, g, dw, x);
}
