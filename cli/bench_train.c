/* SPDX-License-Identifier: MIT */
/* bench_train.c - how fast a model trains, and what it keeps in memory: whole updates on random
 * symbols, the best of several beside the multiply-adds that this machine can do. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_memory.h"
#include "bench_model.h"
#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "model_open.h"
#include "stopwatch.h"
#include "tarn/tarn.h"
#include "words.h"

struct values {
    struct bench_model model;
    const char *optimizer, *precision;
    size_t length, batch, threads, repeat;
    bool recompute, json;
};

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "mnist-paper", offsetof(struct values, model.preset), 0, 0,
     "model preset, listed below; its weights are random"},
    {"attention", "SPEC", ARGS_TEXT, "linear", offsetof(struct values, model.attention), 0, 0,
     "kind of attention, with options as in tarn train"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, offsetof(struct values, model.feature_map), 0, 0,
     "feature map of the attention [the default of its kind]"},
    {"length", "N", ARGS_COUNT, "784", offsetof(struct values, length), 1, 1 << 28,
     "sequence length"},
    {"batch", "B", ARGS_COUNT, "10", offsetof(struct values, batch), 1, 1 << 20, "batch size"},
    {"optimizer", "SPEC", ARGS_TEXT, "radam", offsetof(struct values, optimizer), 0, 0,
     "optimizer, with options as in tarn train"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", offsetof(struct values, precision), 0, 0,
     "precision of matrix products"},
    {"recompute", NULL, ARGS_FLAG, NULL, offsetof(struct values, recompute), 0, 0,
     "recompute activations in the backward pass: less memory, more time"},
    {"threads", "N", ARGS_COUNT, "0", offsetof(struct values, threads), 0, 1024, THREADS_HELP},
    {"repeat", "N", ARGS_COUNT, "5", offsetof(struct values, repeat), 1, 1000,
     "updates to measure, after one to warm up; the fastest counts"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "print one JSON object"},
    {0},
};

static const struct args_table tables[] = {
    {"presets", tarn_preset, "preset"},
    {NULL, tarn_attention_kind, "attention"},
    {NULL, tarn_feature_map, "feature-map"},
    {NULL, tarn_optimizer, "optimizer"},
    {0},
};

/* ---- One bench ---------------------------------------------------------- */

struct bench {
    const struct values *values;
    const char *cpu;
    tarn_model *model;
    tarn_trainer *trainer;
    int32_t *symbols;
    double seconds, peak; /* of the best update; GFLOP/s */
};

static tarn_status make_trainer(struct bench *b, tarn_error *err)
{
    const struct values *const v = b->values;
    const tarn_trainer_desc desc = {
        .batch = v->batch,
        .length = v->length,
        .optimizer = v->optimizer,
        .precision = v->precision,
        .recompute = v->recompute,
        .lr = 1e-4,
        .host = {.threads = v->threads, .cpu = b->cpu},
    };

    return tarn_trainer_create(&b->trainer, b->model, &desc, err);
}

/* A simple generator: what the symbols are does not matter, that they vary does. */
static bool make_symbols(struct bench *b)
{
    const size_t count = b->values->batch * b->values->length;
    const uint32_t known = (uint32_t)tarn_model_config(b->model)->symbols;
    uint32_t state = 1;

    b->symbols = malloc(count * sizeof *b->symbols);
    for (size_t i = 0; b->symbols && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        b->symbols[i] = (int32_t)((state >> 8) % known);
    }
    return b->symbols != NULL;
}

static tarn_status measure(struct bench *b, tarn_error *err)
{
    const tarn_batch batch = {.inputs = b->symbols, .targets = b->symbols};
    tarn_status status = tarn_measure_fma_f32(&b->peak, b->cpu, b->values->threads, err);

    b->seconds = (double)INFINITY;
    for (size_t i = 0; i <= b->values->repeat && status == TARN_OK; i++) {
        const double start = stopwatch_seconds();
        tarn_report report;

        status = tarn_trainer_update(b->trainer, &report, &batch, 1, err);
        if (i > 0)
            b->seconds = fmin(b->seconds, stopwatch_seconds() - start);
    }
    return status;
}

/* ---- Report ------------------------------------------------------------- */

static void print_json(const struct bench *b, double tokens, double gflops, double planned)
{
    const struct values *const v = b->values;
    json_t *const object = json_object();

    json_put_text(object, "preset", v->model.preset);
    json_put_text(object, "attention", v->model.attention);
    json_put_text(object, "precision", v->precision);
    json_put_bool(object, "recompute", v->recompute);
    json_put_count(object, "batch", v->batch);
    json_put_count(object, "length", v->length);
    json_put_count(object, "threads", v->threads ? v->threads : tarn_threads_default());
    json_put_count(object, "parameters", tarn_model_parameters(b->model));
    json_put_number(object, "update_s", b->seconds);
    json_put_number(object, "tokens_per_s", tokens / b->seconds);
    json_put_number(object, "gflops", gflops);
    json_put_number(object, "of_peak", gflops / b->peak);
    json_put_number(object, "planned_bytes", planned);
    json_put_number(object, "peak_bytes", bench_resident_bytes());
    json_print_line(object);
}

static void print_text(const struct bench *b, double tokens, double gflops, double planned)
{
    char plan[32], peak[32];

    words_bytes(plan, sizeof plan, planned);
    words_bytes(peak, sizeof peak, bench_resident_bytes());
    printf("%s, %s, %s: batch %zu, length %zu\n", b->values->model.preset,
           b->values->model.attention, b->values->precision, b->values->batch,
           b->values->length);
    printf("  %.3f s per update, %.0f tokens/s\n", b->seconds, tokens / b->seconds);
    printf("  %.1f GFLOP/s, %.2f of the peak of %.1f\n", gflops, gflops / b->peak, b->peak);
    printf("  %s planned, %s peak resident memory\n", plan, peak);
}

static void report(const struct bench *b)
{
    const double tokens = (double)b->values->batch * (double)b->values->length;
    const double gflops = 1e-9 * tarn_trainer_flops(b->trainer) / b->seconds;
    const double planned = (double)tarn_trainer_bytes(b->trainer) +
                           (double)tarn_model_parameters(b->model) * (double)sizeof(float);

    if (b->values->json)
        print_json(b, tokens, gflops, planned);
    else
        print_text(b, tokens, gflops, planned);
}

static tarn_status measure_and_report(struct bench *b, tarn_error *err)
{
    tarn_status status;

    if ((status = bench_model_new(&b->model, &b->values->model, err)) != TARN_OK ||
        (status = make_trainer(b, err)) != TARN_OK)
        return status;
    if (!make_symbols(b))
        return bench_no_memory(err, "the random symbols");
    if ((status = measure(b, err)) == TARN_OK)
        report(b);
    return status;
}

static int run(void *given)
{
    struct bench bench = {.values = given};
    tarn_error err;

    if (!hardware_cpu(&bench.cpu))
        return EXIT_USAGE;
    const int code = measure_and_report(&bench, &err) == TARN_OK
                         ? EXIT_DONE
                         : command_error(&bench_train, &err);

    tarn_trainer_free(bench.trainer);
    tarn_model_free(bench.model);
    free(bench.symbols);
    return code;
}

const struct command bench_train = {
    .name = "tarn bench train",
    .summary = "training speed and memory of a model",
    .help =
        "Measure training updates of a model on random symbols: time, memory, and speed as a "
        "fraction of the machine's peak. An update is counted as 6 floating-point operations "
        "per parameter and position, plus those of attention.",
    .options = options,
    .tables = tables,
    .examples = "tarn bench train --preset mnist-paper --batch 10\n"
                "tarn bench train --preset small --attention softmax --length 4096\n",
    .values = sizeof(struct values),
    .run = run,
};
