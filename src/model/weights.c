/* SPDX-License-Identifier: MIT */
/* weights.c - the list, and what is read off it. */
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

size_t tn_lstm_ways(const struct tn_arch *arch)
{
    return arch->config.causal ? 1 : TN_LSTM_WAYS;
}

size_t tn_lstm_units(const struct tn_arch *arch)
{
    return arch->config.width / tn_lstm_ways(arch);
}

size_t tn_lstm_inputs(const struct tn_arch *arch, size_t layer)
{
    const tarn_config *const config = &arch->config;

    return layer == 0 && config->frames > 0 ? config->frames * config->stack : config->width;
}

/* ---- The list ----------------------------------------------------------- */

struct walk {
    tn_tensor_visitor *visit;
    void *arg;
    char prefix[64];
};

static void tensor(const struct walk *walk, float **at, const char *name, size_t rows,
                   size_t columns, enum tn_start start, size_t fan_in)
{
    char full[160];

    snprintf(full, sizeof full, "%s%s", walk->prefix, name);
    walk->visit(walk->arg, &(struct tn_tensor){full, at, rows, columns, start, fan_in});
}

static void matrix(const struct walk *walk, float **at, const char *name, size_t out, size_t in)
{
    tensor(walk, at, name, out, in, TN_START_UNIFORM, in);
}

static void bias(const struct walk *walk, float **at, const char *name, size_t out, size_t in)
{
    tensor(walk, at, name, out, 0, TN_START_UNIFORM, in);
}

static void norm(const struct walk *walk, float **gain, float **shift, const char *gain_name,
                 const char *shift_name, size_t F)
{
    tensor(walk, gain, gain_name, F, 0, TN_START_ONE, 0);
    tensor(walk, shift, shift_name, F, 0, TN_START_ZERO, 0);
}

static const char *projection_name(char name[64], const tarn_attention_input *input,
                                   const char *what)
{
    snprintf(name, 64, "attention.%.24s_projection.%s", input->name, what);
    return name;
}

static void visit_attention(const struct walk *w, struct tn_block_weights *b,
                            const struct tn_arch *arch)
{
    const size_t F = arch->config.width;
    char name[64];

    for (size_t i = 0; arch->inputs[i].name; i++)
        matrix(w, &b->in[i], projection_name(name, &arch->inputs[i], "weight"),
               tn_arch_input_width(arch, i), F);
    for (size_t i = 0; arch->inputs[i].name; i++)
        bias(w, &b->in_bias[i], projection_name(name, &arch->inputs[i], "bias"),
             tn_arch_input_width(arch, i), F);
    matrix(w, &b->out, "attention.out_projection.weight", F, F);
    bias(w, &b->out_bias, "attention.out_projection.bias", F, F);
}

static void visit_block(const struct walk *w, struct tn_block_weights *b,
                        const struct tn_arch *arch)
{
    const size_t F = arch->config.width, feed = arch->config.feed;

    visit_attention(w, b, arch);
    norm(w, &b->norm1_gain, &b->norm1_bias, "norm1.weight", "norm1.bias", F);
    matrix(w, &b->feed_in, "linear1.weight", feed, F);
    bias(w, &b->feed_in_bias, "linear1.bias", feed, F);
    matrix(w, &b->feed_out, "linear2.weight", F, feed);
    bias(w, &b->feed_out_bias, "linear2.bias", F, feed);
    norm(w, &b->norm2_gain, &b->norm2_bias, "norm2.weight", "norm2.bias", F);
}

/* Named and started as PyTorch's. */
static void visit_lstm(const struct walk *w, struct tn_block_weights *b,
                       const struct tn_arch *arch, size_t layer)
{
    const size_t H = tn_lstm_units(arch), in = tn_lstm_inputs(arch, layer);

    for (size_t way = 0; way < tn_lstm_ways(arch); way++) {
        struct tn_lstm_weights *const to = &b->lstm[way];
        const struct {
            float **at;
            const char *name;
            size_t columns;
        } rows[] = {{&to->in, "weight_ih", in},
                    {&to->hidden, "weight_hh", H},
                    {&to->in_bias, "bias_ih", 0},
                    {&to->hidden_bias, "bias_hh", 0}};

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char name[64];

            snprintf(name, sizeof name, "lstm.%s_l%zu%s", rows[i].name, layer,
                     way ? "_reverse" : "");
            tensor(w, rows[i].at, name, 4 * H, rows[i].columns, TN_START_UNIFORM, H);
        }
    }
}

static void visit_frames(const struct walk *w, struct tn_weights *weights,
                         const struct tn_arch *arch)
{
    const size_t in = arch->config.frames * arch->config.stack;

    matrix(w, &weights->frames, "frame_projection.weight", arch->position.embedding, in);
    bias(w, &weights->frames_bias, "frame_projection.bias", arch->position.embedding, in);
}

void tn_weights_visit(struct tn_weights *weights, const struct tn_arch *arch,
                      tn_tensor_visitor *visit, void *arg)
{
    const tarn_config *const config = &arch->config;
    const size_t F = config->width, outputs = arch->head.outputs;
    struct walk walk = {visit, arg, ""};

    if (config->frames > 0 && !arch->lstm)
        visit_frames(&walk, weights, arch);
    else if (config->frames == 0)
        tensor(&walk, &weights->embedding, "value_embedding.weight", config->symbols,
               arch->position.embedding, TN_START_NORMAL, 0);
    if (arch->context.count > 0)
        tensor(&walk, &weights->context, "context_embedding.weight",
               tn_context_rows(&arch->context), arch->position.embedding, TN_START_UNIFORM,
               arch->context.count);
    if (arch->position.row->learned)
        tensor(&walk, &weights->positions, "pos_embedding.weight", config->positions, F,
               TN_START_NORMAL, 0);
    for (size_t i = 0; i < config->layers && arch->lstm; i++)
        visit_lstm(&walk, &weights->blocks[i], arch, i);
    for (size_t i = 0; i < config->layers && !arch->lstm; i++) {
        snprintf(walk.prefix, sizeof walk.prefix, "transformer.layers.%zu.", i);
        visit_block(&walk, &weights->blocks[i], arch);
    }
    walk.prefix[0] = '\0';
    if (!arch->lstm)
        norm(&walk, &weights->norm_gain, &weights->norm_bias, "transformer.norm.weight",
             "transformer.norm.bias", F);
    matrix(&walk, &weights->predictor, "predictor.weight", outputs, F);
    bias(&walk, &weights->predictor_bias, "predictor.bias", outputs, F);
}

/* ---- Counting ----------------------------------------------------------- */

struct total {
    size_t floats, tensors;
};

static void count(void *arg, const struct tn_tensor *tensor)
{
    struct total *const total = arg;
    size_t floats;

    if (!tn_size_product(&floats, (size_t[]){tensor->rows, tn_max(tensor->columns, 1)}, 2) ||
        floats > SIZE_MAX / 64 - total->floats)
        floats = SIZE_MAX / 64 - total->floats;
    total->floats += floats;
    total->tensors++;
}

size_t tn_weights_count(const struct tn_arch *arch, size_t *tensors)
{
    struct tn_block_weights blocks[2];
    struct tn_arch some = *arch;
    struct total two = {0, 0}, one = {0, 0};
    const size_t more = arch->config.layers - 1;

    /* There may be many, and they are alike but for the first: a model of one, and another for
     * what one adds. */
    some.config.layers = 2;
    tn_weights_visit(&(struct tn_weights){.blocks = blocks}, &some, count, &two);
    some.config.layers = 1;
    tn_weights_visit(&(struct tn_weights){.blocks = blocks}, &some, count, &one);
    const size_t each = two.floats - one.floats;
    size_t floats;

    if (tensors)
        *tensors = one.tensors + more * (two.tensors - one.tensors);
    if (two.floats >= SIZE_MAX / 64 || !tn_size_product(&floats, (size_t[]){each, more}, 2) ||
        floats > SIZE_MAX / 64 - one.floats)
        return SIZE_MAX;
    return one.floats + floats;
}

/* ---- Carving ------------------------------------------------------------ */

static void carve(void *arg, const struct tn_tensor *tensor)
{
    float **const next = arg;

    *tensor->at = *next;
    *next += tn_tensor_count(tensor);
}

void tn_weights_carve(struct tn_weights *weights, const struct tn_arch *arch, float *floats)
{
    weights->embedding = weights->context = weights->positions = NULL;
    weights->frames = weights->frames_bias = NULL;
    weights->norm_gain = weights->norm_bias = NULL;
    memset(weights->blocks, 0, arch->config.layers * sizeof *weights->blocks);
    tn_weights_visit(weights, arch, carve, &floats);
}
