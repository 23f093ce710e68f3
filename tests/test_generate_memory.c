/* SPDX-License-Identifier: MIT */
/* test_generate_memory.c - generation takes no memory as it goes: a step allocates nothing, and
 * the state of linear attention is as large for ten positions as for ten million. */
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/count_calls.h"
#include "support/model_case.h"
#include "tarn/generate.h"

static tarn_generator *generator_of(const tarn_model *model, size_t longest)
{
    const tarn_generator_desc desc = {
        .batch = 3, .longest = longest, .method = "recurrent", .cpu = forced_cpu()};
    tarn_generator *generator;
    tarn_error err;

    check_ok(tarn_generator_create(&generator, model, &desc, &err), &err);
    return generator;
}

static bool is_recurrent(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);

    return config.causal && !strstr(config.attention, "lsh");
}

static size_t state_size(const tarn_model *model, size_t longest)
{
    tarn_generator *const g = generator_of(model, longest);
    const size_t size = tarn_generator_state_size(g);

    tarn_generator_free(g);
    return size;
}

static void only_caches_grow_with_the_length(void **state)
{
    const struct model_variant *variant;

    (void)state;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        if (!is_recurrent(variant))
            continue;
        tarn_model *const model = model_of(variant);
        const size_t few = state_size(model, 10), many = state_size(model, 30);

        if (strstr(tarn_model_config(model)->attention, "linear")) {
            assert_int_equal(few, many);
            assert_int_equal(few, state_size(model, 10000000));
            assert_int_equal(few, state_size(model, 0));
        } else {
            assert_true(few < many);
        }
        tarn_model_free(model);
    }
}

#ifdef COUNTS_CALLS

/* Calls of malloc and its kin by some steps and draws. */
static size_t allocations(tarn_generator *g, tarn_sampler *sampler, void *state)
{
    int32_t symbols[3] = {1, 2, 3};
    const size_t before = atomic_load(&calls);
    const float *outputs;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < 10 && status == TARN_OK; i++) {
        status = tarn_generator_step(g, state, &outputs, symbols, NULL);
        if (status == TARN_OK)
            tarn_sampler_draw(sampler, symbols, outputs, 3, tarn_state_position(state));
    }
    const size_t made = atomic_load(&calls) - before;

    assert_int_equal(status, TARN_OK);
    return made;
}

/* oneDNN allocates when it multiplies; what is not its own must not. */
static bool products_allocate(void)
{
    const struct tn_matmul_desc desc = {.m = 3, .n = 12, .k = 12, .transpose_b = true};
    struct tn_matmul *plan;
    tarn_error err;

    check_ok(tn_matmul_create(&plan, &desc, &err), &err);
    const bool they_do = strcmp(tn_matmul_name(plan), "onednn") == 0;

    tn_matmul_free(plan);
    return they_do;
}

/* After a round to warm up, in which OpenMP makes its threads. */
static void a_step_allocates_nothing(void **unused)
{
    const tarn_sampling sampling = {.top_k = 4, .top_p = 0.9};
    const struct model_variant *variant;

    (void)unused;
    if (products_allocate()) {
        print_message("skipped: products of 3 rows are oneDNN's here\n");
        skip();
    }
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        if (!is_recurrent(variant) || strcmp(variant->name, "ctc") == 0) /* draws nothing */
            continue;
        tarn_model *const model = model_of(variant);
        tarn_generator *const g = generator_of(model, 30);
        void *const state = take(tarn_generator_state_size(g), 1);
        tarn_sampler *sampler;
        tarn_error err;

        check_ok(tarn_sampler_create(&sampler, model, &sampling, NULL, &err), &err);
        allocations(g, sampler, state);
        assert_int_equal(allocations(g, sampler, state), 0);
        tarn_sampler_free(sampler);
        free(state);
        tarn_generator_free(g);
        tarn_model_free(model);
    }
}

/* Or a count of zero would mean nothing. */
static void allocations_are_counted(void **state)
{
    const size_t before = atomic_load(&calls);

    (void)state;
    free(take(10, 1));
    assert_true(atomic_load(&calls) > before);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_caches_grow_with_the_length),
#ifdef COUNTS_CALLS
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(a_step_allocates_nothing),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
