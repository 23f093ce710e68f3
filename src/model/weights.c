/* SPDX-License-Identifier: MIT */
/* weights.c - the list, and what is read off it. */
#include "model/weights.h"

#include <stdio.h>
#include <string.h>

#include "model/body.h"

/* ---- The list ----------------------------------------------------------- */

void tn_visit_tensor(const struct tn_tensor_walk *walk, float **at, const char *name,
                     size_t rows, size_t columns, enum tn_start start, double by)
{
    char full[160];

    snprintf(full, sizeof full, "%s%s", walk->prefix, name);
    walk->visit(walk->arg, &(struct tn_tensor){full, at, rows, columns, start, by});
}

void tn_visit_matrix(const struct tn_tensor_walk *walk, float **at, const char *name,
                     size_t out, size_t in)
{
    tn_visit_tensor(walk, at, name, out, in, TN_START_UNIFORM, (double)in);
}

void tn_visit_bias(const struct tn_tensor_walk *walk, float **at, const char *name, size_t out,
                   size_t in)
{
    tn_visit_tensor(walk, at, name, out, 0, TN_START_UNIFORM, (double)in);
}

void tn_visit_norm(const struct tn_tensor_walk *walk, float **gain, float **shift,
                   const char *name, size_t F)
{
    char full[64];

    snprintf(full, sizeof full, "%s.weight", name);
    tn_visit_tensor(walk, gain, full, F, 0, TN_START_VALUE, 1.0);
    snprintf(full, sizeof full, "%s.bias", name);
    tn_visit_tensor(walk, shift, full, F, 0, TN_START_VALUE, 0.0);
}

static void visit_frames(const struct tn_tensor_walk *w, struct tn_weights *weights,
                         const struct tn_arch *arch)
{
    const size_t in = arch->config.frames * arch->config.stack;

    tn_visit_matrix(w, &weights->frames, "frame_projection.weight", arch->position.embedding,
                    in);
    tn_visit_bias(w, &weights->frames_bias, "frame_projection.bias", arch->position.embedding,
                  in);
}

void tn_weights_visit(struct tn_weights *weights, const struct tn_arch *arch,
                      tn_tensor_visitor *visit, void *arg)
{
    const tarn_config *const config = &arch->config;
    const size_t F = config->width, outputs = arch->head.outputs;
    struct tn_tensor_walk walk = {visit, arg, ""};

    if (config->frames == 0)
        tn_visit_tensor(&walk, &weights->embedding, "value_embedding.weight", config->symbols,
                        arch->position.embedding, TN_START_NORMAL, 0);
    else if (!arch->body->takes_frames)
        visit_frames(&walk, weights, arch);
    if (arch->context.count > 0)
        tn_visit_tensor(&walk, &weights->context, "context_embedding.weight",
                        tn_context_rows(&arch->context), arch->position.embedding,
                        TN_START_UNIFORM, (double)arch->context.count);
    if (arch->position.row->learned)
        tn_visit_tensor(&walk, &weights->positions, "pos_embedding.weight", config->positions,
                        F, TN_START_NORMAL, 0);
    arch->body->tensors(&walk, weights, arch);
    walk.prefix[0] = '\0';
    tn_visit_matrix(&walk, &weights->predictor, "predictor.weight", outputs, F);
    tn_visit_bias(&walk, &weights->predictor_bias, "predictor.bias", outputs, F);
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
