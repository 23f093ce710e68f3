/* SPDX-License-Identifier: MIT */
/* test_generate_shares.c - streams that are stepped in shares, each on one thread, are what they
 * are when every product is of all of them. */
#include <stdlib.h>
#include <string.h>

#include "layer/attn.h"
#include "support/model_case.h"
#include "tarn/generate.h"

enum {
    STREAMS = 140, /* three shares, of which the last has fewer */
    STEPS = 30,    /* fewer than any model's positions */
    BEYOND = 1030  /* steps: linear attention begins a second block of its sums */
};

static tarn_generator *generator_of(const tarn_model *model, size_t streams, size_t threads,
                                    size_t longest)
{
    const tarn_generator_desc desc = {.batch = streams,
                                      .longest = longest,
                                      .method = "recurrent",
                                      .threads = threads,
                                      .cpu = forced_cpu()};
    tarn_generator *generator;
    tarn_error err;

    check_ok(tarn_generator_create(&generator, model, &desc, &err), &err);
    return generator;
}

/* Symbols of `steps` steps of all streams, of which g takes a part: a copy of
 * their outputs after the last. */
static float *step_on(tarn_generator *g, size_t O, struct tn_streams part, size_t steps)
{
    const size_t floats = O * part.count;
    void *const state = take(1, tarn_generator_state_size(g));
    float *const copy = take(floats, sizeof *copy);
    const float *outputs = NULL;
    int32_t symbols[STREAMS];
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 11);
    for (size_t i = 0; i < steps; i++) {
        draw_symbols(symbols, STREAMS, &random);
        check_ok(tarn_generator_step(g, state, &outputs, symbols + part.first, &err), &err);
    }
    memcpy(copy, outputs, floats * sizeof *copy);
    free(state);
    return copy;
}

static void check_alone(const tarn_model *model, const float *all, size_t stream, size_t steps)
{
    const size_t O = tarn_model_outputs(model);
    tarn_generator *const g = generator_of(model, 1, 1, steps);
    float *const alone = step_on(g, O, (struct tn_streams){stream, 1}, steps);

    if (memcmp(all + stream * O, alone, O * sizeof *alone) != 0)
        fail_msg("stream %zu has other outputs alone after %zu steps", stream, steps);
    free(alone);
    tarn_generator_free(g);
}

/* The first and last streams of shares. */
static void check_shares(const tarn_model *model, size_t threads, size_t steps)
{
    static const size_t streams[] = {0, 46, 47, 93, 94, 139};
    tarn_generator *const g = generator_of(model, STREAMS, threads, steps);
    const struct tn_streams every = {0, STREAMS};
    float *const all = step_on(g, tarn_model_outputs(model), every, steps);

    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        check_alone(model, all, streams[i], steps);
    free(all);
    tarn_generator_free(g);
}

static void streams_in_shares_are_what_they_are_alone(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        const tarn_config config = config_of(variant);

        if (!config.causal || strstr(config.attention, "lsh"))
            continue;
        tarn_model *const model = model_of(variant);

        for (size_t threads = 1; threads <= 2; threads++)
            check_shares(model, threads, STEPS);
        tarn_model_free(model);
    }
}

static void shares_begin_their_next_block_together(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    assert_non_null(strstr(tarn_model_config(model)->attention, "linear"));
    check_shares(model, 2, BEYOND);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_in_shares_are_what_they_are_alone),
        cmocka_unit_test(shares_begin_their_next_block_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
