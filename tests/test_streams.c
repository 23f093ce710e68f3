/* SPDX-License-Identifier: MIT */
/* test_streams.c - a stream among others, at any positions and in any company, is what it is
 * alone: to the last bit. */
#include <stdlib.h>
#include <string.h>

#include "support/ledger.h"
#include "support/streams.h"

enum {
    STREAMS = 1000, /* that come and go */
    AT_ONCE = 160,  /* at most: several groups of each thread */
    STEPS = 30      /* at most; fewer than any model's positions */
};

/* ---- One stream --------------------------------------------------------- */

/* Everything that it does follows from its number. */
struct life {
    size_t number, steps;
    tarn_stream *stream;
};

static struct life life_of(size_t number)
{
    struct tn_random random;

    tn_random_seed(&random, 100 + number);
    return (struct life){number, 1 + below(&random, STEPS), NULL};
}

/* Streams sample in every way there is. */
static void life_begin(struct life *life, tarn_engine *engine)
{
    const tarn_sampling ways[] = {
        {0}, {.temperature = 0.7}, {.top_k = 3}, {.top_p = 0.8}, {.greedy = true}};
    tarn_sampling sampling = ways[life->number % 5];
    tarn_error err;

    sampling.seed = life->number / 2;
    sampling.number = life->number;
    check_ok(tarn_stream_create(&life->stream, engine, &err), &err);
    check_ok(tarn_stream_sampling(life->stream, &sampling, &err), &err);
}

static bool is_over(const struct life *life)
{
    return tarn_stream_position(life->stream) == life->steps;
}

/* ---- Feeding some of them ----------------------------------------------- */

struct company {
    const tarn_config *config;
    tarn_engine *engine;
    size_t O;
    tarn_stream *streams[AT_ONCE];
    int32_t symbols[AT_ONCE];
    float *frames, *outputs;
};

static struct company company_open(const tarn_model *model, tarn_engine_desc desc)
{
    struct company c = {.config = tarn_model_config(model), .engine = engine_of(model, desc)};

    c.O = tarn_model_outputs(model);
    c.frames = take(AT_ONCE * c.config->stack * c.config->frames + 1, sizeof *c.frames);
    c.outputs = take(AT_ONCE * c.O, sizeof *c.outputs);
    return c;
}

static void company_close(struct company *c)
{
    free(c->frames);
    free(c->outputs);
    engine_close(c->engine);
}

/* The first symbol by the stream's number, then what it drew; frames by number and position. */
static void prepare(struct company *c, const struct life *life, size_t i)
{
    const size_t stack = c->config->stack * c->config->frames;
    const size_t position = (size_t)tarn_stream_position(life->stream);
    struct tn_random random;

    tn_random_seed(&random, life->number * 1000 + position);
    c->streams[i] = life->stream;
    c->symbols[i] = position == 0 ? (int32_t)(life->number % MODEL_SYMBOLS)
                                  : tarn_stream_next(life->stream);
    for (size_t f = 0; f < stack; f++)
        c->frames[i * stack + f] = (float)tn_random_uniform(&random) - 0.5f;
}

static void step(struct company *c, size_t n)
{
    tarn_error err;

    if (c->config->frames > 0) {
        check_ok(tarn_engine_frames(c->engine, c->streams, c->outputs, c->frames, n, &err),
                 &err);
        return;
    }
    check_ok(tarn_engine_step(c->engine, c->streams, c->outputs, c->symbols, n, &err), &err);
    check_ok(tarn_engine_draw(c->engine, c->streams, NULL, c->outputs, n, &err), &err);
}

/* The stream as it is after its last step without company. */
static void check_alone(struct company *alone, const struct life *life, const char *name)
{
    struct life own = life_of(life->number);

    life_begin(&own, alone->engine);
    while (!is_over(&own)) {
        prepare(alone, &own, 0);
        step(alone, 1);
    }
    if (memcmp(own.stream, life->stream, tarn_stream_size(alone->engine)) != 0)
        fail_msg("%s: stream %zu is another one alone", name, life->number);
    tarn_stream_free(own.stream);
}

/* ---- Coming and going --------------------------------------------------- */

/* Those that are there, in any order. */
struct crowd {
    struct life at[AT_ONCE];
    size_t count, next; /* next: number of the next to come */
};

static void join(struct crowd *crowd, tarn_engine *engine, size_t count)
{
    for (; count > 0 && crowd->count < AT_ONCE && crowd->next < STREAMS; count--) {
        struct life *const life = &crowd->at[crowd->count++];

        *life = life_of(crowd->next++);
        life_begin(life, engine);
    }
}

static void leave(struct crowd *crowd, struct company *alone, const char *name)
{
    for (size_t i = crowd->count; i-- > 0;)
        if (is_over(&crowd->at[i])) {
            check_alone(alone, &crowd->at[i], name);
            tarn_stream_free(crowd->at[i].stream);
            crowd->at[i] = crowd->at[--crowd->count];
        }
}

/* Moves some of them to the front, and returns how many. */
static size_t choose(struct crowd *crowd, struct tn_random *random)
{
    const size_t n = 1 + below(random, crowd->count);

    for (size_t i = 0; i < n; i++) {
        const size_t other = i + below(random, crowd->count - i);
        const struct life life = crowd->at[i];

        crowd->at[i] = crowd->at[other];
        crowd->at[other] = life;
    }
    return n;
}

static void check_variant(const struct model_variant *variant, const char *precision)
{
    tarn_model *const model = model_of(variant);
    const tarn_engine_desc desc = {
        .longest = STEPS, .method = "recurrent", .precision = precision, .host.threads = 2};
    tarn_engine_desc single = desc;
    struct crowd crowd = {0};
    struct tn_random random;

    single.capacity = single.host.threads = 1;
    struct company together = company_open(model, desc), alone = company_open(model, single);

    tn_random_seed(&random, 17);
    while (crowd.count > 0 || crowd.next < STREAMS) {
        join(&crowd, together.engine, below(&random, 40) + (crowd.count == 0));
        const size_t n = choose(&crowd, &random);

        for (size_t i = 0; i < n; i++)
            prepare(&together, &crowd.at[i], i);
        step(&together, n);
        leave(&crowd, &alone, variant->name);
    }
    company_close(&together);
    company_close(&alone);
    tarn_model_free(model);
}

static bool is_recurrent(const struct model_variant *variant)
{
    const tarn_config config = config_of(variant);

    return config.causal && !strstr(config.attention, "lsh") &&
           strcmp(config.body, "lstm") != 0 &&
           (config.frames > 0 || strcmp(config.head, "ctc") != 0);
}

static void streams_that_come_and_go_are_what_they_are_alone(void **state)
{
    (void)state;
    for (size_t i = 0; model_variant_at(i); i++)
        if (is_recurrent(model_variant_at(i)))
            check_variant(model_variant_at(i), "f32");
    check_variant(model_variant_at(0), "bf16");
    check_variant(model_variant_at(0), "int8");
    check_variant(model_variant_at(0), "bf16-inputs");
}

static void so_are_streams_of_frames(void **state)
{
    (void)state;
    for (size_t i = 0; frame_variant_at(i); i++)
        if (is_recurrent(frame_variant_at(i)))
            check_variant(frame_variant_at(i), "f32");
}

/* ---- Positions and capacities ------------------------------------------- */

/* Sums of linear attention begin their second block at position 1024, each stream's at another
 * step. */
static void streams_begin_their_next_block_on_their_own(void **state)
{
    enum { N = 70, BEFORE = 990, STEPS_ON = 80 };
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams all = streams_open(model, (tarn_engine_desc){.host.threads = 2}, N);
    struct streams one = streams_open(model, (tarn_engine_desc){.host.threads = 1}, 1);
    int32_t *const symbols = take(BEFORE + N + STEPS_ON, sizeof *symbols), now[N];
    struct tn_random random;
    tarn_error err;

    (void)state;
    tn_random_seed(&random, 3);
    draw_symbols(symbols, BEFORE + N + STEPS_ON, &random);
    for (size_t i = 0; i < N; i++)
        check_ok(tarn_engine_prefill(all.engine, all.at[i], NULL, symbols, BEFORE + i, &err),
                 &err);
    for (size_t t = 0; t < STEPS_ON; t++) {
        for (size_t i = 0; i < N; i++)
            now[i] = symbols[BEFORE + i + t];
        streams_step(&all, now);
    }
    for (size_t i = 0; i < N; i += 23) {
        streams_restart(&one);
        for (size_t t = 0; t < BEFORE + i + STEPS_ON; t++)
            streams_step(&one, symbols + t);
        assert_memory_equal(one.at[0], all.at[i], one.size);
        assert_memory_equal(one.outputs, all.outputs + i * one.O, one.O * sizeof(float));
    }
    free(symbols);
    streams_close(&all);
    streams_close(&one);
    tarn_model_free(model);
}

static void a_step_of_more_than_the_capacity_is_the_same(void **state)
{
    enum { N = 142 };
    static const size_t capacities[] = {1, 5, 47, 48, 64, 142, 500};
    tarn_model *const model = model_of(model_variant_at(8)); /* context */
    struct streams whole = streams_open(model, (tarn_engine_desc){.host.threads = 2}, N);
    int32_t symbols[N];
    struct tn_random random;

    (void)state;
    for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        struct streams s = streams_open(
            model, (tarn_engine_desc){.capacity = capacities[c], .host.threads = 3}, N);

        tn_random_seed(&random, 5);
        streams_restart(&whole);
        for (size_t t = 0; t < 5; t++) {
            draw_symbols(symbols, N, &random);
            assert_memory_equal(streams_step(&s, symbols), streams_step(&whole, symbols),
                                N * s.O * sizeof(float));
        }
        streams_close(&s);
    }
    streams_close(&whole);
    tarn_model_free(model);
}

/* ---- Refusals ----------------------------------------------------------- */

/* Refused with these words, with all streams as they were. */
static void check_refused(struct streams *s, tarn_stream *const *given, const char *words)
{
    unsigned char *const before = take(s->n, s->size);
    const int32_t symbols[4] = {0};
    tarn_error err = {0};

    for (size_t i = 0; i < s->n; i++)
        memcpy(before + i * s->size, s->at[i], s->size);
    assert_int_equal(tarn_engine_step(s->engine, given, s->outputs, symbols, s->n, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, words));
    for (size_t i = 0; i < s->n; i++)
        assert_memory_equal(before + i * s->size, s->at[i], s->size);
    free(before);
}

static void streams_that_do_not_fit_are_refused_and_nothing_changes(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_model *const softmax = model_of(model_variant_at(4));
    struct streams s = streams_open(model, (tarn_engine_desc){0}, 4);
    struct streams brief = streams_open(model, (tarn_engine_desc){.longest = 9}, 4);
    struct streams other = streams_open(softmax, (tarn_engine_desc){.longest = 9}, 4);
    const int32_t symbols[4] = {1, 2, 3, 4};

    (void)state;
    streams_step(&s, symbols);
    streams_step(&brief, symbols);
    streams_step(&other, symbols);
    check_refused(&s, (tarn_stream *[]){s.at[0], s.at[1], s.at[0], s.at[2]},
                  "streams[2]: is the same stream");
    check_refused(&s, (tarn_stream *[]){s.at[0], s.at[1], NULL, s.at[2]}, "streams[2]");
    check_refused(&s, (tarn_stream *[]){s.at[0], brief.at[0], s.at[1], s.at[2]},
                  "streams[1]: is of another model");
    check_refused(&s, (tarn_stream *[]){s.at[0], s.at[1], s.at[2], other.at[0]},
                  "streams[3]: is of another model");
    streams_step(&s, symbols);
    streams_close(&s);
    streams_close(&brief);
    streams_close(&other);
    tarn_model_free(model);
    tarn_model_free(softmax);
}

static void an_engine_with_streams_is_not_freed(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_engine *const engine = engine_of(model, (tarn_engine_desc){0});
    float *const outputs = take(tarn_model_outputs(model), sizeof *outputs);
    const int32_t symbol = 0;
    tarn_stream *streams[2];
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < 2; i++)
        check_ok(tarn_stream_create(&streams[i], engine, &err), &err);
    assert_int_equal(tarn_engine_free(engine, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "2 streams"));
    tarn_stream_free(streams[1]);
    assert_int_equal(tarn_engine_free(engine, &err), TARN_EINVAL);
    check_ok(tarn_engine_step(engine, streams, outputs, &symbol, 1, &err), &err);
    tarn_stream_free(streams[0]);
    tarn_stream_free(NULL);
    engine_close(engine);
    engine_close(NULL);
    free(outputs);
    tarn_model_free(model);
}

static void more_streams_than_memory_are_refused(void **state)
{
    tarn_model *const model = model_of(model_variant_at(0));
    struct ledger ledger = {.allowed = 1000};
    const tarn_allocator allocator = ledger_allocator(&ledger);
    tarn_engine *const engine =
        engine_of(model, (tarn_engine_desc){.host.allocator = &allocator});
    tarn_stream *stream, *refused;
    tarn_error err;

    (void)state;
    check_ok(tarn_stream_create(&stream, engine, &err), &err);
    ledger.allowed = 0;
    assert_int_equal(tarn_stream_create(&refused, engine, &err), TARN_ENOMEM);
    assert_null(refused);
    assert_non_null(strstr(err.text, "memory for another stream"));
    tarn_stream_free(stream);
    engine_close(engine);
    assert_int_equal(ledger.out, 0);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_come_and_go_are_what_they_are_alone),
        cmocka_unit_test(so_are_streams_of_frames),
        cmocka_unit_test(streams_begin_their_next_block_on_their_own),
        cmocka_unit_test(a_step_of_more_than_the_capacity_is_the_same),
        cmocka_unit_test(streams_that_do_not_fit_are_refused_and_nothing_changes),
        cmocka_unit_test(an_engine_with_streams_is_not_freed),
        cmocka_unit_test(more_streams_than_memory_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
