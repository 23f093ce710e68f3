/* SPDX-License-Identifier: MIT */
/* test_draw.c - many streams draw from their outputs, each as if it were alone. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/head.h"
#include "support/frequencies.h"
#include "support/streams.h"

enum { B = 5, O = MODEL_SYMBOLS, DRAWS = 200, OUTPUTS_MAX = 64 };

static const char categorical[] = "categorical";

/* Streams of a model with that head. */
struct drawing {
    tarn_model *model;
    struct streams streams;
};

static struct drawing drawing_open(const char *head, tarn_sampling sampling, size_t n)
{
    struct drawing d = {.model =
                            model_of(&(struct model_variant){head, {{"head", head}, {0}}})};

    assert_true(tarn_model_outputs(d.model) <= OUTPUTS_MAX);
    d.streams = streams_open(d.model, (tarn_engine_desc){0}, n);
    streams_sampling(&d.streams, sampling);
    return d;
}

static void drawing_close(struct drawing *d)
{
    streams_close(&d->streams);
    tarn_model_free(d->model);
}

static void draw(struct drawing *d, int32_t *symbols, const float *outputs)
{
    tarn_error err;

    check_ok(tarn_engine_draw(d->streams.engine, d->streams.at, symbols, outputs, d->streams.n,
                              &err),
             &err);
}

static void draw_outputs(float *outputs, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < B * OUTPUTS_MAX; i++)
        outputs[i] = (float)tn_random_normal(&random);
}

/* DRAWS symbols of every stream, at a position each, (DRAWS, B). */
static void draw_many(int32_t *symbols, const char *head, tarn_sampling sampling,
                      const float *outputs, size_t batch)
{
    struct drawing d = drawing_open(head, sampling, batch);

    for (size_t i = 0; i < DRAWS; i++) {
        draw(&d, symbols + i * B, outputs);
        streams_step(&d.streams, NULL);
    }
    drawing_close(&d);
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

/* From a fork of any position, after any draws: the same. */
static void check_order(const char *head, const tarn_sampling *way)
{
    struct drawing d = drawing_open(head, *way, B);
    unsigned char *const forks = take(DRAWS * B, d.streams.size);
    int32_t forwards[DRAWS * B], symbols[B];
    float outputs[B * OUTPUTS_MAX];

    draw_outputs(outputs, 1);
    for (size_t i = 0; i < DRAWS; i++) {
        for (size_t b = 0; b < B; b++)
            memcpy(forks + (i * B + b) * d.streams.size, d.streams.at[b], d.streams.size);
        draw(&d, forwards + i * B, outputs);
        streams_step(&d.streams, forwards + i * B);
    }
    for (size_t i = DRAWS; i-- > 0;) {
        for (size_t b = 0; b < B; b++)
            memcpy(d.streams.at[b], forks + (i * B + b) * d.streams.size, d.streams.size);
        draw(&d, symbols, outputs);
        assert_memory_equal(symbols, forwards + i * B, sizeof symbols);
    }
    free(forks);
    drawing_close(&d);
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
    struct drawing d = drawing_open(head, *way, 1);
    size_t counts[O] = {0};
    float outputs[B * OUTPUTS_MAX];
    double logits[O], p[O];

    draw_outputs(outputs, 7);
    define_logits(logits, head, outputs);
    define_p(p, way, logits);
    for (size_t i = 0; i < MANY; i++) {
        tarn_sampling numbered = *way;
        int32_t symbol;

        numbered.number = i;
        streams_sampling(&d.streams, numbered);
        draw(&d, &symbol, outputs);
        counts[symbol]++;
    }
    check_counts(counts, p, O, MANY);
    drawing_close(&d);
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

static void every_stream_has_settings_of_its_own(void **state)
{
    struct drawing mixed = drawing_open("logistic", (tarn_sampling){0}, WAYS);
    float outputs[WAYS * OUTPUTS_MAX], *const row = outputs;
    int32_t together[WAYS], alone;
    tarn_error err;

    (void)state;
    draw_outputs(outputs, 2);
    for (size_t i = 0; i < WAYS; i++)
        check_ok(tarn_stream_sampling(mixed.streams.at[i], &ways[i], &err), &err);
    draw(&mixed, together, outputs);
    for (size_t i = 0; i < WAYS; i++) {
        struct drawing one = drawing_open("logistic", ways[i], 1);

        draw(&one, &alone, row + i * one.streams.O);
        assert_int_equal(alone, together[i]);
        assert_int_equal(tarn_stream_next(mixed.streams.at[i]), alone);
        drawing_close(&one);
    }
    drawing_close(&mixed);
}

static void a_drawn_symbol_is_kept_until_it_is_fed(void **state)
{
    struct drawing d = drawing_open(categorical, (tarn_sampling){0}, B);
    struct drawing told = drawing_open(categorical, (tarn_sampling){0}, B);
    float outputs[B * OUTPUTS_MAX];
    int32_t symbols[B];

    (void)state;
    draw_outputs(outputs, 2);
    assert_int_equal(tarn_stream_next(d.streams.at[0]), -1);
    draw(&d, symbols, outputs);
    for (size_t b = 0; b < B; b++)
        assert_int_equal(tarn_stream_next(d.streams.at[b]), symbols[b]);
    streams_step(&d.streams, NULL);
    streams_step(&told.streams, symbols);
    assert_int_equal(tarn_stream_next(d.streams.at[0]), -1);
    for (size_t b = 0; b < B; b++)
        assert_memory_equal(d.streams.at[b], told.streams.at[b], d.streams.size);
    drawing_close(&d);
    drawing_close(&told);
}

static void heads_of_sequences_are_refused(void **state)
{
    struct drawing d = drawing_open("ctc", (tarn_sampling){0}, 1);
    const float outputs[OUTPUTS_MAX] = {0};
    int32_t symbol;
    tarn_error err;

    (void)state;
    assert_int_equal(
        tarn_engine_draw(d.streams.engine, d.streams.at, &symbol, outputs, 1, &err),
        TARN_EINVAL);
    assert_non_null(strstr(err.text, "'ctc'"));
    drawing_close(&d);
}

static void invalid_settings_are_refused_by_name(void **state)
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
    struct drawing d = drawing_open(categorical, (tarn_sampling){.seed = 9}, 1);
    tarn_stream *const stream = d.streams.at[0];
    unsigned char *const before = take(1, d.streams.size);
    tarn_error err;

    (void)state;
    memcpy(before, stream, d.streams.size);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tarn_stream_sampling(stream, &cases[i].sampling, &err), TARN_EINVAL);
        assert_non_null(strstr(err.text, cases[i].name));
    }
    assert_int_equal(tarn_stream_sampling(NULL, &cases[0].sampling, &err), TARN_EINVAL);
    assert_int_equal(tarn_stream_sampling(stream, NULL, &err), TARN_EINVAL);
    assert_memory_equal(stream, before, d.streams.size);
    free(before);
    drawing_close(&d);
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
        cmocka_unit_test(every_stream_has_settings_of_its_own),
        cmocka_unit_test(a_drawn_symbol_is_kept_until_it_is_fed),
        cmocka_unit_test(heads_of_sequences_are_refused),
        cmocka_unit_test(invalid_settings_are_refused_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
