/* SPDX-License-Identifier: MIT */
/* bench_generate.c - time per step of generation, compared with the larger of two limits:
 * reading the weights and the streams' states once, measured on an array of the same size, and
 * the multiply-adds. */
#include <math.h>
#include <string.h>

#include "bench.h"
#include "bench_model.h"
#include "stream_block.h"

/* Duration of one measurement, the same as for the limits (machine.h): on a shared machine long
 * measurements are disturbed more often than short ones, and could not be compared to them. */
static const double stretch_s = 0.025;

/* Total duration of the measurements. */
static const double enough_s = 20.0;
enum { RUNS_LEAST = 3, RUNS_MOST = 48 };

/* Arrays of this size come from memory on any machine: larger ones take as long per byte. */
#define BLOCK_MOST ((size_t)256 << 20)

/* Stretches at a state that does not grow, and rounds between measurements of the limits. */
enum { STRETCHES = 16 };

struct options {
    struct bench_options common;
    struct bench_model model;
    const char *method, *precision;
    struct args_counts from;
    size_t batch, length;
};

static const struct args_option options[] = {
    BENCH_MODEL("mnist-paper", "as in tarn bench train"),
    BENCH_FEATURE_MAP,
    {"method", "NAME", ARGS_TEXT, NULL, AT(method), 0, 0,
     "generation method, recurrent or recompute [recurrent, if the attention supports it]"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights"},
    {"batch", "B", ARGS_COUNT, "1", AT(batch), 1, 1 << 20, "batch size"},
    {"length", "N", ARGS_COUNT, "784", AT(length), 1, 1 << 28,
     "steps per sequence; if all cost the same, only the first are measured"},
    {"from", "P,...", ARGS_COUNTS, "0", AT(from), 0, 1 << 28,
     "position of the first measured step; earlier ones are run but not measured. With "
     "several positions, measurements alternate"},
    BENCH_REPEAT("0", 0, 1000,
                 "repetitions; the fastest of every 25 ms of steps counts; 0: for 20 s, 3 to "
                 "48"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("position"),
    BENCH_FILES,
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

/* For all positions: the model, its streams, and what reading is measured on. */
struct shared {
    tarn_model *model;
    struct stream_block streams;
    void *block; /* as large as what a step reads at most, or BLOCK_MOST */
    size_t block_bytes;
    int32_t *symbols; /* one per sequence */
};

/* A position from which steps are measured. */
struct place {
    size_t from, runs;
    void *before;              /* the streams there */
    size_t stretch, steps;     /* that are measured at a time; in all */
    double *seconds;           /* of each stretch, the best of its runs */
    double read_bytes;         /* of a step: weights, and states so far */
    double read_s, multiply_s; /* limits of a step */
};

static size_t farthest(const struct args_counts *from)
{
    size_t most = 0;

    for (size_t i = 0; i < from->count; i++)
        most = larger(most, from->numbers[i]);
    return most;
}

static void open_shared(struct shared *s, const struct options *v)
{
    const tarn_engine_desc desc = {
        .longest = farthest(&v->from) + v->length,
        .method = v->method,
        .precision = v->precision,
        .host = v->common.host,
    };

    s->model = bench_model_new(&v->model);
    s->streams = stream_block_open(s->model, &desc, v->batch);
    s->block_bytes = smaller(BLOCK_MOST, tarn_engine_weight_bytes(s->streams.engine) +
                                             v->batch * s->streams.size);
    s->block = hardware_block(s->block_bytes);
    if (!s->block)
        fail("not enough memory for an array of %zu bytes", s->block_bytes);
    s->symbols = allocate(v->batch, sizeof *s->symbols, "the symbols");
}

/* Whether the last step of a sequence computes more than its first. */
static bool grows(const struct shared *s, size_t from, size_t length)
{
    return tarn_engine_flops(s->streams.engine, from + length - 1) >
           tarn_engine_flops(s->streams.engine, from);
}

/* By the middle step: a state that grows does so with every position. */
static double read_bytes(const struct shared *s, const struct options *v, size_t from)
{
    const double position = (double)(from + v->length / 2 + 1);
    const double used =
        grows(s, from, v->length) ? position / (double)(farthest(&v->from) + v->length) : 1.0;

    return (double)tarn_engine_weight_bytes(s->streams.engine) +
           used * (double)v->batch * (double)s->streams.size;
}

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct place *const cases = bench_cases(run, v->from.count);

    run->shared = allocate(1, sizeof(struct shared), "the model");
    open_shared(run->shared, v);
    for (size_t i = 0; i < run->count; i++)
        cases[i] = (struct place){.from = v->from.numbers[i],
                                  .read_bytes = read_bytes(run->shared, v, v->from.numbers[i]),
                                  .read_s = (double)INFINITY,
                                  .multiply_s = (double)INFINITY};
    if (v->common.repeat == 0) {
        run->rounds = RUNS_MOST;
        run->rounds_least = RUNS_LEAST;
        run->seconds_enough = enough_s;
    }
    bench_title(run, "Steps of %s with random weights in %s, %s attention", v->model.preset,
                v->precision, v->model.attention);
}

/* Symbols vary, so that branches cannot be predicted. */
static void step(struct shared *s, size_t count)
{
    const size_t known = tarn_model_config(s->model)->symbols;

    for (size_t i = 0; i < count; i++) {
        for (size_t b = 0; b < s->streams.n; b++)
            s->symbols[b] = (int32_t)((7 * i + 3 * b) % known);
        stream_block_step(&s->streams, s->symbols);
    }
}

/* Runs up to the position, and keeps the streams there. */
static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct shared *const s = run->shared;
    struct place *const at = one;

    at->before = hardware_block(s->streams.n * s->streams.size);
    if (!at->before)
        fail("not enough memory for another %zu streams of %zu bytes", v->batch,
             s->streams.size);
    at->seconds = allocate(v->length, sizeof *at->seconds, "the times of %zu steps", v->length);
    for (size_t i = 0; i < v->length; i++)
        at->seconds[i] = (double)INFINITY;
    stream_block_restart(&s->streams);
    step(s, at->from);
    memcpy(at->before, s->streams.memory, s->streams.n * s->streams.size);
}

/* ---- Measuring ---------------------------------------------------------- */

/* Narrow numbers are multiplied faster than floats, by a factor that differs between processors
 * and is not measured. */
static bool multiplies_narrow(const struct options *v)
{
    return strcmp(v->precision, "int8") == 0 || strcmp(v->precision, "bf16-inputs") == 0;
}

/* The best of all for reading and for multiplying; the flops are those of the middle step,
 * because they grow linearly. */
static void measure_limits(const struct bench_run *run, struct shared *s, struct place *at)
{
    const struct options *const v = run->values;
    const tarn_host *const host = &v->common.host;
    const size_t bytes = (size_t)fmin(at->read_bytes, (double)s->block_bytes);
    const double flops =
        (double)v->batch * tarn_engine_flops(s->streams.engine, at->from + v->length / 2);
    double gbps;

    must(tarn_measure_read(&gbps, s->block, bytes, host->cpu, host->threads, &failure));
    at->read_s = fmin(at->read_s, 1e-9 * at->read_bytes / gbps);
    at->multiply_s = fmin(at->multiply_s, 1e-9 * flops / run->fma_gflops);
    if (multiplies_narrow(run->values))
        at->multiply_s = 0.0;
}

static double limit_of(const struct place *at)
{
    return fmax(at->read_s, at->multiply_s);
}

/* What stands for the whole sequence: all of it if it grows. */
static void choose_steps(const struct shared *s, struct place *at, size_t length)
{
    at->stretch = (size_t)fmax(1.0, stretch_s / limit_of(at));
    at->steps = !grows(s, at->from, length) && STRETCHES * at->stretch < length
                    ? STRETCHES * at->stretch
                    : length;
}

/* One run over the sequence; each stretch of it counts with the best of its runs so far. */
static void measure(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct shared *const s = run->shared;
    struct place *const at = one;

    if (run->round % STRETCHES == 0)
        measure_limits(run, s, at);
    if (run->round == 0)
        choose_steps(s, at, v->length);
    memcpy(s->streams.memory, at->before, s->streams.n * s->streams.size);
    for (size_t i = 0; i < at->steps; i += at->stretch) {
        double *const best = &at->seconds[i / at->stretch];
        const double start = seconds_now();

        step(s, smaller(at->steps - i, at->stretch));
        *best = fmin(*best, seconds_now() - start);
    }
    at->runs++;
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct shared *const s = run->shared;
    const struct place *const at = one;
    struct bench_record r = {0};
    double step_s = 0.0;

    for (size_t i = 0; i * at->stretch < at->steps; i++)
        step_s += at->seconds[i] / (double)at->steps;
    bench_text(&r, "preset", NULL, v->model.preset);
    bench_text(&r, "attention", NULL, v->model.attention);
    bench_text(&r, "method", "method", tarn_engine_method(s->streams.engine));
    bench_text(&r, "precision", NULL, v->precision);
    bench_count(&r, "batch", "batch", v->batch);
    bench_count(&r, "from", "from", at->from);
    bench_count(&r, "length", NULL, v->length);
    bench_count(&r, "steps", "steps", at->steps);
    bench_count(&r, "runs", NULL, at->runs);
    bench_count(&r, "threads", NULL, run->threads);
    bench_number(&r, "ms_per_step", "ms/step", 1e3 * step_s);
    bench_number(&r, "sequences_per_s", NULL, (double)v->batch / (step_s * (double)v->length));
    bench_count(&r, "state_bytes", NULL, s->streams.n * s->streams.size);
    bench_bytes(&r, NULL, "state", (double)(s->streams.n * s->streams.size));
    bench_count(&r, "weight_bytes", NULL, tarn_engine_weight_bytes(s->streams.engine));
    bench_number(&r, "read_bytes", NULL, at->read_bytes);
    bench_number(&r, "read_ms", "read ms", 1e3 * at->read_s);
    bench_number(&r, "multiply_ms", "multiply ms",
                 multiplies_narrow(v) ? (double)NAN : 1e3 * at->multiply_s);
    bench_text(&r, "limit", NULL, at->read_s > at->multiply_s ? "read" : "multiply");
    bench_number(&r, "of_limit", "of limit", limit_of(at) / step_s);
    bench_report(run, &r);
}

const struct command bench_generate = {
    .name = "tarn bench generate",
    .summary = "time per generated token, compared with the hardware limit",
    .help =
        "Measure the time and state size of one generation step, and how close the time comes "
        "to the hardware limit: reading all weights and the states of all streams once, or "
        "multiplying at the machine's peak in f32, whichever takes longer; with weights in "
        "int8 or bf16-inputs reading alone, because processors multiply these faster.",
    .options = options,
    .examples = "tarn bench generate --preset mnist-paper --threads 1\n"
                "tarn bench generate --attention softmax --from 100,10000\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct place),
            .note =
                "The limit of a step is to read the weights and states once or to multiply, "
                "whichever is slower.",
            .plot = {.x = "from",
                     .x_label = "position of the first step",
                     .series = "method",
                     .panels = {{"ms_per_step", "milliseconds per step", 1.0},
                                {"of_limit", "fraction of the limit", 1.0}}},
            .has_peak = true,
            .list = list,
            .open = open_one,
            .measure = measure,
            .report = report,
        },
};
