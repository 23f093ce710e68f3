/* SPDX-License-Identifier: MIT */
/* test_generate_memory.c - generation takes no memory as it goes: a step allocates nothing, and
 * a stream of linear attention is as large for a thousand positions as for ten, and for ten
 * million as for 1024: from the first pixel of an image to the last it is the same block. */
#include <stdlib.h>
#include <string.h>

#include "support/count_calls.h"
#include "support/ledger.h"
#include "support/streams.h"

static bool is_recurrent(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);

    return config.causal && !strstr(config.attention, "lsh");
}

static size_t stream_size(const tarn_model *model, size_t longest)
{
    tarn_engine *const engine =
        engine_of(model, (tarn_engine_desc){.longest = longest, .method = "recurrent"});
    const size_t size = tarn_stream_size(engine);

    engine_close(engine);
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
        const size_t few = stream_size(model, 10), many = stream_size(model, 30);
        const char *const kind = tarn_model_config(model)->attention;

        if (strstr(kind, "gated")) {
            assert_int_equal(few, many);
            assert_int_equal(few, stream_size(model, 0));
        } else if (strstr(kind, "linear")) {
            assert_int_equal(few, many);
            const size_t endless = stream_size(model, 0);

            assert_int_equal(few, stream_size(model, 1023));
            assert_int_equal(endless, stream_size(model, 1024));
            assert_int_equal(endless, stream_size(model, 10000000));
            assert_true(few < endless && endless < 2 * few);
        } else {
            assert_true(few < many);
        }
        tarn_model_free(model);
    }
}

/* ---- What an engine allocates ------------------------------------------- */

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

/* The bytes of the model itself do not count. */
static tarn_model *metered_model(const tarn_allocator *allocator)
{
    const tarn_config config = config_of(model_variant_at(0));
    tarn_model *model;
    tarn_error err;

    check_ok(tarn_model_create(&model, &config, allocator, &err), &err);
    ((struct meter *)allocator->context)->bytes = 0;
    return model;
}

/* Structures, plans of products and what is sampled with are left out: a few KiB. The packed
 * weights, which other engines may use too, are in memory of the model's allocator. */
static void check_bytes(const char *method, size_t capacity)
{
    enum { SMALL = 1 << 15 };
    struct meter meter = {0};
    const tarn_allocator allocator = {metered, give_back, &meter};
    tarn_model *const model = metered_model(&allocator);
    tarn_engine *const engine =
        engine_of(model, (tarn_engine_desc){.longest = 30,
                                            .capacity = capacity,
                                            .method = method,
                                            .host.allocator = &allocator});
    float *const outputs = take(tarn_model_outputs(model), sizeof *outputs);
    tarn_stream *const stream = take(tarn_stream_size(engine), 1);
    const int32_t symbol = 0;
    tarn_error err;

    check_ok(tarn_engine_step(engine, &stream, outputs, &symbol, 1, &err), &err);
    assert_in_range(tarn_engine_bytes(engine), 1, meter.bytes);
    assert_in_range(meter.bytes - tarn_engine_bytes(engine), 0, SMALL);
    free(outputs);
    free(stream);
    engine_close(engine);
    tarn_model_free(model);
}

static void the_bytes_of_an_engine_are_what_it_asked_for(void **state)
{
    (void)state;
    for (size_t m = 0; tarn_method(m); m++) {
        check_bytes(tarn_method(m)->name, 1);
        check_bytes(tarn_method(m)->name, 100);
    }
}

/* Whatever their lengths, capacities and threads; another precision has its own. */
static void engines_of_one_model_share_its_packed_weights(void **state)
{
    struct meter meter = {0};
    const tarn_allocator allocator = {metered, give_back, &meter};
    tarn_model *const model = metered_model(&allocator);

    (void)state;
    tarn_engine *const first = engine_of(model, (tarn_engine_desc){.capacity = 1});
    const size_t packed = meter.bytes;

    assert_in_range(packed, tarn_engine_weight_bytes(first) / 2, tarn_engine_bytes(first));
    tarn_engine *const second =
        engine_of(model, (tarn_engine_desc){.longest = 20, .capacity = 200, .host.threads = 3});

    assert_int_equal(meter.bytes, packed);
    tarn_engine *const narrow = engine_of(model, (tarn_engine_desc){.precision = "bf16"});

    assert_in_range(meter.bytes, packed + 1, 2 * packed - 1);
    engine_close(first);
    tarn_engine *const third = engine_of(model, (tarn_engine_desc){0});

    assert_in_range(meter.bytes, packed + 1, 2 * packed - 1);
    engine_close(second);
    engine_close(narrow);
    engine_close(third);
    meter.bytes = 0;
    engine_close(engine_of(model, (tarn_engine_desc){0})); /* weights may have changed */
    assert_int_equal(meter.bytes, packed);
    tarn_model_free(model);
}

/* ---- Memory that is not there ------------------------------------------- */

/* Whether an engine and a stream could be made; nothing stays allocated either way. */
static bool survives(const tarn_model *model, const char *method, size_t capacity,
                     size_t allowed)
{
    struct ledger ledger = {.allowed = allowed};
    const tarn_allocator allocator = ledger_allocator(&ledger);
    const tarn_engine_desc desc = {.longest = 30,
                                   .capacity = capacity,
                                   .method = method,
                                   .host = {.cpu = forced_cpu(), .allocator = &allocator}};
    tarn_engine *engine = NULL;
    tarn_stream *stream = NULL;
    tarn_error err = {0};
    tarn_status status = tarn_engine_create(&engine, model, &desc, &err);

    assert_true(engine || status != TARN_OK);
    if (status == TARN_OK)
        status = tarn_stream_create(&stream, engine, &err);
    assert_true(status == TARN_OK || (status == TARN_ENOMEM && strstr(err.text, "memory")));
    tarn_stream_free(stream);
    engine_close(engine);
    assert_int_equal(ledger.out, 0);
    return status == TARN_OK;
}

static void every_failing_allocation_is_reported_and_leaks_nothing(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t m = 0; tarn_method(m); m++)
        for (size_t capacity = 1; capacity <= 200; capacity += 199) {
            size_t n = 0;

            while (!survives(model, tarn_method(m)->name, capacity, n))
                assert_true(++n < 200);
            assert_true(n > 1);
        }
    tarn_model_free(model);
}

static void packed_weights_that_have_no_memory_are_refused(void **state)
{
    struct ledger ledger = {.allowed = 1};
    const tarn_allocator allocator = ledger_allocator(&ledger);
    const tarn_config config = config_of(model_variant_at(0));
    const tarn_engine_desc desc = {.host.cpu = forced_cpu()};
    tarn_engine *engine;
    tarn_model *model;
    tarn_error err;

    (void)state;
    check_ok(tarn_model_create(&model, &config, &allocator, &err), &err);
    ledger.allowed = 0;
    assert_int_equal(tarn_engine_create(&engine, model, &desc, &err), TARN_ENOMEM);
    assert_null(engine);
    assert_non_null(strstr(err.text, "memory for a copy of the weights"));
    tarn_model_free(model);
    assert_int_equal(ledger.out, 0);
}

#ifdef COUNTS_CALLS

/* ---- Calls -------------------------------------------------------------- */

enum { MANY = 200 }; /* streams */

/* Calls of malloc and its kin by some steps and draws, and by a prompt. */
static size_t allocations(struct streams *s)
{
    static const int32_t symbols[MANY] = {1, 2, 3};
    const size_t before = atomic_load(&calls);
    tarn_status status = tarn_engine_step(s->engine, s->at, s->outputs, symbols, s->n, NULL);

    for (size_t i = 0; i < 9 && status == TARN_OK; i++) {
        status = tarn_engine_draw(s->engine, s->at, NULL, s->outputs, s->n, NULL);
        if (status == TARN_OK)
            status = tarn_engine_step(s->engine, s->at, s->outputs, NULL, s->n, NULL);
    }
    if (status == TARN_OK)
        status = tarn_engine_prefill(s->engine, s->at[0], NULL, symbols, 3, NULL);
    const size_t made = atomic_load(&calls) - before;

    assert_int_equal(status, TARN_OK);
    return made;
}

/* After a round to warm up, in which the threads are started; of few streams and of many. */
static void check_no_allocation(const struct model_variant *variant, size_t n)
{
    const tarn_engine_desc desc = {.longest = 30, .method = "recurrent"};
    tarn_model *const model = model_of(variant);
    struct streams s = streams_open(model, desc, n);

    streams_sampling(&s, (tarn_sampling){.top_k = 4, .top_p = 0.9});
    allocations(&s);
    assert_int_equal(allocations(&s), 0);
    streams_close(&s);
    tarn_model_free(model);
}

static void a_step_allocates_nothing(void **unused)
{
    const struct model_variant *variant;

    (void)unused;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++)
        if (is_recurrent(variant) && strcmp(variant->name, "ctc") != 0) { /* draws nothing */
            check_no_allocation(variant, 3);
            check_no_allocation(variant, MANY);
        }
}

/* (16)-(20) with the head of the paper's images: bytes of memory behind the stream stay as they
 * were, so that no pixel needs more of it than the first, and none allocates. */
static void an_image_takes_no_memory_from_its_first_pixel_to_its_last(void **unused)
{
    enum { PIXELS = 28 * 28, BEHIND = 4096 };
    const struct model_variant image = {"image",
                                        {{"head", "logistic"}, {"symbols", "256"}, {0}}};
    tarn_model *const model = model_of(&image);
    struct streams s = streams_open(model, (tarn_engine_desc){.longest = PIXELS - 1}, 1);
    unsigned char *const memory = take(s.size + BEHIND, 1);
    tarn_stream *const stream = (tarn_stream *)(void *)memory;
    const int32_t first = 0;

    (void)unused;
    streams_step(&s, &first);
    memset(memory + s.size, 0xa5, BEHIND);
    for (size_t pixel = 1; pixel < PIXELS; pixel++) {
        const size_t before = atomic_load(&calls);
        tarn_status status =
            tarn_engine_step(s.engine, &stream, s.outputs, pixel == 1 ? &first : NULL, 1, NULL);

        if (status == TARN_OK)
            status = tarn_engine_draw(s.engine, &stream, NULL, s.outputs, 1, NULL);
        const size_t made = atomic_load(&calls) - before;

        assert_int_equal(status, TARN_OK);
        assert_int_equal(made, 0);
        assert_int_equal(tarn_stream_size(s.engine), s.size);
    }
    for (size_t i = 0; i < BEHIND; i++)
        assert_int_equal(memory[s.size + i], 0xa5);
    free(memory);
    streams_close(&s);
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
        cmocka_unit_test(the_bytes_of_an_engine_are_what_it_asked_for),
        cmocka_unit_test(engines_of_one_model_share_its_packed_weights),
        cmocka_unit_test(every_failing_allocation_is_reported_and_leaks_nothing),
        cmocka_unit_test(packed_weights_that_have_no_memory_are_refused),
#ifdef COUNTS_CALLS
        cmocka_unit_test(allocations_are_counted),
        cmocka_unit_test(a_step_allocates_nothing),
        cmocka_unit_test(an_image_takes_no_memory_from_its_first_pixel_to_its_last),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
