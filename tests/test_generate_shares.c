/* SPDX-License-Identifier: MIT */
/* test_generate_shares.c - streams that are stepped in shares, each on one thread, are what
 * they are alone. */
#include <stdlib.h>
#include <string.h>

#include "generate/recurrent.h"
#include "support/model_case.h"
#include "tarn/generate.h"

enum {
    STREAMS = 142, /* shares of 48, 48 and 46 on one thread; of 36, 36, 36 and 34 on two */
    STEPS = 30,    /* fewer than any model's positions */
    BEYOND = 1030  /* steps: linear attention begins a second block of its sums */
};

/* The first and last streams of shares. */
static const size_t watched[] = {0, 35, 36, 47, 48, 95, 96, 107, 108, 141};

struct sharing {
    const tarn_model *model;
    const char *precision;
    size_t threads, steps;
};

static tarn_generator *generator_of(const struct sharing *s, size_t streams, size_t threads)
{
    const tarn_generator_desc desc = {.batch = streams,
                                      .longest = s->steps,
                                      .method = "recurrent",
                                      .precision = s->precision,
                                      .host = {.threads = threads, .cpu = forced_cpu()}};
    tarn_generator *generator;
    tarn_error err;

    check_ok(tarn_generator_create(&generator, s->model, &desc, &err), &err);
    return generator;
}

/* Inputs of all streams are drawn, and a part is stepped. */
static const float *step(tarn_generator *g, void *state, const tarn_config *config,
                         struct tn_streams part, struct tn_random *random)
{
    const size_t stack = config->stack * config->frames;
    const float *outputs;
    tarn_error err;

    if (stack > 0) {
        float *const frames = take(STREAMS * stack, sizeof *frames);

        for (size_t i = 0; i < STREAMS * stack; i++)
            frames[i] = (float)tn_random_uniform(random) - 0.5f;
        check_ok(tarn_generator_frames(g, state, &outputs, frames + part.first * stack, &err),
                 &err);
        free(frames);
    } else {
        int32_t symbols[STREAMS];

        draw_symbols(symbols, STREAMS, random);
        check_ok(tarn_generator_step(g, state, &outputs, symbols + part.first, &err), &err);
    }
    return outputs;
}

/* A copy of the outputs after the last step. */
static float *step_on(tarn_generator *g, const struct sharing *s, struct tn_streams part)
{
    const size_t floats = tarn_model_outputs(s->model) * part.count;
    void *const state = take(1, tarn_generator_state_size(g));
    float *const copy = take(floats, sizeof *copy);
    const float *outputs = NULL;
    struct tn_random random;

    tn_random_seed(&random, 11);
    for (size_t i = 0; i < s->steps; i++)
        outputs = step(g, state, tarn_model_config(s->model), part, &random);
    memcpy(copy, outputs, floats * sizeof *copy);
    free(state);
    return copy;
}

static void check_alone(const struct sharing *s, const float *all, size_t stream)
{
    const size_t O = tarn_model_outputs(s->model);
    tarn_generator *const g = generator_of(s, 1, 1);
    float *const alone = step_on(g, s, (struct tn_streams){stream, 1});

    if (memcmp(all + stream * O, alone, O * sizeof *alone) != 0)
        fail_msg("stream %zu has other outputs alone after %zu steps", stream, s->steps);
    free(alone);
    tarn_generator_free(g);
}

static void check_shares(const struct sharing *s)
{
    tarn_generator *const g = generator_of(s, STREAMS, s->threads);
    float *const all = step_on(g, s, (struct tn_streams){0, STREAMS});

    for (size_t i = 0; i < sizeof watched / sizeof watched[0]; i++)
        check_alone(s, all, watched[i]);
    free(all);
    tarn_generator_free(g);
}

static void check_variant(const struct model_variant *variant, const char *precision)
{
    const tarn_config config = config_of(variant);

    if (!config.causal || strstr(config.attention, "lsh") || strcmp(config.body, "lstm") == 0)
        return;
    tarn_model *const model = model_of(variant);

    for (size_t threads = 1; threads <= 2; threads++)
        check_shares(&(struct sharing){model, precision, threads, STEPS});
    tarn_model_free(model);
}

static void streams_in_shares_are_what_they_are_alone(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        check_variant(model_variant_at(i), "f32");
    check_variant(model_variant_at(0), "bf16");
}

static void so_are_streams_of_frames(void **state)
{
    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++)
        check_variant(frame_variant_at(i), "f32");
}

static void shares_begin_their_next_block_together(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    assert_non_null(strstr(tarn_model_config(model)->attention, "linear"));
    check_shares(&(struct sharing){model, "f32", 2, BEYOND});
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_in_shares_are_what_they_are_alone),
        cmocka_unit_test(so_are_streams_of_frames),
        cmocka_unit_test(shares_begin_their_next_block_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
