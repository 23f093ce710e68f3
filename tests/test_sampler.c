/* SPDX-License-Identifier: MIT */
/* test_sampler.c - many streams draw from their outputs, each as if it were alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/model_case.h"
#include "tarn/generate.h"

enum { B = 5, O = MODEL_SYMBOLS, DRAWS = 200 };

static tarn_sampler *sampler_of(const tarn_sampling *sampling)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_sampler *sampler;
    tarn_error err;

    check_ok(tarn_sampler_create(&sampler, model, sampling, NULL, &err), &err);
    tarn_model_free(model); /* it is not looked at later */
    return sampler;
}

static void draw_outputs(float *outputs, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < B * O; i++)
        outputs[i] = (float)tn_random_normal(&random);
}

/* DRAWS symbols of every stream, (DRAWS, B). */
static void draw_many(int32_t *symbols, tarn_sampling sampling, const float *outputs,
                      size_t batch)
{
    tarn_sampler *const sampler = sampler_of(&sampling);

    for (size_t i = 0; i < DRAWS; i++)
        tarn_sampler_draw(sampler, symbols + i * B, outputs, batch, i);
    tarn_sampler_free(sampler);
}

static void a_stream_does_not_know_how_many_there_are(void **state)
{
    int32_t all[DRAWS * B], few[DRAWS * B];
    float outputs[B * O];

    (void)state;
    draw_outputs(outputs, 1);
    draw_many(all, (tarn_sampling){.seed = 3}, outputs, B);
    for (size_t batch = 1; batch < B; batch++) {
        draw_many(few, (tarn_sampling){.seed = 3}, outputs, batch);
        for (size_t i = 0; i < DRAWS; i++)
            assert_memory_equal(few + i * B, all + i * B, batch * sizeof *all);
    }
}

/* Any order of positions, any draws between: the same. */
static void a_draw_depends_on_nothing_before_it(void **state)
{
    tarn_sampler *const sampler = sampler_of(&(tarn_sampling){.seed = 3, .top_k = 6});
    int32_t forwards[DRAWS * B], symbols[B];
    float outputs[B * O];

    (void)state;
    draw_outputs(outputs, 1);
    draw_many(forwards, (tarn_sampling){.seed = 3, .top_k = 6}, outputs, B);
    for (size_t i = DRAWS; i-- > 0;) {
        tarn_sampler_draw(sampler, symbols, outputs, B, i);
        assert_memory_equal(symbols, forwards + i * B, sizeof symbols);
    }
    tarn_sampler_free(sampler);
}

/* Of streams, B apart; all but the last draw, so that one may begin a draw later. */
static size_t differences(const int32_t *a, const int32_t *b)
{
    size_t count = 0;

    for (size_t i = 0; i + 1 < DRAWS; i++)
        count += a[i * B] != b[i * B];
    return count;
}

/* With equal outputs, where chance alone tells them apart. */
static void seeds_and_streams_differ(void **state)
{
    int32_t one[DRAWS * B], other[DRAWS * B];
    float outputs[B * O] = {0};

    (void)state;
    draw_many(one, (tarn_sampling){.seed = 1}, outputs, B);
    draw_many(other, (tarn_sampling){.seed = 2}, outputs, B);
    assert_true(differences(one, other) > DRAWS / 2);
    assert_true(differences(one, one + 1) > DRAWS / 2);
    assert_true(differences(one, other + 1) > DRAWS / 2); /* seed 1 + stream 1 is not 2 */
    assert_true(differences(one, one + B) > DRAWS / 2);
}

/* 40000 draws of 7 symbols: 5 standard deviations of a share are at most 0.0125. */
static void draws_are_as_likely_as_the_outputs_say(void **state)
{
    enum { MANY = 40000 };
    tarn_sampler *const sampler = sampler_of(&(tarn_sampling){.seed = 11});
    size_t counts[O] = {0};
    float outputs[B * O];
    double sum = 0.0;

    (void)state;
    draw_outputs(outputs, 2);
    for (size_t i = 0; i < MANY; i++) {
        int32_t symbol;

        tarn_sampler_draw(sampler, &symbol, outputs, 1, i);
        counts[symbol]++;
    }
    for (size_t o = 0; o < O; o++)
        sum += exp((double)outputs[o]);
    for (size_t o = 0; o < O; o++)
        assert_true(fabs((double)counts[o] / MANY - exp((double)outputs[o]) / sum) < 0.0125);
    tarn_sampler_free(sampler);
}

static void zeros_are_the_defaults(void **state)
{
    int32_t zeros[DRAWS * B], said[DRAWS * B];
    float outputs[B * O];

    (void)state;
    draw_outputs(outputs, 4);
    draw_many(zeros, (tarn_sampling){0}, outputs, B);
    draw_many(said, (tarn_sampling){.temperature = 1.0, .top_k = O, .top_p = 1.0}, outputs, B);
    assert_memory_equal(zeros, said, sizeof zeros);
}

static void greedy_is_the_greatest_whatever_else_is_said(void **state)
{
    int32_t symbols[DRAWS * B];
    float outputs[B * O];

    (void)state;
    draw_outputs(outputs, 5);
    draw_many(symbols, (tarn_sampling){.greedy = true, .temperature = 50.0, .seed = 8}, outputs,
              B);
    for (size_t b = 0; b < B; b++) {
        size_t best = 0;

        for (size_t o = 1; o < O; o++)
            best = outputs[b * O + o] > outputs[b * O + best] ? o : best;
        for (size_t i = 0; i < DRAWS; i++)
            assert_int_equal(symbols[i * B + b], best);
    }
}

static void nonsense_is_refused_by_name(void **state)
{
    static const struct {
        tarn_sampling sampling;
        const char *name;
    } cases[] = {
        {{.temperature = -1.0}, "temperature"},
        {{.temperature = (double)NAN}, "temperature"},
        {{.temperature = (double)INFINITY}, "temperature"},
        {{.top_p = -0.1}, "top_p"},
        {{.top_p = 1.01}, "top_p"},
        {{.top_p = (double)NAN}, "top_p"},
    };
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_sampler *sampler = (tarn_sampler *)state;
    tarn_error err;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tarn_sampler_create(&sampler, model, &cases[i].sampling, NULL, &err),
                         TARN_EINVAL);
        assert_non_null(strstr(err.text, cases[i].name));
        assert_null(sampler);
    }
    assert_int_equal(tarn_sampler_create(&sampler, NULL, &cases[0].sampling, NULL, &err),
                     TARN_EINVAL);
    assert_int_equal(tarn_sampler_create(&sampler, model, NULL, NULL, &err), TARN_EINVAL);
    tarn_sampler_free(NULL);
    tarn_model_free(model);
}

static void *none(void *context, size_t bytes)
{
    (void)context;
    (void)bytes;
    return NULL;
}

static void nothing(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

static void no_memory_is_told(void **state)
{
    const tarn_allocator empty = {none, nothing, NULL};
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_sampler *sampler;

    (void)state;
    assert_int_equal(tarn_sampler_create(&sampler, model, &(tarn_sampling){0}, &empty, NULL),
                     TARN_ENOMEM);
    assert_null(sampler);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_does_not_know_how_many_there_are),
        cmocka_unit_test(a_draw_depends_on_nothing_before_it),
        cmocka_unit_test(seeds_and_streams_differ),
        cmocka_unit_test(draws_are_as_likely_as_the_outputs_say),
        cmocka_unit_test(zeros_are_the_defaults),
        cmocka_unit_test(greedy_is_the_greatest_whatever_else_is_said),
        cmocka_unit_test(nonsense_is_refused_by_name),
        cmocka_unit_test(no_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
