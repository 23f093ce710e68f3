/* SPDX-License-Identifier: MIT */
/* test_generate_memory.c - generation takes no memory as it goes: a step allocates nothing, and
 * the state of linear attention is as large for a thousand positions as for ten, and for ten
 * million as for 1024: from the first pixel of an image to the last it is the same block. */
#include <stdlib.h>
#include <string.h>

#include "support/count_calls.h"
#include "support/ledger.h"
#include "support/model_case.h"
#include "tarn/generate.h"

static tarn_generator *generator_of(const tarn_model *model, size_t longest)
{
    const tarn_generator_desc desc = {
        .batch = 3, .longest = longest, .method = "recurrent", .host.cpu = forced_cpu()};
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
            const size_t endless = state_size(model, 0);

            assert_int_equal(few, state_size(model, 1023));
            assert_int_equal(endless, state_size(model, 1024));
            assert_int_equal(endless, state_size(model, 10000000));
            assert_true(few < endless && endless < 2 * few);
        } else {
            assert_true(few < many);
        }
        tarn_model_free(model);
    }
}

/* ---- What a generator holds --------------------------------------------- */

struct meter {
    size_t bytes; /* asked for since it was last looked at */
};

static void *metered(void *context, size_t bytes)
{
    ((struct meter *)context)->bytes += bytes;
    return malloc(bytes);
}

static void give_back(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* Structures and plans of products are left out: a few KiB. */
static void check_held(const tarn_model *model, const char *method, size_t batch)
{
    enum { SMALL = 1 << 15 };
    struct meter meter = {0};
    const tarn_allocator allocator = {metered, give_back, &meter};
    const tarn_generator_desc desc = {.batch = batch,
                                      .longest = 30,
                                      .method = method,
                                      .host = {.cpu = forced_cpu(), .allocator = &allocator}};
    int32_t symbols[100] = {0};
    tarn_generator *g;
    const float *outputs;
    tarn_error err;

    check_ok(tarn_generator_create(&g, model, &desc, &err), &err);
    void *const state = take(tarn_generator_state_size(g), 1);

    check_ok(tarn_generator_step(g, state, &outputs, symbols, &err), &err);
    assert_in_range(tarn_generator_bytes(g), 1, meter.bytes);
    assert_in_range(meter.bytes - tarn_generator_bytes(g), 0, SMALL);
    free(state);
    tarn_generator_free(g);
}

static void what_a_generator_holds_is_what_it_asked_for(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t m = 0; tarn_method(m); m++) {
        check_held(model, tarn_method(m)->name, 1);
        check_held(model, tarn_method(m)->name, 100);
    }
    tarn_model_free(model);
}

/* ---- Memory that is not there ------------------------------------------- */

/* Whether a generator could be made; nothing stays allocated either way. */
static bool survives(const tarn_model *model, const char *method, size_t batch, size_t allowed)
{
    struct ledger ledger = {.allowed = allowed};
    const tarn_allocator allocator = ledger_allocator(&ledger);
    const tarn_generator_desc desc = {.batch = batch,
                                      .longest = 30,
                                      .method = method,
                                      .host = {.cpu = forced_cpu(), .allocator = &allocator}};
    tarn_generator *g = NULL;
    tarn_error err = {0};
    const tarn_status status = tarn_generator_create(&g, model, &desc, &err);

    if (status == TARN_OK) {
        tarn_generator_free(g);
    } else {
        assert_null(g);
        assert_int_equal(status, TARN_ENOMEM);
        assert_non_null(strstr(err.text, "memory"));
    }
    assert_int_equal(ledger.out, 0);
    return status == TARN_OK;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t m = 0; tarn_method(m); m++)
        for (size_t batch = 1; batch <= 200; batch += 199) {
            size_t n = 0;

            while (!survives(model, tarn_method(m)->name, batch, n))
                assert_true(++n < 200);
            assert_true(n > 1);
        }
    tarn_model_free(model);
}

#ifdef COUNTS_CALLS

/* ---- Calls -------------------------------------------------------------- */

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

/* After a round to warm up, in which the threads are started. */
static void a_step_allocates_nothing(void **unused)
{
    const tarn_sampling sampling = {.top_k = 4, .top_p = 0.9};
    const struct model_variant *variant;

    (void)unused;
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

/* (16)-(20) with the head of the paper's images: bytes of memory behind the state stay as they
 * were, so that no pixel needs more of it than the first, and none allocates. */
static void an_image_takes_no_memory_from_its_first_pixel_to_its_last(void **unused)
{
    enum { PIXELS = 28 * 28, BEHIND = 4096 };
    const struct model_variant image = {"image",
                                        {{"head", "logistic"}, {"symbols", "256"}, {0}}};
    tarn_model *const model = model_of(&image);
    tarn_generator *const g = generator_of(model, PIXELS - 1);
    const size_t bytes = tarn_generator_state_size(g);
    unsigned char *const state = take(bytes + BEHIND, 1);
    int32_t symbols[3] = {0, 0, 0};
    const float *outputs;
    tarn_sampler *sampler;
    tarn_error err;

    (void)unused;
    check_ok(tarn_sampler_create(&sampler, model, &(tarn_sampling){0}, NULL, &err), &err);
    allocations(g, sampler, state);
    memset(state, 0, bytes);
    memset(state + bytes, 0xa5, BEHIND);
    for (size_t pixel = 1; pixel < PIXELS; pixel++) {
        const size_t before = atomic_load(&calls);
        const tarn_status status = tarn_generator_step(g, state, &outputs, symbols, NULL);

        tarn_sampler_draw(sampler, symbols, outputs, 3, pixel);
        const size_t made = atomic_load(&calls) - before;

        assert_int_equal(status, TARN_OK);
        assert_int_equal(made, 0);
        assert_int_equal(tarn_generator_state_size(g), bytes);
    }
    for (size_t i = 0; i < BEHIND; i++)
        assert_int_equal(state[bytes + i], 0xa5);
    tarn_sampler_free(sampler);
    free(state);
    tarn_generator_free(g);
    tarn_model_free(model);
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
        cmocka_unit_test(what_a_generator_holds_is_what_it_asked_for),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
#ifdef COUNTS_CALLS
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(an_image_takes_no_memory_from_its_first_pixel_to_its_last),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
