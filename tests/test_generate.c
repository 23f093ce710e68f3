/* SPDX-License-Identifier: MIT */
/* test_generate.c - a model that steps is the model that was trained. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/folder.h"
#include "support/streams.h"

enum { B = 3, N = 37, LONG = 150, RECOMPUTED = 80 };

/* Whether the model generates, and by which methods. */
static bool has_method(const struct model_variant *variant, const char *method)
{
    const tarn_config config = config_of(variant);

    return config.causal &&
           (strcmp(method, "recompute") == 0 || !strstr(config.attention, "lsh"));
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
    struct streams s =
        streams_open(model, (tarn_engine_desc){.longest = N, .method = method}, B);
    int32_t symbols[B * N], now[B];
    struct tn_random random;

    tn_random_seed(&random, 4);
    draw_symbols(symbols, B * N, &random);
    float *const all = parallel(model, symbols, N);

    for (size_t n = 0; n < N; n++) {
        for (size_t b = 0; b < B; b++)
            now[b] = symbols[b * N + n];
        const float *const outputs = streams_step(&s, now);

        for (size_t b = 0; b < B; b++)
            check_near(variant->name, outputs + b * s.O, all + (b * N + n) * s.O, s.O);
    }
    assert_int_equal(tarn_stream_position(s.at[B - 1]), N);
    free(all);
    streams_close(&s);
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

/* A prompt in pieces of any size leaves the stream that its symbols do: to the last bit, or
 * near enough where steps are computed anew, which costs the square of their number: there the
 * pieces go past two plans only. */
static void check_prefill(const struct model_variant *variant, const char *method)
{
    static const size_t pieces[] = {1, 70, 2, 64, 13};
    tarn_model *const model = model_of(variant);
    const bool recurs = strcmp(method, "recurrent") == 0;
    const size_t longest = tarn_model_config(model)->positions ? 40
                           : recurs                            ? LONG
                                                               : RECOMPUTED;
    const tarn_engine_desc desc = {.longest = longest, .method = method};
    struct streams stepped = streams_open(model, desc, B);
    struct streams filled = streams_open(model, desc, B);
    int32_t *const symbols = take(B * LONG, sizeof *symbols), now[B];
    struct tn_random random;
    size_t from = 0;

    tn_random_seed(&random, 6);
    for (size_t p = 0; p < 5 && from + pieces[p] <= longest; p++) {
        const size_t n = pieces[p];

        draw_symbols(symbols, B * n, &random);
        streams_prefill(&filled, symbols, n);
        for (size_t i = 0; i < n; i++) {
            for (size_t b = 0; b < B; b++)
                now[b] = symbols[b * n + i];
            streams_step(&stepped, now);
        }
        (recurs ? check_same : check_near)(variant->name, filled.outputs, stepped.outputs,
                                           B * filled.O);
        for (size_t b = 0; b < B; b++)
            assert_memory_equal(filled.at[b], stepped.at[b], filled.size);
        from += n;
        assert_int_equal(tarn_stream_position(filled.at[0]), from);
    }
    free(symbols);
    streams_close(&filled);
    streams_close(&stepped);
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

/* memcpy() is a fork, and a file is one, too. */
static void check_forks(const struct model_variant *variant, const char *path)
{
    tarn_model *const model = model_of(variant);
    struct streams s = streams_open(model, (tarn_engine_desc){.longest = N}, B);
    struct streams loaded = streams_open(model, (tarn_engine_desc){.longest = N}, B);
    unsigned char *const fork = take(B, s.size);
    int32_t symbols[B * 5];
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 8);
    draw_symbols(symbols, B * 5, &random);
    streams_prefill(&s, symbols, 5);
    check_ok(tarn_streams_save(s.engine, s.at, B, path, &err), &err);
    for (size_t b = 0; b < B; b++)
        memcpy(fork + b * s.size, s.at[b], s.size);
    const float *const outputs = streams_step(&s, symbols);

    check_ok(tarn_streams_load(loaded.engine, loaded.at, B, path, &err), &err);
    check_same(variant->name, streams_step(&loaded, symbols), outputs, B * s.O);
    for (size_t b = 0; b < B; b++)
        memcpy(loaded.at[b], fork + b * s.size, s.size);
    check_same(variant->name, streams_step(&loaded, symbols), outputs, B * s.O);
    free(fork);
    streams_close(&loaded);
    streams_close(&s);
    tarn_model_free(model);
}

static void forks_and_files_continue_as_if_nothing_had_happened(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "streams");

    (void)unused;
    for (size_t i = 0; model_variant_at(i); i++)
        if (config_of(model_variant_at(i)).causal)
            check_forks(model_variant_at(i), path);
    folder_close(&folder);
}

static void what_cannot_be_fed_is_refused_and_changes_nothing(void **unused)
{
    tarn_model *const model = model_of(model_variant_at(3)); /* 40 learned positions */
    struct streams s = streams_open(model, (tarn_engine_desc){.longest = 60}, 1);
    unsigned char *const before = take(1, s.size);
    const int32_t symbols[50] = {0}, wrong = MODEL_SYMBOLS;
    tarn_error err;

    (void)unused;
    assert_int_equal(tarn_engine_prefill(s.engine, s.at[0], s.outputs, symbols, 41, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "learned"));
    assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, &wrong, 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, symbols, 0, &err),
                     TARN_EINVAL);
    assert_int_equal(tarn_engine_prefill(s.engine, s.at[0], s.outputs, symbols, 0, &err),
                     TARN_EINVAL);
    assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, NULL, 1, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "has no next symbol"));
    assert_memory_equal(s.at[0], before, s.size);
    streams_prefill(&s, symbols, 40);
    memcpy(before, s.at[0], s.size);
    assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, symbols, 1, &err),
                     TARN_EINVAL);
    assert_memory_equal(s.at[0], before, s.size);
    free(before);
    streams_close(&s);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_equal_the_parallel_form),
        cmocka_unit_test(a_prompt_equals_its_symbols_one_by_one),
        cmocka_unit_test(forks_and_files_continue_as_if_nothing_had_happened),
        cmocka_unit_test(what_cannot_be_fed_is_refused_and_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
