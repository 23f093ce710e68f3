/* SPDX-License-Identifier: MIT */
/* bench_generate.c - time per step of generation, compared with the larger of two limits:
 * reading the weights once, measured on an array of the same size, and the multiply-adds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_memory.h"
#include "bench_model.h"
#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "model_open.h"
#include "stopwatch.h"
#include "stream_block.h"
#include "tarn/tarn.h"

enum { PLACES = 8 }; /* at most */

/* Duration of one measurement, the same as for the limits (machine.h): on a shared machine long
 * measurements are disturbed more often than short ones, and could not be compared with them.
 */
static const double look_s = 0.025;

/* Total duration of the measurements. */
static const double enough_s = 20.0;
enum { RUNS_LEAST = 3, RUNS_MOST = 48, LOOKS = 16 }; /* LOOKS: at a state that does not grow */

struct values {
    struct bench_model model;
    const char *method, *precision, *from;
    size_t batch, length, threads, repeat;
    bool json;
};

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "mnist-paper", offsetof(struct values, model.preset), 0, 0,
     "model preset, as in tarn bench train; its weights are random"},
    {"attention", "SPEC", ARGS_TEXT, "linear", offsetof(struct values, model.attention), 0, 0,
     "kind of attention, with options as in tarn train"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, offsetof(struct values, model.feature_map), 0, 0,
     "feature map of the attention [the default of its kind]"},
    {"method", "NAME", ARGS_TEXT, NULL, offsetof(struct values, method), 0, 0,
     "generation method, recurrent or recompute [recurrent, if the attention supports it]"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", offsetof(struct values, precision), 0, 0,
     "precision of the weights"},
    {"batch", "B", ARGS_COUNT, "1", offsetof(struct values, batch), 1, 1 << 20, "batch size"},
    {"length", "N", ARGS_COUNT, "784", offsetof(struct values, length), 1, 1 << 28,
     "steps per sequence; if all cost the same, only the first are measured"},
    {"from", "P,...", ARGS_TEXT, "0", offsetof(struct values, from), 0, 0,
     "position of the first measured step; earlier ones are run but not measured. With "
     "several positions, measurements alternate"},
    {"threads", "N", ARGS_COUNT, "0", offsetof(struct values, threads), 0, 1024, THREADS_HELP},
    {"repeat", "N", ARGS_COUNT, "0", offsetof(struct values, repeat), 0, 1000,
     "repetitions; the fastest of every 25 ms of steps counts; 0: for 20 s, 3 to 48"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "print one JSON object"},
    {0},
};

static const struct args_table tables[] = {
    {NULL, tarn_preset, "preset"},
    {NULL, tarn_attention_kind, "attention"},
    {NULL, tarn_feature_map, "feature-map"},
    {NULL, tarn_method, "method"},
    {0},
};

/* ---- One bench ---------------------------------------------------------- */

/* A position from which steps are measured. */
struct place {
    size_t from;
    void *before;              /* the streams there */
    size_t stretch, steps;     /* that are measured at a time; in all */
    double *stretch_s;         /* each the best of its runs */
    double step_s, multiply_s; /* of a step; its limit */
};

struct bench {
    const struct values *values;
    const char *cpu;
    tarn_model *model;
    struct stream_block streams;
    struct place places[PLACES];
    size_t count, last; /* of the places; the farthest */
    void *block;        /* as large as the weights */
    int32_t *symbols;   /* one per sequence */
    double read_s;
    size_t runs;
};

/* "100,100000" */
static bool read_places(struct bench *b, const char *text)
{
    const size_t most = (size_t)1 << 28;

    for (char *end; b->count < PLACES; text = end + 1) {
        if (*text < '0' || *text > '9')
            return false;
        const size_t from = strtoul(text, &end, 10);

        if (from > most || (*end != ',' && *end != '\0'))
            return false;
        b->places[b->count++].from = from;
        b->last = from > b->last ? from : b->last;
        if (*end == '\0')
            return true;
    }
    return false;
}

static bool make_places(struct bench *b)
{
    for (struct place *at = b->places; at < b->places + b->count; at++) {
        at->before = bench_block_new(b->streams.n * b->streams.size);
        at->stretch_s = calloc(b->values->length, sizeof *at->stretch_s);
        if (!at->before || !at->stretch_s)
            return false;
        for (size_t i = 0; i < b->values->length; i++)
            at->stretch_s[i] = (double)INFINITY;
        at->multiply_s = (double)INFINITY;
    }
    return true;
}

static tarn_status make_streams(struct bench *b, tarn_error *err)
{
    const struct values *const v = b->values;
    const tarn_engine_desc desc = {
        .longest = b->last + v->length,
        .method = v->method,
        .precision = v->precision,
        .host = {.threads = v->threads, .cpu = b->cpu},
    };
    const tarn_status status = stream_block_open(&b->streams, b->model, &desc, v->batch, err);

    if (status != TARN_OK)
        return status;
    const size_t weights = tarn_engine_weight_bytes(b->streams.engine);

    b->block = bench_block_new(weights);
    b->symbols = calloc(v->batch, sizeof *b->symbols);
    if (b->block && b->symbols && make_places(b))
        return TARN_OK;
    return bench_no_memory(err,
                           "%zu copies of %zu streams of %zu bytes and %zu bytes of weights",
                           b->count + 1, v->batch, b->streams.size, weights);
}

/* Symbols vary, so that branches cannot be predicted. */
static tarn_status steps(struct bench *b, size_t count, tarn_error *err)
{
    const int32_t known = (int32_t)tarn_model_config(b->model)->symbols;
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < count && status == TARN_OK; i++) {
        for (size_t s = 0; s < b->values->batch; s++)
            b->symbols[s] = (int32_t)((7 * i + 3 * s) % (size_t)known);
        status = stream_block_step(&b->streams, b->symbols, err);
    }
    return status;
}

static tarn_status run_up_to(struct bench *b, struct place *place, tarn_error *err)
{
    stream_block_restart(&b->streams);
    const tarn_status status = steps(b, place->from, err);

    memcpy(place->before, b->streams.memory, b->streams.n * b->streams.size);
    return status;
}

/* One run over the sequence; each stretch of it counts with the best of its runs so far. */
static tarn_status measure_run(struct bench *b, struct place *place, tarn_error *err)
{
    tarn_status status = TARN_OK;

    memcpy(b->streams.memory, place->before, b->streams.n * b->streams.size);
    for (size_t at = 0; at < place->steps && status == TARN_OK; at += place->stretch) {
        const size_t left = place->steps - at;
        double *const best = &place->stretch_s[at / place->stretch];
        const double start = stopwatch_seconds();

        status = steps(b, left < place->stretch ? left : place->stretch, err);
        *best = fmin(*best, stopwatch_seconds() - start);
    }
    return status;
}

/* The best of all runs for reading and for multiplying; the flops are those of the middle step,
 * because they grow linearly. */
static tarn_status measure_limits(struct bench *b, tarn_error *err)
{
    const struct values *const v = b->values;
    const size_t bytes = tarn_engine_weight_bytes(b->streams.engine);
    double gbps, gflops;
    tarn_status status;

    if ((status = tarn_measure_read(&gbps, b->block, bytes, b->cpu, v->threads, err)) !=
            TARN_OK ||
        (status = tarn_measure_fma_f32(&gflops, b->cpu, v->threads, err)) != TARN_OK)
        return status;
    b->read_s = fmin(b->read_s, 1e-9 * (double)bytes / gbps);
    for (struct place *at = b->places; at < b->places + b->count; at++) {
        const double flops =
            (double)v->batch * tarn_engine_flops(b->streams.engine, at->from + v->length / 2);

        at->multiply_s = fmin(at->multiply_s, 1e-9 * flops / gflops);
    }
    return TARN_OK;
}

static double limit_of(const struct bench *b, const struct place *at)
{
    return fmax(b->read_s, at->multiply_s);
}

/* What stands for the whole sequence: all of it if its last step computes more than its first.
 */
static void choose_steps(const struct bench *b, struct place *at)
{
    const size_t length = b->values->length;
    const bool grows = tarn_engine_flops(b->streams.engine, at->from + length - 1) >
                       tarn_engine_flops(b->streams.engine, at->from);

    at->stretch = (size_t)fmax(1.0, look_s / limit_of(b, at));
    at->steps = !grows && LOOKS * at->stretch < length ? LOOKS * at->stretch : length;
}

static bool is_enough(size_t wanted, size_t runs, double seconds)
{
    if (wanted > 0)
        return runs >= wanted;
    return runs >= RUNS_MOST || (runs >= RUNS_LEAST && seconds > enough_s);
}

/* Alternates steps and limits, because the speed of a shared machine varies. */
static tarn_status measure(struct bench *b, tarn_error *err)
{
    tarn_status status = TARN_OK;

    b->read_s = (double)INFINITY;
    for (size_t p = 0; p < b->count && status == TARN_OK; p++)
        status = run_up_to(b, &b->places[p], err);
    const double start = stopwatch_seconds();

    for (; status == TARN_OK &&
           !is_enough(b->values->repeat, b->runs, stopwatch_seconds() - start);
         b->runs++) {
        if (b->runs % LOOKS == 0)
            status = measure_limits(b, err);
        for (size_t p = 0; p < b->count && status == TARN_OK; p++) {
            if (b->runs == 0)
                choose_steps(b, &b->places[p]);
            status = measure_run(b, &b->places[p], err);
        }
    }
    for (struct place *at = b->places; at < b->places + b->count; at++)
        for (size_t i = 0; i * at->stretch < at->steps && status == TARN_OK; i++)
            at->step_s += at->stretch_s[i] / (double)at->steps;
    return status;
}

/* ---- Report ------------------------------------------------------------- */

static const char *limit_name(const struct bench *b, const struct place *at)
{
    return b->read_s > at->multiply_s ? "read" : "multiply";
}

static double of_limit(const struct bench *b, const struct place *at)
{
    return limit_of(b, at) / at->step_s;
}

static void print_json(const struct bench *b, const struct place *at)
{
    const struct values *const v = b->values;
    json_t *const object = json_object();

    json_put_text(object, "preset", v->model.preset);
    json_put_text(object, "attention", v->model.attention);
    json_put_text(object, "method", tarn_engine_method(b->streams.engine));
    json_put_text(object, "precision", v->precision);
    json_put_count(object, "batch", v->batch);
    json_put_count(object, "from", at->from);
    json_put_count(object, "length", v->length);
    json_put_count(object, "steps", at->steps);
    json_put_count(object, "runs", b->runs);
    json_put_count(object, "threads", v->threads ? v->threads : tarn_threads_default());
    json_put_number(object, "ms_per_step", 1e3 * at->step_s);
    json_put_number(object, "sequences_per_s",
                    (double)v->batch / (at->step_s * (double)v->length));
    json_put_count(object, "state_bytes", b->streams.n * b->streams.size);
    json_put_count(object, "weight_bytes", tarn_engine_weight_bytes(b->streams.engine));
    json_put_number(object, "read_ms", 1e3 * b->read_s);
    json_put_number(object, "multiply_ms", 1e3 * at->multiply_s);
    json_put_text(object, "limit", limit_name(b, at));
    json_put_number(object, "of_limit", of_limit(b, at));
    json_print_line(object);
}

static void print_text(const struct bench *b, const struct place *at)
{
    const struct values *const v = b->values;

    printf("%s, %s, %s, %s: batch %zu, %zu steps from position %zu\n", v->model.preset,
           v->model.attention, tarn_engine_method(b->streams.engine), v->precision, v->batch,
           v->length, at->from);
    printf("  %.4f ms per step, %.4g sequences/s; best of %zu runs of %zu steps\n",
           1e3 * at->step_s, (double)v->batch / (at->step_s * (double)v->length), b->runs,
           at->steps);
    printf("  state %zu bytes, weights %zu bytes\n", b->streams.n * b->streams.size,
           tarn_engine_weight_bytes(b->streams.engine));
    printf("  limits: %.4f ms to read the weights, %.4f ms to multiply: %.2f of the limit "
           "(%s)\n",
           1e3 * b->read_s, 1e3 * at->multiply_s, of_limit(b, at), limit_name(b, at));
}

static tarn_status measure_and_report(struct bench *b, tarn_error *err)
{
    tarn_status status;

    if ((status = bench_model_new(&b->model, &b->values->model, err)) != TARN_OK ||
        (status = make_streams(b, err)) != TARN_OK || (status = measure(b, err)) != TARN_OK)
        return status;
    for (const struct place *at = b->places; at < b->places + b->count; at++)
        (b->values->json ? print_json : print_text)(b, at);
    return TARN_OK;
}

static int run(void *given)
{
    const struct values *const values = given;
    struct bench bench = {.values = values};
    tarn_error err;

    if (!hardware_cpu(&bench.cpu))
        return EXIT_USAGE;
    if (!read_places(&bench, values->from))
        return command_refuse(
            &bench_generate,
            "--from is '%.40s'; it must be up to %d positions, such as 100,100000",
            values->from, PLACES);
    const int code = measure_and_report(&bench, &err) == TARN_OK
                         ? EXIT_DONE
                         : command_error(&bench_generate, &err);

    for (size_t p = 0; p < bench.count; p++) {
        free(bench.places[p].stretch_s);
        free(bench.places[p].before);
    }
    free(bench.symbols);
    free(bench.block);
    stream_block_close(&bench.streams);
    tarn_model_free(bench.model);
    return code;
}

const struct command bench_generate = {
    .name = "tarn bench generate",
    .summary = "time per generated token, compared with the hardware limit",
    .help =
        "Measure the time and state size of one generation step, and how close the time comes "
        "to "
        "the hardware limit: reading all weights once, or multiplying at the machine's peak, "
        "whichever takes longer.",
    .options = options,
    .tables = tables,
    .examples = "tarn bench generate --preset mnist-paper --threads 1\n"
                "tarn bench generate --attention softmax --from 100,10000\n",
    .values = sizeof(struct values),
    .run = run,
};
