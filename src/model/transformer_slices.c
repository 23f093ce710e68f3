/* SPDX-License-Identifier: MIT */
/* transformer_slices.c - blocks of sequences in slices (slices.h). All slices go through a
 * block up to its attention, then on from it; activations that all of them share are
 * formed again, half a block at a time.
 *
 * With `recompute`, only every k-th layer's inputs are kept, k about the root of the number of
 * layers. Those between are formed again from the states before each slice, or from what
 * attention left, without another exchange. */
#include <math.h>
#include <string.h>

#include "model/slices.h"
#include "model/transformer.h"

struct place {
    tarn_run *run;
    size_t layer, i; /* own slice */
};

/* Where the R x F floats of the i-th of all slices are. */
static float *of_slice(const tarn_run *run, float *all, size_t i)
{
    return all + i * run->R * run->rows.width;
}

/* Inputs that are not kept are there until the next layer's are. */
static float *input_of(const struct place *p, size_t layer)
{
    const struct tn_transformer *const own = p->run->body;

    return of_slice(p->run, own->inputs[layer], p->i);
}

static bool shares_activations(const tarn_run *run)
{
    return run->recompute && run->slices->own > 1;
}

static bool keeps_outputs(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;

    return own->slices.way->keeps_outputs;
}

static size_t activations_index(const struct place *p)
{
    return p->run->recompute ? 0 : p->layer * p->run->slices->own + p->i;
}

static bool keeps_input(const tarn_run *run, size_t layer)
{
    const size_t each = run->recompute ? (size_t)(sqrt((double)tn_run_layers(run)) + 0.5) : 1;

    return layer < tn_run_layers(run) && layer % each == 0;
}

/* ---- Memory ------------------------------------------------------------- */

static void lay_out_activations(tarn_run *run, struct tn_arena *arena)
{
    struct tn_transformer *const own = run->body;
    const size_t count = run->recompute ? 1 : tn_run_layers(run) * run->slices->own;
    const size_t saved =
        keeps_outputs(run) ? 0 : tarn_attention_saved_size(&own->attentions[0]);

    own->activations = tn_arena_alloc(arena, count, sizeof *own->activations);
    own->saved = tn_arena_alloc(arena, count, sizeof *own->saved);
    for (size_t i = 0; i < count; i++) {
        const struct tn_block_activations acts =
            tn_block_activations_lay_out(&own->block, arena);
        float *const kept = tn_arena_alloc(arena, saved, 1);

        if (own->activations && own->saved) {
            own->activations[i] = acts;
            own->saved[i] = kept;
        }
    }
}

void tn_transformer_lay_out_slices(tarn_run *run, struct tn_arena *arena)
{
    struct tn_transformer *const own = run->body;
    const size_t all = run->slices->own * run->R, F = run->rows.width;

    own->slices.run = run;
    own->slices.way = tn_slice_way_of(&own->attentions[0]);
    own->d = tn_arena_floats(arena, all * F);
    for (size_t i = 0; i <= tn_run_layers(run); i++)
        own->inputs[i] = keeps_input(run, i) ? tn_arena_floats(arena, all * F) : own->d;
    lay_out_activations(run, arena);
    run->y = tn_arena_floats(arena, run->R * F);
    own->stats = tn_arena_alloc(arena, run->R, sizeof *own->stats);
    own->spare = tn_arena_floats(arena, run->R * F);
    own->dmixed = tn_arena_floats(arena, keeps_outputs(run) ? 0 : all * F);
    own->gradients = tn_block_gradients_take(&own->block, arena);
    own->slices.way->lay_out(&own->slices, &own->attentions[0], arena);
    own->attention_work =
        tn_arena_alloc(arena, tarn_attention_workspace_size(&own->attentions[0]), 1);
    own->slices.work = own->attention_work;
}

static tarn_status check(const tarn_run *run, tarn_error *err)
{
    const struct tn_transformer *const own = run->body;

    if (tn_slice_way_of(&own->attentions[0]))
        return TARN_OK;
    return tn_fail(err, TARN_EINVAL,
                   "sequence_chunks must be 0 with '%s' attention: it has no state that one "
                   "chunk of a sequence could leave to the next",
                   own->attentions[0].kind->about.name);
}

static void select(tarn_run *run, size_t i)
{
    const struct tn_transformer *const own = run->body;

    run->x = of_slice(run, own->inputs[0], i);
    run->d = of_slice(run, own->d, i);
}

/* ---- A slice of a layer ------------------------------------------------- */

static struct tn_block block_of(const struct place *p)
{
    tarn_run *const run = p->run;
    struct tn_transformer *const own = run->body;
    const uint64_t number = 1 + tn_slice_number(run, p->i), at = 2 * p->layer;

    own->block.scratch = run->scratch;
    return (struct tn_block){
        .plan = &own->block,
        .weights = &run->weights->blocks[p->layer],
        .acts = &own->activations[activations_index(p)],
        .dropout = (float)run->dropout,
        .attention_seed = tn_dropout_seed(run->dropout_seed, number, at),
        .feed_seed = tn_dropout_seed(run->dropout_seed, number, at + 1),
    };
}

static struct tn_block_gradients gradients_of(const struct place *p)
{
    const struct tn_transformer *const own = p->run->body;
    struct tn_block_gradients g = own->gradients;

    if (!keeps_outputs(p->run))
        g.dmixed = of_slice(p->run, own->dmixed, p->i);
    return g;
}

static struct tn_slice_call call_of(const struct place *p, const struct tn_block *block)
{
    const struct tn_transformer *const own = p->run->body;
    struct tn_slice_call call = {
        .attention = &own->attentions[p->layer],
        .layer = p->layer,
        .i = p->i,
        .arrays = tn_block_arrays(block, p->run->N),
        .saved = own->saved[activations_index(p)],
        .work = own->attention_work,
    };

    call.arrays.key_lengths = p->run->lengths;
    return call;
}

static struct tn_slice_call back_call_of(const struct place *p, const struct tn_block *block,
                                         const struct tn_block_gradients *g)
{
    struct tn_slice_call call = call_of(p, block);

    tn_block_gradient_arrays(&call.arrays, block, g);
    return call;
}

/* ---- Forward ------------------------------------------------------------ */

/* Attention's part, note() or forward(), from x; NULL: from what is there, or is kept. */
static void attend(const struct place *p, const float *x,
                   void (*part)(struct tn_slice_states *, const struct tn_slice_call *))
{
    struct tn_transformer *const own = p->run->body;

    tn_slices_select(p->run, p->i);
    const struct tn_block block = block_of(p);
    const struct tn_slice_call call = call_of(p, &block);

    if (x)
        tn_block_begin(&block, x);
    part(&own->slices, &call);
}

/* y may be x. */
static void end(const struct place *p, float *y, const float *x)
{
    const struct tn_block block = block_of(p);

    tn_block_end(&block, y, x);
}

static void forward(tarn_run *run)
{
    struct tn_transformer *const own = run->body;
    const struct tn_slice_way *const way = own->slices.way;

    for (size_t layer = 0; layer < tn_run_layers(run); layer++) {
        for (size_t i = 0; i < run->slices->own; i++) {
            const struct place p = {run, layer, i};

            attend(&p, input_of(&p, layer), way->note);
        }
        way->exchange(&own->slices, &own->attentions[layer], layer);
        for (size_t i = 0; i < run->slices->own; i++) {
            const struct place p = {run, layer, i};
            float *const x = input_of(&p, layer);

            attend(&p, shares_activations(run) && !keeps_outputs(run) ? x : NULL, way->forward);
            end(&p, input_of(&p, layer + 1), x);
        }
    }
}

/* Where d belongs are the last layer's outputs, which are needed again. */
static void finish(tarn_run *run)
{
    const struct tn_transformer *const own = run->body;
    const struct place p = {run, tn_run_layers(run), run->slices->at};

    run->d = own->spare;
    tn_norm_forward(&run->rows, run->y, own->stats, input_of(&p, p.layer),
                    run->weights->norm_gain, run->weights->norm_bias, TN_NORM_EPS);
}

/* ---- Backward ----------------------------------------------------------- */

static void finish_backward(tarn_run *run, const struct tn_weights *gradients)
{
    const struct tn_transformer *const own = run->body;
    const struct place p = {run, tn_run_layers(run), run->slices->at};

    tn_norm_backward(&run->rows, run->d, false, gradients->norm_gain, gradients->norm_bias,
                     run->d, input_of(&p, p.layer), own->stats, run->weights->norm_gain,
                     run->scratch);
    select(run, run->slices->at);
    memcpy(run->d, own->spare, run->R * run->rows.width * sizeof(float));
}

/* The input of the layer, which may have to be formed again, in the spare rows. */
static const float *restore(const struct place *p)
{
    const struct tn_transformer *const own = p->run->body;
    struct place before = *p;

    while (!keeps_input(p->run, before.layer))
        before.layer--;
    const float *x = input_of(p, before.layer);

    for (; before.layer < p->layer; before.layer++) {
        attend(&before, keeps_outputs(p->run) ? NULL : x, own->slices.way->forward);
        end(&before, own->spare, x);
        x = own->spare;
    }
    return x;
}

/* The tensors behind attention; pre-norm, the first norm is among them, and is summed again. */
static struct tn_span span_behind(const struct place *p, const struct tn_weights *w)
{
    const float *const end =
        p->layer + 1 < tn_run_layers(p->run) ? w->blocks[p->layer + 1].in[0] : w->norm_gain;

    return (struct tn_span){w->blocks[p->layer].out, end};
}

static struct tn_span span_before(const struct place *p, const struct tn_weights *w)
{
    return (struct tn_span){w->blocks[p->layer].in[0], w->blocks[p->layer].out};
}

static struct tn_span span_of_norm(const struct place *p, const struct tn_weights *w)
{
    const struct tn_block_weights *const b = &w->blocks[p->layer];

    return (struct tn_span){b->norm_gain[0],
                            p->run->model->arch.norm_first ? b->feed_in : b->norm_gain[0]};
}

static void end_backward(const struct place *p, struct tn_gradient_sums *sums)
{
    struct tn_transformer *const own = p->run->body;
    const struct tn_weights *const leaf = tn_gradient_sums_leaf(sums);
    const struct tn_span span = span_behind(p, leaf);

    tn_slices_select(p->run, p->i);
    if (p->run->recompute) {
        const float *const x = restore(p);

        attend(p, x, own->slices.way->forward);
        end(p, p->run->y, x); /* which is not needed */
    }
    const struct tn_block block = block_of(p);
    const struct tn_block_gradients g = gradients_of(p);
    const struct tn_slice_call call = back_call_of(p, &block, &g);

    tn_gradient_sums_clear(sums, span);
    tn_block_end_backward(&block, p->run->d, &g, &leaf->blocks[p->layer]);
    own->slices.way->note_back(&own->slices, &call);
    tn_gradient_sums_add(sums, span);
    tn_branches_end_leaf(&sums->branches);
}

/* What this half needs of activations that others had since; and the input. */
static const float *begin_again(const struct place *p)
{
    const struct tn_transformer *const own = p->run->body;

    tn_slices_select(p->run, p->i);
    if (!shares_activations(p->run))
        return keeps_input(p->run, p->layer) ? input_of(p, p->layer) : own->spare;
    const float *const x = restore(p);

    if (keeps_outputs(p->run)) {
        const struct tn_block block = block_of(p);

        tn_block_begin(&block, x);
    } else
        attend(p, x, own->slices.way->forward);
    return x;
}

static void begin_backward(const struct place *p, struct tn_gradient_sums *sums)
{
    struct tn_transformer *const own = p->run->body;
    const struct tn_weights *const leaf = tn_gradient_sums_leaf(sums);
    const struct tn_span span = span_before(p, leaf), norm = span_of_norm(p, leaf);
    const float *const x = begin_again(p);
    const struct tn_block block = block_of(p);
    const struct tn_block_gradients g = gradients_of(p);
    const struct tn_slice_call call = back_call_of(p, &block, &g);

    tn_gradient_sums_clear(sums, span);
    tn_gradient_sums_clear(sums, norm);
    own->slices.way->backward(&own->slices, &call);
    tn_block_begin_backward(&block, p->run->d, &g, &leaf->blocks[p->layer], x);
    tn_gradient_sums_add(sums, span);
    tn_gradient_sums_add(sums, norm);
    tn_branches_end_leaf(&sums->branches);
}

static void backward(tarn_run *run, struct tn_gradient_sums *sums)
{
    struct tn_transformer *const own = run->body;

    for (size_t layer = tn_run_layers(run); layer-- > 0;) {
        tn_branches_begin(&sums->branches);
        for (size_t i = run->slices->own; i-- > 0;)
            end_backward(&(struct place){run, layer, i}, sums);
        own->slices.way->exchange_back(&own->slices, &own->attentions[layer], layer);
        tn_branches_begin(&sums->branches);
        for (size_t i = 0; i < run->slices->own; i++)
            begin_backward(&(struct place){run, layer, i}, sums);
        tn_gradient_sums_complete(sums, sums->weights[0].blocks[layer].in[0]);
    }
}

const struct tn_body_slices tn_transformer_slices = {
    .check = check,
    .select = select,
    .forward = forward,
    .backward = backward,
    .finish = finish,
    .finish_backward = finish_backward,
};
