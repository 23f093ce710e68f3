/* SPDX-License-Identifier: MIT */
/* test_generate_bf16.c - weights that are held in bf16 are the model whose matrices were
 * rounded, and nothing else is. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/streams.h"

enum { PROMPT = 70, STEPS = 5 };

static bool is_table(const char *name)
{
    return strstr(name, "_embedding") != NULL;
}

static void round_matrices(const tarn_model *model)
{
    tarn_tensor tensor;

    for (size_t i = 0; tarn_model_tensor(model, i, &tensor); i++)
        if (tensor.columns > 0 && !is_table(tensor.name))
            for (size_t e = 0; e < tensor.rows * tensor.columns; e++)
                tensor.values[e] = tn_bf16_to_f32(tn_bf16_from_f32(tensor.values[e]));
}

static struct streams open_streams(const tarn_model *model, const char *precision, size_t n)
{
    return streams_open(model,
                        (tarn_engine_desc){.longest = PROMPT + STEPS,
                                           .method = "recurrent",
                                           .precision = precision},
                        n);
}

/* A prompt, then steps; outputs of all calls behind each other. */
static float *run(const tarn_model *model, const char *precision, size_t n, size_t prompt)
{
    struct streams s = open_streams(model, precision, n);
    float *const all = take((STEPS + 1) * n * s.O, sizeof *all);
    int32_t *const symbols = take(n * PROMPT, sizeof *symbols);
    struct tn_random random;

    tn_random_seed(&random, 8);
    for (size_t i = 0; i <= STEPS; i++) {
        draw_symbols(symbols, n * (i == 0 ? prompt : 1), &random);
        memcpy(all + i * n * s.O,
               i == 0 ? streams_prefill(&s, symbols, prompt) : streams_step(&s, symbols),
               n * s.O * sizeof *all);
    }
    free(symbols);
    streams_close(&s);
    return all;
}

static void check_variant(const struct model_variant *variant, size_t batch)
{
    tarn_model *const model = model_of(variant);
    const size_t count = (STEPS + 1) * batch * tarn_model_outputs(model);
    const size_t prompt = tarn_model_config(model)->positions ? 30 : PROMPT;
    float *const narrow = run(model, "bf16", batch, prompt);
    float *const exact = run(model, "f32", batch, prompt);

    round_matrices(model);
    float *const wide = run(model, NULL, batch, prompt);
    double moved = 0.0;

    for (size_t i = 0; i < count; i++) {
        if (!(fabsf(narrow[i] - wide[i]) <= 2e-5f * (1.0f + fabsf(wide[i]))))
            fail_msg("%s, %zu streams: output %zu is %g; expected %g", variant->name, batch, i,
                     (double)narrow[i], (double)wide[i]);
        moved = fmax(moved, fabs((double)narrow[i] - (double)exact[i]));
    }
    assert_true(moved > 1e-4); /* it was rounded */
    free(wide);
    free(exact);
    free(narrow);
    tarn_model_free(model);
}

static void matrices_are_rounded_and_nothing_else(void **state)
{
    static const size_t batches[] = {1, 3, 20};
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        const tarn_config config = config_of(variant);

        if (config.causal && !strstr(config.attention, "lsh"))
            for (size_t b = 0; b < 3; b++)
                check_variant(variant, batches[b]);
    }
}

static void bf16_reads_half_the_bytes_of_matrices(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams narrow = open_streams(model, "bf16", 1);
    struct streams wide = open_streams(model, "f32", 1);
    size_t matrices = 0;
    tarn_tensor tensor;

    (void)state;
    for (size_t i = 0; tarn_model_tensor(model, i, &tensor); i++)
        if (tensor.columns > 0 && !is_table(tensor.name))
            matrices += tensor.rows * tensor.columns;
    assert_int_equal(tarn_engine_weight_bytes(wide.engine) -
                         tarn_engine_weight_bytes(narrow.engine),
                     matrices * 2);
    assert_true(tarn_engine_flops(wide.engine, 7) == tarn_engine_flops(narrow.engine, 7));
    assert_int_equal(wide.size, narrow.size);
    streams_close(&narrow);
    streams_close(&wide);
    tarn_model_free(model);
}

/* A stream has no precision. */
static void a_stream_can_change_its_precision(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams narrow = open_streams(model, "bf16", 1);
    struct streams wide = open_streams(model, "f32", 1);
    const int32_t symbol = 3;
    tarn_error err;

    (void)state;
    streams_step(&wide, &symbol);
    check_ok(tarn_engine_step(narrow.engine, wide.at, narrow.outputs, &symbol, 1, &err), &err);
    assert_int_equal(tarn_stream_position(wide.at[0]), 2);
    streams_close(&narrow);
    streams_close(&wide);
    tarn_model_free(model);
}

static void other_precisions_are_refused(void **state)
{
    static const struct {
        const char *method, *precision, *found;
        tarn_status status;
    } cases[] = {{"recurrent", "f16", "'f16'", TARN_EUNKNOWN},
                 {"recompute", "bf16", "recurrent", TARN_EINVAL}};
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const tarn_engine_desc desc = {
            .longest = 10, .method = cases[i].method, .precision = cases[i].precision};
        tarn_engine *engine;
        tarn_error err;

        assert_int_equal(tarn_engine_create(&engine, model, &desc, &err), cases[i].status);
        assert_null(engine);
        assert_non_null(strstr(err.text, "precision"));
        assert_non_null(strstr(err.text, cases[i].found));
    }
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_are_rounded_and_nothing_else),
        cmocka_unit_test(bf16_reads_half_the_bytes_of_matrices),
        cmocka_unit_test(a_stream_can_change_its_precision),
        cmocka_unit_test(other_precisions_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
