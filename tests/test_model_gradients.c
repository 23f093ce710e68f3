/* SPDX-License-Identifier: MIT */
/* test_model_gradients.c - the slope of the loss along random directions of every tensor
 * against its gradient, for models of every shape. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/body.h"
#include "support/model_case.h"

enum { B = 2, N = 9 };

struct trial {
    tarn_model *model;
    tarn_run *run;
    int32_t inputs[B * N], targets[B * N];
    float weights[B * N], frames[B * N * MODEL_FRAMES];
    size_t lengths[B], counts[B];
    float *g;
    struct tn_weights gradients;
    struct tn_block_weights blocks[2];
};

/* Of symbols, of frames, and LSTMs of symbols. */
static const struct model_variant *variant_at(size_t index)
{
    static const struct model_variant lstms[] = {
        {"symbols, lstm, one way", {{"body", "lstm"}, {0}}},
        {"symbols, lstm, both ways", {{"body", "lstm"}, {"causal", "false"}, {0}}},
    };
    size_t models = 0, frames = 0;

    while (model_variant_at(models))
        models++;
    while (frame_variant_at(frames))
        frames++;
    if (index < models)
        return model_variant_at(index);
    if (index < models + frames)
        return frame_variant_at(index - models);
    return index < models + frames + 2 ? &lstms[index - models - frames] : NULL;
}

/* Half of the inner units on and half off, none near relu's corner, where there is no slope. */
static void avoid_corners(tarn_model *model)
{
    for (size_t layer = 0; layer < model->arch.config.layers; layer++)
        for (size_t i = 0; i < model->arch.config.feed; i++)
            model->weights.blocks[layer].feed_in_bias[i] = i % 2 ? 4.0f : -4.0f;
}

static bool of_frames(const struct trial *t)
{
    return t->model->arch.config.frames > 0;
}

static bool of_sequences(const struct trial *t)
{
    return t->model->arch.head.row->sequence;
}

/* Of sequences the first is shorter, and both count. */
static void draw_sequences(struct trial *t, struct tn_random *random)
{
    for (size_t b = 0; b < B; b++) {
        t->lengths[b] = b == 0 ? N - 2 : N;
        t->counts[b] = 2;
    }
    if (of_frames(t))
        tn_run_sizes(t->run, t->run->T, t->lengths);
    for (size_t i = 0; of_sequences(t) && i < B * N; i++)
        t->targets[i] = 1 + (int32_t)below(random, MODEL_SYMBOLS - 1);
    for (size_t b = 0; of_sequences(t) && b < B; b++)
        t->weights[b] = 1.0f + (float)b;
}

static void trial_open(struct trial *t, const struct model_variant *variant, bool recompute,
                       size_t threads, double dropout)
{
    const struct tn_run_desc desc = {.B = B, .N = N, .trains = true, .recompute = recompute};
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 77);
    t->model = model_of(variant);
    check_ok(tn_run_create(&t->run, t->model, &desc, forced_host(threads), &err), &err);
    t->run->dropout = dropout;
    t->run->dropout_seed = 5;
    draw_symbols(t->inputs, B * N, &random);
    draw_symbols(t->targets, B * N, &random);
    for (size_t i = 0; i < B * N; i++)
        t->weights[i] = (float)below(&random, 2);
    for (size_t i = 0; i < B * N * MODEL_FRAMES; i++)
        t->frames[i] = (float)tn_random_normal(&random);
    draw_sequences(t, &random);
    t->g = take(t->model->count, sizeof *t->g);
    t->gradients.blocks = t->blocks;
    tn_weights_carve(&t->gradients, &t->model->arch, t->g);
}

static void trial_close(struct trial *t)
{
    tarn_run_free(t->run);
    tarn_model_free(t->model);
    free(t->g);
}

static struct tn_loss forward(struct trial *t, float scale)
{
    struct tn_loss loss;

    if (of_frames(t))
        tn_run_forward_frames(t->run, t->frames);
    else
        tn_run_forward(t->run, t->inputs);
    tn_run_loss(t->run, &loss, NULL, t->targets, t->counts, t->weights, scale);
    return loss;
}

static double loss(struct trial *t)
{
    const struct tn_loss loss = forward(t, 0.0f);

    assert_true(loss.impossible == 0.0);
    return loss.loss / loss.weight;
}

static void gradients(struct trial *t)
{
    double weight = 0.0;

    for (size_t i = 0; i < (of_sequences(t) ? B : B * N); i++)
        weight += (double)t->weights[i];
    forward(t, (float)(1.0 / weight));
    tn_run_backward(t->run, &t->gradients, t->inputs);
}

static double loss_along(struct trial *t, float *w, const float *x, const float *u, size_t n,
                         double e)
{
    for (size_t i = 0; i < n; i++)
        w[i] = (float)((double)x[i] + e * (double)u[i]);
    return loss(t);
}

/* Four points; the scale is the gradient's own, and a floor for the noise of float forwards. */
static void check_tensor(struct trial *t, const struct tn_named_tensor *tensor,
                         const char *name, struct tn_random *random)
{
    const size_t n = tensor->rows * tn_max(tensor->columns, 1);
    const double e = 1e-2;
    float *const w = t->model->values + tensor->from, *const x = take(n, sizeof *x);
    float *const u = take(n, sizeof *u);
    double want = 0.0, norm2 = 0.0;

    memcpy(x, w, n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        const double slope = (double)t->g[tensor->from + i];

        u[i] = tn_random_bits(random) >> 63 ? 1.0f : -1.0f;
        want += slope * (double)u[i];
        norm2 += slope * slope;
    }
    const double near = loss_along(t, w, x, u, n, e / 2) - loss_along(t, w, x, u, n, -e / 2);
    const double far = loss_along(t, w, x, u, n, e) - loss_along(t, w, x, u, n, -e);
    const double slope = (8.0 * near - far) / (6.0 * e);

    memcpy(w, x, n * sizeof *x);
    if (!(fabs(slope - want) <= 2e-3 * sqrt(norm2) + 1e-4))
        fail_msg("%s: %s: slope %g, gradient %g of norm %g", name, tensor->name, slope, want,
                 sqrt(norm2));
    free(u);
    free(x);
}

/* lsh has no slope where a hash changes: test_lsh.c looks at its gradients. */
static void gradients_are_slopes(void **state)
{
    const struct model_variant *variant;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 91);
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct trial t;

        if (strstr(variant->name, "lsh"))
            continue;
        trial_open(&t, variant, false, 1, 0.0);
        if (t.model->arch.activation == TN_RELU && t.model->arch.body == &tn_body_transformer)
            avoid_corners(t.model);
        gradients(&t);
        for (size_t k = 0; k < t.model->tensor_count; k++)
            check_tensor(&t, &t.model->tensors[k], variant->name, &random);
        trial_close(&t);
    }
}

/* Forming the activations again, or on more threads, changes no bit; dropout is drawn alike. */
static void recomputed_gradients_are_the_same_to_the_bit(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = variant_at(i)) != NULL; i++) {
        struct trial plain, again;

        trial_open(&plain, variant, false, 1, 0.3);
        trial_open(&again, variant, true, 3, 0.3);
        gradients(&plain);
        gradients(&again);
        assert_memory_equal(plain.g, again.g, plain.model->count * sizeof *plain.g);
        trial_close(&plain);
        trial_close(&again);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(recomputed_gradients_are_the_same_to_the_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
