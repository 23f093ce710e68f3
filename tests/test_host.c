/* SPDX-License-Identifier: MIT */
/* test_host.c - what every object computes with is read, and refused, in one way. */
#include <stdlib.h>
#include <string.h>

#include "support/model_case.h"
#include "tarn/generate.h"
#include "tarn/train.h"

static void *allocate(void *context, size_t bytes)
{
    (void)context;
    return malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static void zeros_stand_for_the_best_of_this_machine(void **state)
{
    struct tn_host host;
    tarn_error err;

    (void)state;
    check_ok(tn_host_init(&host, &(tarn_host){0}, &err), &err);
    assert_string_equal(host.kernels->name, tarn_cpu_name(0));
    assert_int_equal(host.threads, tarn_threads_default());
    assert_null(host.allocator.allocate);
}

static void what_is_given_is_kept(void **state)
{
    const tarn_allocator allocator = {allocate, release, state};
    struct tn_host host;
    tarn_error err;

    (void)state;
    check_ok(tn_host_init(&host, &(tarn_host){3, "portable", &allocator}, &err), &err);
    assert_string_equal(host.kernels->name, "portable");
    assert_int_equal(host.threads, 3);
    assert_memory_equal(&host.allocator, &allocator, sizeof allocator);
    const tarn_host again = tn_host_given(&host);

    assert_int_equal(again.threads, 3);
    assert_string_equal(again.cpu, "portable");
    assert_ptr_equal(again.allocator, &host.allocator);
    assert_null(tn_host_given(forced_host(1)).allocator);
}

/* ---- Refusals ----------------------------------------------------------- */

static const tarn_allocator half = {allocate, NULL, NULL}, other_half = {NULL, release, NULL};

static const struct refusal {
    tarn_host host;
    tarn_status status;
    const char *says;
} refusals[] = {
    {{.threads = 1025}, TARN_EINVAL, "threads is 1025; it must be from 1 to 1024"},
    {{.threads = SIZE_MAX}, TARN_EINVAL, "threads is "},
    {{.cpu = "z80"}, TARN_EUNKNOWN, "cpu: 'z80' is not supported here; available: "},
    {{.cpu = ""}, TARN_EUNKNOWN, "portable"},
    {{.allocator = &half}, TARN_EINVAL, "allocate and release must not be NULL"},
    {{.allocator = &other_half}, TARN_EINVAL, "allocate and release must not be NULL"},
};

static void check_refusal(const struct refusal *refusal, tarn_status status,
                          const tarn_error *err)
{
    assert_int_equal(status, refusal->status);
    if (!strstr(err->text, refusal->says))
        fail_msg("'%s' does not say '%s'", err->text, refusal->says);
}

static void check_objects(const struct refusal *r, tarn_model *model)
{
    tarn_attention *attention;
    tarn_run *run;
    tarn_engine *engine;
    tarn_trainer *trainer;
    tarn_error err;

    check_refusal(r,
                  tarn_attention_create(&attention,
                                        &(tarn_attention_desc){.kind = "linear",
                                                               .batch = 1,
                                                               .heads = 1,
                                                               .queries = 1,
                                                               .keys = 1,
                                                               .query_width = 1,
                                                               .value_width = 1,
                                                               .host = r->host},
                                        &err),
                  &err);
    assert_null(attention);
    check_refusal(r,
                  tarn_run_create(&run, model,
                                  &(tarn_run_desc){.batch = 1, .length = 1, .host = r->host},
                                  &err),
                  &err);
    assert_null(run);
    check_refusal(
        r, tarn_engine_create(&engine, model, &(tarn_engine_desc){.host = r->host}, &err),
        &err);
    assert_null(engine);
    check_refusal(r,
                  tarn_trainer_create(
                      &trainer, model,
                      &(tarn_trainer_desc){.batch = 1, .length = 1, .host = r->host}, &err),
                  &err);
    assert_null(trainer);
}

static void every_object_refuses_the_same(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));

    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        check_objects(&refusals[i], model);
    tarn_model_free(model);
}

static void a_model_refuses_half_an_allocator(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *copy;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_model_create(&copy, tarn_model_config(model), &half, &err),
                     TARN_EINVAL);
    assert_null(copy);
    assert_non_null(strstr(err.text, "allocate and release"));
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_stand_for_the_best_of_this_machine),
        cmocka_unit_test(what_is_given_is_kept),
        cmocka_unit_test(every_object_refuses_the_same),
        cmocka_unit_test(a_model_refuses_half_an_allocator),
    };

    return cmocka_run_group_tests_name("host", tests, NULL, NULL);
}
