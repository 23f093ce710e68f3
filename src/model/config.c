/* SPDX-License-Identifier: MIT */
/* config.c - what a configuration may say. */
#include "model/config.h"

#include <string.h>

#include "layer/attention_kind.h"
#include "model/body.h"

#define FIELD(kind, name, least, most, ...)                                                    \
    TN_FIELD(tarn_config, kind, name, least, most, __VA_ARGS__)

#define FIELD_SINCE(kind, name, least, most, before, ...)                                      \
    TN_FIELD_SINCE(tarn_config, kind, name, least, most, before, __VA_ARGS__)

#define NAME(name, before, limit, ...)                                                         \
    TN_FIELD_NAME(tarn_config, name, before, limit, __VA_ARGS__)

/* ---- Names -------------------------------------------------------------- */

static const struct tn_body *const bodies[] = {&tn_body_transformer, &tn_body_lstm};

static const tarn_table_row *body_row(size_t index)
{
    return index < sizeof bodies / sizeof bodies[0] ? &bodies[index]->about : NULL;
}

const struct tn_table tn_bodies = {"body", body_row};

enum { POST, PRE };
enum { RELU, GELU };
static const char *const norms[] = {[POST] = "post", [PRE] = "pre", NULL};
static const char *const activations[] = {[RELU] = "relu", [GELU] = "gelu", NULL};

static const struct tn_table attentions = {"attention", tarn_attention_kind};

static tarn_status check_feature_map(const char *value, tarn_error *err)
{
    return *value ? tn_table_check(&tn_feature_maps, value, err) : TARN_OK;
}

static tarn_status check_context(const char *value, tarn_error *err)
{
    struct tn_context context;

    return tn_context_init(&context, value, 0, err);
}

/* ---- The table ---------------------------------------------------------- */

const struct tn_field tn_config_fields[] = {
    FIELD(TEXT, task, 0, 0, "what the model is for, such as text or image", "SPEC"),
    NAME(attention, NULL, .table = &attentions, "attention kind, with options", "SPEC"),
    NAME(feature_map, NULL, .check = check_feature_map,
         "feature map of the attention, if it has one; empty: the default", "SPEC"),
    NAME(position, NULL, .table = &tn_positions, "position encoding", "SPEC"),
    NAME(context, "", .check = check_context,
         "also embed the symbols these many positions back, such as 1,27,28; empty: none",
         "LIST"),
    NAME(head, NULL, .table = &tn_heads, "output head", "SPEC"),
    NAME(norm, NULL, .words = norms,
         "layer norm: post (after each residual sum, as in the paper) or pre", "post|pre"),
    NAME(activation, NULL, .words = activations,
         "activation of the feed-forward layers: relu or gelu", "relu|gelu"),
    NAME(body, "transformer", .table = &tn_bodies,
         "transformer blocks, or LSTM layers with as many outputs as the model is wide",
         "transformer|lstm"),
    FIELD(FLAG, causal, 0, 0, "each position attends only to itself and earlier ones"),
    FIELD(COUNT, symbols, 1, 1 << 24, "number of different input symbols", "N"),
    FIELD_SINCE(COUNT, frames, 0, 1 << 16, "0", "floats per input frame; 0: inputs are symbols",
                "N"),
    FIELD_SINCE(COUNT, stack, 1, 1 << 10, "1", "frames stacked into one position", "N"),
    FIELD(COUNT, layers, 1, 1024, "number of layers", "L"),
    FIELD(COUNT, heads, 1, 4096, "attention heads", "H"),
    FIELD(COUNT, width, 1, 1 << 20, "model width, a multiple of heads", "F"),
    FIELD(COUNT, feed, 1, 1 << 24, "width of the feed-forward layers", "N"),
    FIELD(COUNT, positions, 0, 1 << 30,
          "maximum sequence length with learned positions; else 0", "N"),
    FIELD(NUMBER, dropout, 0.0, 0.99, "dropout probability in training", "FRACTION"),
    FIELD(SEED, seed, 0, TN_FIELD_MOST,
          "random seed of initial weights, random features and hashes", "S"),
    {.about = {.name = NULL}},
};

const tarn_field *tarn_config_field(size_t index)
{
    const size_t rows = sizeof tn_config_fields / sizeof tn_config_fields[0] - 1;

    return index < rows ? &tn_config_fields[index].about : NULL;
}

tarn_status tarn_config_set(tarn_config *config, const char *name, const char *value,
                            tarn_error *err)
{
    if (!config || !name || !value)
        return tn_fail(err, TARN_EINVAL, "config, name and value must not be NULL");
    return tn_fields_set(tn_config_fields, config, name, value, err);
}

tarn_status tarn_config_text(const tarn_config *config, char *text, size_t size,
                             const char *name, tarn_error *err)
{
    if (!config || !text || !name)
        return tn_fail(err, TARN_EINVAL, "config, text and name must not be NULL");
    return tn_fields_text(tn_config_fields, config, text, size, name, err);
}

/* ---- Looking names up --------------------------------------------------- */

static tarn_status read_words(struct tn_arch *arch, tarn_error *err)
{
    size_t norm = POST, activation = RELU;
    tarn_status status = tn_option_word(&norm, norms, "norm", arch->config.norm, err);

    if (status == TARN_OK)
        status = tn_option_word(&activation, activations, "activation", arch->config.activation,
                                err);
    arch->norm_first = norm == PRE;
    arch->activation = activation == GELU ? TN_GELU : TN_RELU;
    return status;
}

tarn_attention_desc tn_arch_attention(const struct tn_arch *arch, size_t B, size_t N)
{
    const tarn_config *const config = &arch->config;

    return (tarn_attention_desc){
        .kind = config->attention,
        .feature_map = *config->feature_map ? config->feature_map : NULL,
        .causal = config->causal,
        .batch = B,
        .heads = config->heads,
        .queries = N,
        .keys = N,
        .query_width = arch->D,
        .value_width = arch->D,
    };
}

/* Every layer has its own random features and hashes. */
uint64_t tn_arch_seed(const struct tn_arch *arch, size_t layer)
{
    return arch->config.seed + 0x9e3779b97f4a7c15 * (layer + 1);
}

size_t tn_arch_input_width(const struct tn_arch *arch, size_t i)
{
    return arch->config.heads * (arch->inputs[i].width == TARN_SCALAR ? 1 : arch->D);
}

/* Of the inputs before `end` that are parameters, or are not. */
static size_t floats_before(const struct tn_arch *arch, size_t end, bool parameters)
{
    size_t floats = 0;

    for (size_t i = 0; i < end; i++)
        floats += arch->inputs[i].parameter == parameters ? tn_arch_input_width(arch, i) : 0;
    return floats;
}

size_t tn_arch_input_from(const struct tn_arch *arch, size_t i)
{
    return floats_before(arch, i, arch->inputs[i].parameter);
}

size_t tn_arch_projected(const struct tn_arch *arch)
{
    return floats_before(arch, tn_input_count(arch->inputs), false);
}

size_t tn_arch_parameters(const struct tn_arch *arch)
{
    return floats_before(arch, tn_input_count(arch->inputs), true);
}

/* One product makes all projections, and names of tensors have names of inputs in them. */
static tarn_status check_inputs_of(const tarn_attention *plan, tarn_error *err)
{
    const tarn_attention_input *const in = plan->kind->inputs;

    if (!in[0].name || in[0].parameter)
        return tn_fail(err, TARN_EINVAL,
                       "attention: the first input of '%s' is a parameter; a model needs one "
                       "that it projects",
                       plan->kind->about.name);
    for (size_t i = 0; in[i].name; i++)
        if (i == TARN_ATTENTION_INPUTS || strlen(in[i].name) > TN_INPUT_NAME)
            return tn_fail(err, TARN_EINVAL,
                           "attention: '%s' has the input '%.40s'; a model takes at most %d, "
                           "with names of at most %d bytes",
                           plan->kind->about.name, in[i].name, TARN_ATTENTION_INPUTS,
                           TN_INPUT_NAME);
    return TARN_OK;
}

/* A plan for one position says whether kind, map and widths fit together. What it calls its
 * kind is a configuration's attention: a refusal names that. */
static tarn_status read_attention(struct tn_arch *arch, tarn_error *err)
{
    const tarn_attention_desc desc = tn_arch_attention(arch, 1, 1);
    const struct tn_host host = {.kernels = tn_kernels_pick(NULL), .threads = 1};
    tarn_attention plan;
    tarn_status status = tn_table_check(&attentions, arch->config.attention, err);

    if (status != TARN_OK)
        return status;
    if ((status = tn_attention_init(&plan, &desc, &host, err)) == TARN_OK) {
        arch->inputs = plan.kind->inputs;
        arch->has_step = arch->body->step && plan.kind->step;
        status = check_inputs_of(&plan, err);
    }
    tn_attention_clear(&plan);
    return status;
}

static tarn_status read_position(struct tn_arch *arch, tarn_error *err)
{
    const tarn_config *const config = &arch->config;
    const tarn_status status =
        tn_position_init(&arch->position, config->position, config->width, err);

    if (status != TARN_OK)
        return status;
    const struct tn_position_row *const row = arch->position.row;

    if (row->learned != (config->positions > 0))
        return tn_fail(err, TARN_EINVAL, "positions is %zu; it must be %s", config->positions,
                       row->learned
                           ? "at least 1 with learned positions, the maximum sequence length"
                           : "0 unless positions are learned");
    return TARN_OK;
}

static tarn_status read_body(struct tn_arch *arch, tarn_error *err)
{
    tarn_status status;

    arch->body = tn_table_find(&tn_bodies, NULL, arch->config.body, &status, err);
    if (!arch->body)
        return status;
    return arch->body->check ? arch->body->check(arch, err) : TARN_OK;
}

static tarn_status check_inputs(const tarn_config *config, tarn_error *err)
{
    if (config->frames > 0 && *config->context)
        return tn_fail(err, TARN_EINVAL,
                       "context is '%.40s'; it must be empty for a model that reads frames",
                       config->context);
    if (config->frames == 0 && config->stack != 1)
        return tn_fail(err, TARN_EINVAL,
                       "stack is %zu; it must be 1 for a model that reads symbols",
                       config->stack);
    return TARN_OK;
}

tarn_status tn_arch_init(struct tn_arch *arch, const tarn_config *config, tarn_error *err)
{
    tarn_status status;

    if ((status = tn_fields_check(tn_config_fields, config, err)) != TARN_OK)
        return status;
    if (config->width % config->heads != 0)
        return tn_fail(err, TARN_EINVAL, "width is %zu; it must be a multiple of heads, %zu",
                       config->width, config->heads);
    *arch = (struct tn_arch){.config = *config, .D = config->width / config->heads};
    if ((status = check_inputs(config, err)) != TARN_OK ||
        (status = read_body(arch, err)) != TARN_OK ||
        (status = read_words(arch, err)) != TARN_OK ||
        (status = read_attention(arch, err)) != TARN_OK ||
        (status = read_position(arch, err)) != TARN_OK ||
        (status = tn_context_init(&arch->context, config->context, config->symbols, err)) !=
            TARN_OK)
        return status;
    return tn_head_init(&arch->head, config->head, config->symbols, err);
}

tarn_status tarn_config_check(const tarn_config *config, tarn_error *err)
{
    struct tn_arch arch;

    return config ? tn_arch_init(&arch, config, err)
                  : tn_fail(err, TARN_EINVAL, "config must not be NULL");
}
