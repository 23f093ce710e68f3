/* SPDX-License-Identifier: MIT */
/* test_sampler.c - many streams draw from their outputs, each as if it were alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"
#include "support/frequencies.h"
#include "support/model_case.h"
#include "tarn/generate.h"

enum { B = 5, O = MODEL_SYMBOLS, DRAWS = 200, OUTPUTS_MAX = 64 };

static const char categorical[] = "categorical";

static tarn_sampler *sampler_of(const char *head, const tarn_sampling *sampling)
{
    tarn_model *const model = model_of(&(struct model_variant){head, {{"head", head}, {0}}});
    tarn_sampler *sampler;

    assert_true(tarn_model_outputs(model) <= OUTPUTS_MAX);
    tarn_error err;

    check_ok(tarn_sampler_create(&sampler, model, sampling, NULL, &err), &err);
    tarn_model_free(model); /* it is not looked at later */
    return sampler;
}

static void draw_outputs(float *outputs, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < B * OUTPUTS_MAX; i++)
        outputs[i] = (float)tn_random_normal(&random);
}

/* DRAWS symbols of every stream, (DRAWS, B). */
static void draw_many(int32_t *symbols, const char *head, tarn_sampling sampling,
                      const float *outputs, size_t batch)
{
    tarn_sampler *const sampler = sampler_of(head, &sampling);

    for (size_t i = 0; i < DRAWS; i++)
        tarn_sampler_draw(sampler, symbols + i * B, outputs, batch, i);
    tarn_sampler_free(sampler);
}

/* ---- every head --------------------------------------------------------- */

/* Plain, which a head may do in its own way, and all that sampling can do together. */
static const tarn_sampling ways[] = {
    {.seed = 3},
    {.seed = 3, .temperature = 0.7},
    {.seed = 3, .top_k = 6},
    {.seed = 3, .top_p = 0.8},
    {.seed = 3, .temperature = 1.5, .top_k = 5, .top_p = 0.9},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* The i-th head that predicts symbols one by one. */
static const tarn_table_row *drawn_head(size_t i)
{
    const tarn_table_row *row;

    for (size_t h = 0; (row = tarn_head_kind(h)) != NULL; h++)
        if (!((const struct tn_head_row *)(const void *)row)->sequence && i-- == 0)
            return row;
    return NULL;
}

static void for_all(void (*check)(const char *head, const tarn_sampling *way))
{
    const tarn_table_row *row;

    for (size_t i = 0; (row = drawn_head(i)) != NULL; i++)
        for (size_t way = 0; way < WAYS; way++)
            check(row->name, &ways[way]);
}

static void check_batches(const char *head, const tarn_sampling *way)
{
    int32_t all[DRAWS * B], few[DRAWS * B];
    float outputs[B * OUTPUTS_MAX];

    draw_outputs(outputs, 1);
    draw_many(all, head, *way, outputs, B);
    for (size_t batch = 1; batch < B; batch++) {
        draw_many(few, head, *way, outputs, batch);
        for (size_t i = 0; i < DRAWS; i++)
            assert_memory_equal(few + i * B, all + i * B, batch * sizeof *all);
    }
}

static void a_stream_does_not_know_how_many_there_are(void **state)
{
    (void)state;
    for_all(check_batches);
}

/* Any order of positions, any draws between: the same. */
static void check_order(const char *head, const tarn_sampling *way)
{
    tarn_sampler *const sampler = sampler_of(head, way);
    int32_t forwards[DRAWS * B], symbols[B];
    float outputs[B * OUTPUTS_MAX];

    draw_outputs(outputs, 1);
    draw_many(forwards, head, *way, outputs, B);
    for (size_t i = DRAWS; i-- > 0;) {
        tarn_sampler_draw(sampler, symbols, outputs, B, i);
        assert_memory_equal(symbols, forwards + i * B, sizeof symbols);
    }
    tarn_sampler_free(sampler);
}

static void a_draw_depends_on_nothing_before_it(void **state)
{
    (void)state;
    for_all(check_order);
}

/* log p of every symbol, by the loss of the head; returns how many outputs make a row. */
static size_t define_logits(double *logits, const char *spec, const float *outputs)
{
    struct tn_head head;
    tarn_error err;

    check_ok(tn_head_init(&head, spec, O, &err), &err);
    const struct tn_rows r = {tn_kernels_pick("portable"), 1, 1, head.outputs};
    void *const scratch = take(tn_head_scratch_size(&head, &r, 1), 1);

    for (int32_t t = 0; t < O; t++) {
        struct tn_loss loss;

        tn_head_loss(&(struct tn_head_call){.head = &head,
                                            .rows = &r,
                                            .outputs = outputs,
                                            .targets = &t,
                                            .scratch = scratch},
                     &loss);
        logits[t] = -loss.loss;
    }
    free(scratch);
    return head.outputs;
}

/* How many are more likely than symbol i, the first of equals. */
static size_t rank_of(const double *logits, size_t i)
{
    size_t rank = 0;

    for (size_t j = 0; j < O; j++)
        rank += logits[j] > logits[i] || (logits[j] == logits[i] && j < i);
    return rank;
}

/* As sampling.c says, by ranks. */
static void define_p(double *p, const tarn_sampling *way, const double *logits)
{
    const size_t most = way->top_k ? way->top_k : O;
    const double T = way->temperature > 0.0 ? way->temperature : 1.0;
    size_t symbol[O];
    double total = 0.0, kept = 0.0;

    for (size_t i = 0; i < O; i++)
        symbol[rank_of(logits, i)] = i;
    for (size_t j = 0; j < O; j++) {
        p[symbol[j]] = j < most ? exp(logits[symbol[j]] / T) : 0.0;
        total += p[symbol[j]];
    }
    for (size_t j = 0; j < O; j++) {
        p[symbol[j]] = way->top_p > 0.0 && kept >= way->top_p * total ? 0.0 : p[symbol[j]];
        kept += p[symbol[j]];
    }
    for (size_t i = 0; i < O; i++)
        p[i] /= kept;
}

static void check_frequencies(const char *head, const tarn_sampling *way)
{
    enum { MANY = 20000 };
    tarn_sampler *const sampler = sampler_of(head, way);
    size_t counts[O] = {0};
    float outputs[B * OUTPUTS_MAX];
    double logits[O], p[O];

    draw_outputs(outputs, 7);
    define_logits(logits, head, outputs);
    define_p(p, way, logits);
    for (size_t i = 0; i < MANY; i++) {
        int32_t symbol;

        tarn_sampler_draw(sampler, &symbol, outputs, 1, i);
        counts[symbol]++;
    }
    check_counts(counts, p, O, MANY);
    tarn_sampler_free(sampler);
}

static void draws_are_as_likely_as_the_loss_says(void **state)
{
    (void)state;
    for_all(check_frequencies);
}

static void check_greedy(const char *head, const tarn_sampling *way)
{
    int32_t symbols[DRAWS * B];
    float outputs[B * OUTPUTS_MAX];
    double logits[O];
    tarn_sampling greedy = *way;

    greedy.greedy = true;
    draw_outputs(outputs, 5);
    draw_many(symbols, head, greedy, outputs, B);
    for (size_t b = 0, from = 0; b < B; b++) {
        from += define_logits(logits, head, outputs + from);
        for (size_t i = 0; i < DRAWS; i++)
            assert_int_equal(rank_of(logits, (size_t)symbols[i * B + b]), 0);
    }
}

static void greedy_is_the_most_likely_for_every_head(void **state)
{
    (void)state;
    for_all(check_greedy);
}

/* ---- seeds -------------------------------------------------------------- */

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
    float outputs[B * OUTPUTS_MAX] = {0};

    (void)state;
    draw_many(one, categorical, (tarn_sampling){.seed = 1}, outputs, B);
    draw_many(other, categorical, (tarn_sampling){.seed = 2}, outputs, B);
    assert_true(differences(one, other) > DRAWS / 2);
    assert_true(differences(one, one + 1) > DRAWS / 2);
    assert_true(differences(one, other + 1) > DRAWS / 2); /* seed 1 + stream 1 is not 2 */
    assert_true(differences(one, one + B) > DRAWS / 2);
}

static void zeros_are_the_defaults(void **state)
{
    const tarn_table_row *row;
    int32_t zeros[DRAWS * B], said[DRAWS * B];
    float outputs[B * OUTPUTS_MAX];

    (void)state;
    draw_outputs(outputs, 4);
    for (size_t i = 0; (row = drawn_head(i)) != NULL; i++) {
        draw_many(zeros, row->name, (tarn_sampling){0}, outputs, B);
        draw_many(said, row->name,
                  (tarn_sampling){.temperature = 1.0, .top_k = O, .top_p = 1.0}, outputs, B);
        assert_memory_equal(zeros, said, sizeof zeros);
    }
}

static void greedy_is_the_greatest_whatever_else_is_said(void **state)
{
    int32_t symbols[DRAWS * B];
    float outputs[B * OUTPUTS_MAX];

    (void)state;
    draw_outputs(outputs, 5);
    draw_many(symbols, categorical,
              (tarn_sampling){.greedy = true, .temperature = 50.0, .seed = 8}, outputs, B);
    for (size_t b = 0; b < B; b++) {
        size_t best = 0;

        for (size_t o = 1; o < O; o++)
            best = outputs[b * O + o] > outputs[b * O + best] ? o : best;
        for (size_t i = 0; i < DRAWS; i++)
            assert_int_equal(symbols[i * B + b], best);
    }
}

static void heads_of_sequences_are_refused(void **state)
{
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *model;
    tarn_sampler *sampler;
    tarn_error err;

    (void)state;
    check_ok(tarn_config_set(&config, "head", "ctc", &err), &err);
    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    assert_int_equal(tarn_sampler_create(&sampler, model, &(tarn_sampling){0}, NULL, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "'ctc'"));
    tarn_model_free(model);
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
    assert_int_equal(tarn_sampler_create(&sampler, model, &(tarn_sampling){0},
                                         &(tarn_host){.cpu = "abacus"}, &err),
                     TARN_EUNKNOWN);
    assert_null(sampler);
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
    assert_int_equal(tarn_sampler_create(&sampler, model, &(tarn_sampling){0},
                                         &(tarn_host){.allocator = &empty}, NULL),
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
        cmocka_unit_test(draws_are_as_likely_as_the_loss_says),
        cmocka_unit_test(greedy_is_the_most_likely_for_every_head),
        cmocka_unit_test(zeros_are_the_defaults),
        cmocka_unit_test(greedy_is_the_greatest_whatever_else_is_said),
        cmocka_unit_test(heads_of_sequences_are_refused),
        cmocka_unit_test(nonsense_is_refused_by_name),
        cmocka_unit_test(no_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
