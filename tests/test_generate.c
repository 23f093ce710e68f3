/* SPDX-License-Identifier: MIT */
/* test_generate.c - a model that steps is the model that was trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/generate.h"

enum { B = 3, N = 37, LONG = 150, RECOMPUTED = 80 };

/* Whether the model generates, and by which methods. */
static bool has_method(const struct model_variant *variant, const char *method)
{
    const tarn_config config = config_of(variant);

    return config.causal &&
           (strcmp(method, "recompute") == 0 || !strstr(config.attention, "lsh"));
}

static tarn_generator *generator_of(const tarn_model *model, const char *method, size_t batch,
                                    size_t longest)
{
    const tarn_generator_desc desc = {
        .batch = batch, .longest = longest, .method = method, .host.cpu = forced_cpu()};
    tarn_generator *generator;
    tarn_error err;

    check_ok(tarn_generator_create(&generator, model, &desc, &err), &err);
    return generator;
}

/* Outputs at every position, (B, n, O). */
static float *parallel(const tarn_model *model, const int32_t *symbols, size_t n)
{
    const size_t O = tarn_model_outputs(model);
    float *const all = take(B * n * O, sizeof *all);
    const float *outputs;
    tarn_run *run;
    tarn_error err;

    check_ok(tarn_run_create(
                 &run, model,
                 &(tarn_run_desc){.batch = B, .length = n, .host.cpu = forced_cpu()}, &err),
             &err);
    check_ok(tarn_run_forward(run, &outputs, symbols, NULL, &err), &err);
    memcpy(all, outputs, B * n * O * sizeof *all);
    tarn_run_free(run);
    return all;
}

static void check_near(const char *name, const float *found, const float *expected, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(found[i] - expected[i]) <= 2e-5f * (1.0f + fabsf(expected[i]))))
            fail_msg("%s: output %zu is %g; expected %g", name, i, (double)found[i],
                     (double)expected[i]);
}

/* Feeds symbol by symbol and compares each position with the parallel form. */
static void check_steps(const struct model_variant *variant, const char *method)
{
    tarn_model *const model = model_of(variant);
    tarn_generator *const g = generator_of(model, method, B, N);
    const size_t O = tarn_model_outputs(model);
    void *const state = take(1, tarn_generator_state_size(g));
    int32_t symbols[B * N], now[B];
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 4);
    draw_symbols(symbols, B * N, &random);
    float *const all = parallel(model, symbols, N);

    for (size_t n = 0; n < N; n++) {
        const float *outputs;

        for (size_t b = 0; b < B; b++)
            now[b] = symbols[b * N + n];
        check_ok(tarn_generator_step(g, state, &outputs, now, &err), &err);
        for (size_t b = 0; b < B; b++)
            check_near(variant->name, outputs + b * O, all + (b * N + n) * O, O);
    }
    assert_int_equal(tarn_state_position(state), N);
    free(all);
    free(state);
    tarn_generator_free(g);
    tarn_model_free(model);
}

static void steps_equal_the_parallel_form(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        for (size_t m = 0; tarn_method(m); m++)
            if (has_method(variant, tarn_method(m)->name) &&
                !(strstr(variant->name, "lsh"))) /* its sort sees what comes later */
                check_steps(variant, tarn_method(m)->name);
}

static void check_same(const char *name, const float *got, const float *want, size_t n)
{
    if (memcmp(got, want, n * sizeof *got) != 0)
        fail_msg("%s: not the same to the last bit", name);
}

/* A prompt in pieces of any size leaves the state that its symbols do: to the last bit, or near
 * enough where steps are computed anew, which costs the square of their number: there the
 * pieces go past two plans only. */
static void check_prefill(const struct model_variant *variant, const char *method)
{
    static const size_t pieces[] = {1, 70, 2, 64, 13};
    tarn_model *const model = model_of(variant);
    const bool recurs = strcmp(method, "recurrent") == 0;
    const size_t longest = tarn_model_config(model)->positions ? 40
                           : recurs                            ? LONG
                                                               : RECOMPUTED;
    tarn_generator *const g = generator_of(model, method, B, longest);
    const size_t O = tarn_model_outputs(model);
    void *const stepped = take(1, tarn_generator_state_size(g));
    void *const filled = take(1, tarn_generator_state_size(g));
    float *const last = take(B * O, sizeof *last);
    int32_t *const symbols = take(B * LONG, sizeof *symbols), now[B];
    struct tn_random random;
    tarn_error err;
    const float *outputs;
    size_t from = 0;

    tn_random_seed(&random, 6);
    for (size_t p = 0; p < 5 && from + pieces[p] <= longest; p++) {
        const size_t n = pieces[p];

        draw_symbols(symbols, B * n, &random);
        check_ok(tarn_generator_prefill(g, filled, &outputs, symbols, n, &err), &err);
        memcpy(last, outputs, B * O * sizeof *last);
        for (size_t i = 0; i < n; i++) {
            for (size_t b = 0; b < B; b++)
                now[b] = symbols[b * n + i];
            check_ok(tarn_generator_step(g, stepped, &outputs, now, &err), &err);
        }
        (recurs ? check_same : check_near)(variant->name, last, outputs, B * O);
        from += n;
        assert_int_equal(tarn_state_position(filled), from);
    }
    free(symbols);
    free(last);
    free(filled);
    free(stepped);
    tarn_generator_free(g);
    tarn_model_free(model);
}

static void a_prompt_equals_its_symbols_one_by_one(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        for (size_t m = 0; tarn_method(m); m++)
            if (has_method(variant, tarn_method(m)->name))
                check_prefill(variant, tarn_method(m)->name);
}

/* With many streams a prompt is read in pieces of fewer positions, from 4096 on of one. */
static void check_prefill_of_many(const tarn_model *model, size_t batch, size_t prompt)
{
    tarn_generator *const g = generator_of(model, "recurrent", batch, prompt);
    const size_t O = tarn_model_outputs(model);
    void *const stepped = take(1, tarn_generator_state_size(g));
    void *const filled = take(1, tarn_generator_state_size(g));
    float *const last = take(batch * O, sizeof *last);
    int32_t *const symbols = take(batch * prompt, sizeof *symbols);
    int32_t *const now = take(batch, sizeof *now);
    struct tn_random random;
    tarn_error err;
    const float *outputs;

    tn_random_seed(&random, 9);
    draw_symbols(symbols, batch * prompt, &random);
    check_ok(tarn_generator_prefill(g, filled, &outputs, symbols, prompt, &err), &err);
    memcpy(last, outputs, batch * O * sizeof *last);
    for (size_t i = 0; i < prompt; i++) {
        for (size_t b = 0; b < batch; b++)
            now[b] = symbols[b * prompt + i];
        check_ok(tarn_generator_step(g, stepped, &outputs, now, &err), &err);
    }
    check_same("many streams", last, outputs, batch * O);
    free(now);
    free(symbols);
    free(last);
    free(filled);
    free(stepped);
    tarn_generator_free(g);
}

static void a_prompt_of_many_streams_equals_its_symbols(void **state)
{
    /* Streams, and a prompt of a piece and a rest, or of pieces. */
    static const size_t sizes[][2] = {{65, 65}, {1500, 5}, {4097, 3}};
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        check_prefill_of_many(model, sizes[i][0], sizes[i][1]);
    tarn_model_free(model);
}

/* To the last bit, on both sides of what counts as few. */
static void check_among(const struct model_variant *variant, size_t many_streams)
{
    enum { PROMPT = 70 };
    tarn_model *const model = model_of(variant);
    const size_t n = tarn_model_config(model)->positions ? 30 : PROMPT;
    const size_t O = tarn_model_outputs(model);
    tarn_generator *const many = generator_of(model, "recurrent", many_streams, n + 1);
    tarn_generator *const alone = generator_of(model, "recurrent", 1, n + 1);
    int32_t *const symbols = take(many_streams * (PROMPT + 1), sizeof *symbols);
    void *const state = take(1, tarn_generator_state_size(many));
    const float *outputs, *expected;
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 9);
    draw_symbols(symbols, many_streams * (PROMPT + 1), &random);
    check_ok(tarn_generator_prefill(many, state, &outputs, symbols, n, &err), &err);
    check_ok(tarn_generator_step(many, state, &outputs, symbols + many_streams * n, &err),
             &err);
    for (size_t b = 0; b < many_streams; b += 10) {
        void *const own = take(1, tarn_generator_state_size(alone));

        check_ok(tarn_generator_prefill(alone, own, &expected, symbols + b * n, n, &err), &err);
        check_ok(
            tarn_generator_step(alone, own, &expected, symbols + many_streams * n + b, &err),
            &err);
        check_same(variant->name, outputs + b * O, expected, O);
        free(own);
    }
    free(symbols);
    free(state);
    tarn_generator_free(many);
    tarn_generator_free(alone);
    tarn_model_free(model);
}

static void a_stream_among_many_is_what_it_is_alone(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        if (has_method(variant, "recurrent"))
            for (size_t m = 0; m < 3; m++)
                check_among(variant, (const size_t[]){2, 16, 97}[m]);
}

/* memcpy() is a snapshot, and so is a file. */
static void a_restored_state_goes_on_as_if_nothing_had_happened(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    const struct model_variant *variant;

    (void)unused;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        if (!config_of(variant).causal)
            continue;
        tarn_model *const model = model_of(variant);
        tarn_generator *const g = generator_of(model, NULL, B, N);
        const size_t bytes = tarn_generator_state_size(g), O = tarn_model_outputs(model) * B;
        void *const state = take(1, bytes), *const copy = take(1, bytes);
        float *const expected = take(O, sizeof *expected);
        const float *outputs;
        int32_t symbols[B * 5];
        struct tn_random random;
        tarn_error err;

        tn_random_seed(&random, 8);
        draw_symbols(symbols, B * 5, &random);
        check_ok(tarn_generator_prefill(g, state, &outputs, symbols, 5, &err), &err);
        check_ok(tarn_state_save(g, state, NULL, path, &err), &err);
        check_ok(tarn_generator_step(g, state, &outputs, symbols, &err), &err);
        memcpy(expected, outputs, O * sizeof *expected);
        check_ok(tarn_state_load(g, copy, NULL, path, &err), &err);
        check_ok(tarn_generator_step(g, copy, &outputs, symbols, &err), &err);
        assert_memory_equal(outputs, expected, O * sizeof *expected);
        free(expected);
        free(copy);
        free(state);
        tarn_generator_free(g);
        tarn_model_free(model);
    }
    folder_close(&folder);
}

static void a_state_of_another_model_is_refused(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *one, *other;
    tarn_error err;

    (void)unused;
    check_ok(tarn_model_create(&one, &config, NULL, &err), &err);
    config.seed = 99; /* the same shape, other weights */
    check_ok(tarn_model_create(&other, &config, NULL, &err), &err);
    tarn_generator *const a = generator_of(one, NULL, 1, 0), *const b = generator_of(
                                                                 other, NULL, 1, 0);
    void *const state = take(1, tarn_generator_state_size(a));

    check_ok(tarn_state_save(a, state, NULL, path, &err), &err);
    check_ok(tarn_state_load(a, state, NULL, path, &err), &err);
    assert_int_equal(tarn_state_load(b, state, NULL, path, &err), TARN_EFORMAT);
    free(state);
    tarn_generator_free(a);
    tarn_generator_free(b);
    tarn_model_free(one);
    tarn_model_free(other);
    folder_close(&folder);
}

static void what_cannot_be_fed_is_refused_and_changes_nothing(void **unused)
{
    tarn_model *const model = model_of(model_variant_at(3)); /* 40 learned positions */
    tarn_generator *const g = generator_of(model, NULL, 1, 60);
    const size_t bytes = tarn_generator_state_size(g);
    unsigned char *const state = take(1, bytes), *const before = take(1, bytes);
    const int32_t symbols[50] = {0}, wrong = MODEL_SYMBOLS;
    const float *outputs;
    tarn_error err;

    (void)unused;
    assert_int_equal(tarn_generator_prefill(g, state, &outputs, symbols, 41, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "learned"));
    assert_int_equal(tarn_generator_step(g, state, &outputs, &wrong, &err), TARN_EINVAL);
    assert_int_equal(tarn_generator_prefill(g, state, &outputs, symbols, 0, &err), TARN_EINVAL);
    assert_memory_equal(state, before, bytes);
    check_ok(tarn_generator_prefill(g, state, &outputs, symbols, 40, &err), &err);
    assert_int_equal(tarn_generator_step(g, state, &outputs, symbols, &err), TARN_EINVAL);
    free(before);
    free(state);
    tarn_generator_free(g);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_parallel_form),
        cmocka_unit_test(a_prompt_equals_its_symbols_one_by_one),
        cmocka_unit_test(a_prompt_of_many_streams_equals_its_symbols),
        cmocka_unit_test(a_stream_among_many_is_what_it_is_alone),
        cmocka_unit_test(a_restored_state_goes_on_as_if_nothing_had_happened),
        cmocka_unit_test(a_state_of_another_model_is_refused),
        cmocka_unit_test(what_cannot_be_fed_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
