/* SPDX-License-Identifier: MIT */
/* body_transformer.c - blocks (block.h), and one more norm after the last of them. */
#include <stdio.h>
#include <string.h>

#include "layer/attention_check.h"
#include "layer/attention_kind.h"
#include "model/slices.h"
#include "model/transformer.h"

/* ---- Tensors ------------------------------------------------------------ */

static const char *input_name(char name[64], const tarn_attention_input *input,
                              const char *what)
{
    snprintf(name, 64, "attention.%.*s%s", TN_INPUT_NAME, input->name, what);
    return name;
}

static void bias_tensor(const struct tn_tensor_walk *w, float **at, const char *name,
                        const tarn_attention_input *input, size_t width, size_t F)
{
    if (input->activation == TARN_INPUT_IDENTITY)
        tn_visit_bias(w, at, name, width, F);
    else
        tn_visit_tensor(w, at, name, width, 0, TN_START_VALUE, (double)input->start);
}

static void attention_tensors(const struct tn_tensor_walk *w, struct tn_block_weights *b,
                              const struct tn_arch *arch)
{
    const size_t F = arch->config.width, H = arch->config.heads;
    const tarn_attention_input *const in = arch->inputs;
    char name[64];

    for (size_t i = 0; in[i].name; i++)
        if (!in[i].parameter)
            tn_visit_matrix(w, &b->in[i], input_name(name, &in[i], "_projection.weight"),
                            tn_arch_input_width(arch, i), F);
    for (size_t i = 0; in[i].name; i++)
        if (!in[i].parameter)
            bias_tensor(w, &b->in_bias[i], input_name(name, &in[i], "_projection.bias"), &in[i],
                        tn_arch_input_width(arch, i), F);
    for (size_t i = 0; in[i].name; i++)
        if (in[i].parameter)
            tn_visit_tensor(w, &b->in[i], input_name(name, &in[i], ""), H,
                            tn_arch_input_width(arch, i) / H, TN_START_VALUE,
                            (double)in[i].start);
    tn_visit_matrix(w, &b->out, "attention.out_projection.weight", F, F);
    tn_visit_bias(w, &b->out_bias, "attention.out_projection.bias", F, F);
}

static void block_tensors(const struct tn_tensor_walk *w, struct tn_block_weights *b,
                          const struct tn_arch *arch)
{
    const size_t F = arch->config.width, feed = arch->config.feed;

    attention_tensors(w, b, arch);
    tn_visit_norm(w, &b->norm_gain[0], &b->norm_bias[0], "norm1", F);
    tn_visit_matrix(w, &b->feed_in, "linear1.weight", feed, F);
    tn_visit_bias(w, &b->feed_in_bias, "linear1.bias", feed, F);
    tn_visit_matrix(w, &b->feed_out, "linear2.weight", F, feed);
    tn_visit_bias(w, &b->feed_out_bias, "linear2.bias", F, feed);
    tn_visit_norm(w, &b->norm_gain[1], &b->norm_bias[1], "norm2", F);
}

static void tensors(struct tn_tensor_walk *walk, struct tn_weights *weights,
                    const struct tn_arch *arch)
{
    for (size_t i = 0; i < arch->config.layers; i++) {
        snprintf(walk->prefix, sizeof walk->prefix, "transformer.layers.%zu.", i);
        block_tensors(walk, &weights->blocks[i], arch);
    }
    snprintf(walk->prefix, sizeof walk->prefix, "transformer.");
    tn_visit_norm(walk, &weights->norm_gain, &weights->norm_bias, "norm", arch->config.width);
}

static void pack(const tarn_run *run, struct tn_block_weights *blocks, struct tn_arena *arena)
{
    const struct tn_transformer *const own = run->body;

    for (size_t i = 0; i < tn_run_layers(run); i++) {
        const struct tn_block_weights packed =
            tn_block_pack(&own->block, &run->model->weights.blocks[i], arena);

        if (blocks)
            blocks[i] = packed;
    }
}

/* ---- Plans -------------------------------------------------------------- */

static void *take(const struct tn_arch *arch, struct tn_arena *arena)
{
    const size_t layers = arch->config.layers;
    struct tn_transformer *const own = tn_arena_alloc(arena, 1, sizeof *own);
    tarn_attention *const attentions = tn_arena_alloc(arena, layers, sizeof *attentions);
    float **const inputs = tn_arena_alloc(arena, layers + 1, sizeof *inputs);
    struct tn_block_activations *const activations =
        tn_arena_alloc(arena, layers, sizeof *activations);
    float **const saved = tn_arena_alloc(arena, layers, sizeof *saved);

    if (own) {
        memset(attentions, 0, layers * sizeof *attentions);
        *own = (struct tn_transformer){.attentions = attentions,
                                       .inputs = inputs,
                                       .activations = activations,
                                       .saved = saved};
    }
    return own;
}

/* A stream is a sequence of its own, as long as it may become. */
static tarn_attention_desc attention_desc(const tarn_run *run, const struct tn_run_desc *desc)
{
    const struct tn_arch *const arch = &run->model->arch;

    if (desc->steps)
        return tn_arch_attention(arch, 1, tn_max(desc->longest, 1));
    return tn_arch_attention(arch, run->B, run->N);
}

static tarn_status plan(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    const struct tn_block_desc block = {
        .rows = run->R,
        .trains = desc->trains,
        .packed = desc->packed,
        .elements = desc->elements,
    };
    tarn_attention_desc attention = attention_desc(run, desc);
    struct tn_transformer *const own = run->body;
    tarn_status status = tn_block_init(&own->block, arch, &block, &run->host, err);

    for (size_t layer = 0; layer < arch->config.layers && status == TARN_OK; layer++) {
        attention.seed = tn_arch_seed(arch, layer);
        status = tn_attention_init(&own->attentions[layer], &attention, &run->host, err);
        own->attentions[layer].steps = desc->longest;
    }
    if (status == TARN_OK && desc->steps && desc->longest == 0 &&
        own->attentions[0].kind->caches)
        status = tn_fail(err, TARN_EINVAL,
                         "longest is 0; it must be the maximum sequence length, because the "
                         "state of '%s' attention grows",
                         arch->config.attention);
    return status;
}

static void clear(tarn_run *run)
{
    struct tn_transformer *const own = run->body;

    for (size_t layer = 0; layer < tn_run_layers(run); layer++)
        tn_attention_clear(&own->attentions[layer]);
    tn_block_clear(&own->block);
}

/* ---- Memory ------------------------------------------------------------- */

/* Outside of training a block's input becomes its output. */
static void lay_out_inputs(tarn_run *run, struct tn_arena *arena)
{
    struct tn_transformer *const own = run->body;

    for (size_t i = 0; i <= tn_run_layers(run); i++)
        own->inputs[i] = i == 0 || run->trains
                             ? tn_arena_floats(arena, run->R * run->rows.width)
                             : own->inputs[0];
}

static void lay_out_activations(tarn_run *run, struct tn_arena *arena)
{
    struct tn_transformer *const own = run->body;
    const size_t saved = tarn_attention_saved_size(&own->attentions[0]);

    for (size_t i = 0; i < tn_run_layers(run); i++) {
        const bool apart = i == 0 || (run->trains && !run->recompute);

        own->activations[i] =
            apart ? tn_block_activations_lay_out(&own->block, arena) : own->activations[0];
        own->saved[i] = !run->trains ? NULL
                        : apart      ? tn_arena_alloc(arena, saved, 1)
                                     : own->saved[0];
    }
}

/* Of a step, and of any number of positions; or of whole sequences. */
static size_t attention_size(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;
    tarn_attention attention = own->attentions[0];

    if (!run->steps)
        return tarn_attention_workspace_size(&attention);
    size_t most = tn_attention_step_size(&attention, run->host.threads);

    for (size_t n = 2; n <= run->N; n++) {
        attention.N = attention.Nk = n;
        most = tn_max(most, tarn_attention_workspace_size(&attention));
    }
    return most;
}

static void lay_out(tarn_run *run, struct tn_arena *arena)
{
    struct tn_transformer *const own = run->body;

    if (run->slices) {
        tn_transformer_lay_out_slices(run, arena);
        return;
    }
    lay_out_inputs(run, arena);
    lay_out_activations(run, arena);
    run->x = own->inputs[0];
    run->y = tn_arena_floats(arena, run->R * run->rows.width);
    if (run->trains) {
        own->stats = tn_arena_alloc(arena, run->R, sizeof *own->stats);
        own->gradients = tn_block_gradients_take(&own->block, arena);
    }
    if (run->steps)
        own->states = tn_arena_alloc(arena, run->B, sizeof *own->states);
    own->attention_work = tn_arena_alloc(arena, attention_size(run), 1);
}

static size_t scratch(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;

    return tn_block_scratch_size(&own->block);
}

/* ---- A layer ------------------------------------------------------------ */

struct layer {
    tarn_run *run;
    size_t index;
    const struct tn_step *step; /* NULL: of whole sequences */
};

/* Of one layer: B, one after the other. */
static size_t layer_states(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;
    const tarn_attention *const attention = &own->attentions[0];

    return attention->kind->caches ? 0 : run->B * tarn_attention_state_size(attention);
}

static size_t states(const tarn_run *run)
{
    return tn_run_layers(run) * layer_states(run);
}

static bool states_fit(const tarn_run *run, const void *all, uint64_t position)
{
    const struct tn_transformer *const own = run->body;
    const size_t bytes = tarn_attention_state_size(&own->attentions[0]);

    for (size_t i = 0; i < tn_run_layers(run) * run->B; i++) {
        const void *const state = (const char *)all + i * bytes;

        if (!tn_state_fits(&own->attentions[i / run->B], state) ||
            tn_state_count(state) != position)
            return false;
    }
    return true;
}

static void clear_states(const tarn_run *run, void *all, uint64_t position)
{
    const struct tn_transformer *const own = run->body;
    const size_t bytes = tarn_attention_state_size(&own->attentions[0]);

    memset(all, 0, states(run));
    for (size_t i = 0; i < tn_run_layers(run) * run->B; i++)
        tn_state_set(&own->attentions[i / run->B], (char *)all + i * bytes, (size_t)position);
}

static tarn_attention_arrays arrays_of(const struct layer *layer, const struct tn_block *block)
{
    const struct tn_run_states *const carried = layer->run->states;
    tarn_attention_arrays arrays = tn_block_arrays(block, layer->run->N);

    arrays.key_lengths = layer->run->lengths;
    if (carried) {
        const size_t offset = layer->index * layer_states(layer->run);

        arrays.state0 = (const char *)carried->from + offset;
        arrays.state1 = (char *)carried->to + offset;
    }
    return arrays;
}

static void mix(void *arg, const struct tn_block *block)
{
    const struct layer *const layer = arg;
    const struct tn_transformer *const own = layer->run->body;
    const tarn_attention_arrays arrays = arrays_of(layer, block);

    tn_attention_forward(&own->attentions[layer->index], &arrays, own->saved[layer->index],
                         own->attention_work);
}

static void mix_backward(void *arg, const struct tn_block *block,
                         const struct tn_block_gradients *g)
{
    const struct layer *const layer = arg;
    const struct tn_transformer *const own = layer->run->body;
    tarn_attention_arrays arrays = arrays_of(layer, block);

    tn_block_gradient_arrays(&arrays, block, g);
    tn_attention_backward(&own->attentions[layer->index], &arrays, own->saved[layer->index],
                          own->attention_work);
}

static struct tn_block block_of(struct layer *layer)
{
    tarn_run *const run = layer->run;
    struct tn_transformer *const own = run->body;
    const uint64_t place = 2 * layer->index;

    own->block.scratch = run->scratch;
    return (struct tn_block){
        .plan = &own->block,
        .weights = &run->weights->blocks[layer->index],
        .acts = &own->activations[layer->index],
        .dropout = (float)run->dropout,
        .attention_seed = tn_dropout_seed(run->dropout_seed, 0, place),
        .feed_seed = tn_dropout_seed(run->dropout_seed, 0, place + 1),
        .mix = mix,
        .mix_backward = mix_backward,
        .arg = layer,
    };
}

/* ---- Use ---------------------------------------------------------------- */

static void forward(tarn_run *run)
{
    const struct tn_transformer *const own = run->body;
    const struct tn_weights *const w = run->weights;
    const size_t layers = tn_run_layers(run);

    for (size_t i = 0; i < layers; i++) {
        const struct tn_block block = block_of(&(struct layer){.run = run, .index = i});

        tn_block_forward(&block, own->inputs[i + 1], own->inputs[i]);
    }
    tn_norm_forward(&run->rows, run->y, own->stats, own->inputs[layers], w->norm_gain,
                    w->norm_bias, TN_NORM_EPS);
}

static void backward(tarn_run *run, const struct tn_weights *gradients)
{
    const struct tn_transformer *const own = run->body;
    const size_t layers = tn_run_layers(run);

    tn_norm_backward(&run->rows, run->d, false, gradients->norm_gain, gradients->norm_bias,
                     run->d, own->inputs[layers], own->stats, run->weights->norm_gain,
                     run->scratch);
    for (size_t i = layers; i-- > 0;) {
        const struct tn_block block = block_of(&(struct layer){.run = run, .index = i});

        if (run->recompute)
            tn_block_forward(&block, own->inputs[i + 1], own->inputs[i]);
        tn_block_backward(&block, run->d, &own->gradients, &gradients->blocks[i],
                          own->inputs[i]);
        tn_run_complete(run, gradients->blocks[i].in[0]);
    }
}

/* ---- Steps of streams --------------------------------------------------- */

static size_t layer_bytes(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;

    return tn_round_up(tarn_attention_state_size(&own->attentions[0]), TN_ALIGN);
}

static size_t stream(const tarn_run *run)
{
    size_t bytes;

    return tn_size_product(&bytes, (size_t[]){tn_run_layers(run), layer_bytes(run)}, 2)
               ? bytes
               : SIZE_MAX;
}

static void *layer_state(const tarn_run *run, void *state, size_t layer)
{
    return (char *)state + tn_run_past_size(run) + layer * layer_bytes(run);
}

static const tarn_attention *attention_of(const tarn_run *run, size_t layer)
{
    return &((const struct tn_transformer *)run->body)->attentions[layer];
}

/* Over several positions, attention continues the stream's state with all of them in parallel,
 * and leaves what steps would leave. */
static void step_mix(void *arg, const struct tn_block *block)
{
    const struct layer *const layer = arg;
    const tarn_run *const run = layer->run;
    const struct tn_transformer *const own = run->body;
    tarn_attention attention = own->attentions[layer->index];
    tarn_attention_arrays arrays = tn_block_arrays(block, layer->step->length);

    for (size_t b = 0; b < layer->step->streams; b++)
        own->states[b] = layer_state(run, run->streams[b].state, layer->index);
    if (layer->step->length > 1) {
        attention.N = attention.Nk = layer->step->length;
        arrays.state0 = arrays.state1 = own->states[0];
        tn_attention_forward(&attention, &arrays, NULL, own->attention_work);
    } else
        tn_attention_step(&attention, &arrays, own->states, layer->step->streams,
                          run->host.threads, own->attention_work);
}

/* Only the last positions go through the last norm. */
static void step(tarn_run *run, const struct tn_step *step)
{
    const struct tn_transformer *const own = run->body;
    const size_t F = run->rows.width;
    struct tn_block_plan plan = tn_block_of_rows(&own->block, step->streams * step->length);
    struct tn_rows last = run->rows;

    plan.scratch = run->scratch;
    for (size_t i = 0; i < tn_run_layers(run); i++) {
        const struct tn_block block = {
            .plan = &plan,
            .weights = &run->weights->blocks[i],
            .acts = &own->activations[i],
            .mix = step_mix,
            .arg = &(struct layer){run, i, step},
        };

        tn_block_forward(&block, run->x, run->x);
    }
    last.rows = step->streams;
    for (size_t b = 0; b < step->streams; b++)
        memcpy(run->y + b * F, run->x + ((b + 1) * step->length - 1) * F, F * sizeof(float));
    tn_norm_forward(&last, run->y, NULL, run->y, run->weights->norm_gain,
                    run->weights->norm_bias, TN_NORM_EPS);
}

static double flops(const tarn_run *run)
{
    const struct tn_transformer *const own = run->body;
    const tarn_attention *const attention = &own->attentions[0];

    return (double)tn_run_layers(run) *
           (tarn_attention_forward_flops(attention) + tarn_attention_backward_flops(attention));
}

const struct tn_body tn_body_transformer = {
    .about = {"transformer", "blocks of attention and feed-forward layers", tn_no_options},
    .takes_bf16 = true,
    .row_per_position = true,
    .tensors = tensors,
    .take = take,
    .plan = plan,
    .clear = clear,
    .lay_out = lay_out,
    .scratch = scratch,
    .forward = forward,
    .backward = backward,
    .step = step,
    .stream = stream,
    .layer_state = layer_state,
    .attention = attention_of,
    .pack = pack,
    .states = states,
    .states_fit = states_fit,
    .clear_states = clear_states,
    .slices = &tn_transformer_slices,
    .flops = flops,
};
