/* SPDX-License-Identifier: MIT */
/* bench_prefill.c - how fast a prompt is read, beside the forward pass of training over the
 * same symbols: both take all positions in parallel, but a prefill leaves the state of a
 * stream. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "bench_model.h"
#include "stream_block.h"

struct options {
    struct bench_options common;
    struct bench_model model;
    const char *precision;
    struct args_counts length;
};

static const struct args_option options[] = {
    BENCH_MODEL("small", "as in tarn bench train"),
    BENCH_FEATURE_MAP,
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights of the prefill; the forward pass is f32"},
    {"length", "N,...", ARGS_COUNTS, "1024,65536", AT(length), 1, 1 << 24,
     "symbols of the prompt"},
    BENCH_REPEAT("5", 1, 1000, "repetitions; the fastest counts"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("length"),
    BENCH_FILES,
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

struct prompt {
    size_t length;
    tarn_model *model;
    struct stream_block stream;
    tarn_run *run;
    int32_t *symbols;
    double prefill_s, forward_s;
};

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct prompt *const cases = bench_cases(run, v->length.count);

    for (size_t i = 0; i < run->count; i++)
        cases[i] = (struct prompt){.length = v->length.numbers[i],
                                   .prefill_s = (double)INFINITY,
                                   .forward_s = (double)INFINITY};
    run->together = 1;
    bench_title(run, "Prefill of %s with random weights in %s, %s attention", v->model.preset,
                v->precision, v->model.attention);
}

static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct prompt *const p = one;
    const tarn_engine_desc engine = {
        .longest = p->length,
        .method = "recurrent",
        .precision = v->precision,
        .host = v->common.host,
    };
    const tarn_run_desc forward = {.batch = 1, .length = p->length, .host = v->common.host};

    p->model = bench_model_new(&v->model);
    p->stream = stream_block_open(p->model, &engine, 1);
    must(tarn_run_create(&p->run, p->model, &forward, &failure));
    p->symbols = bench_symbols(p->model, p->length);
}

static void close_one(void *one)
{
    struct prompt *const p = one;

    free(p->symbols);
    tarn_run_free(p->run);
    stream_block_close(&p->stream);
    tarn_model_free(p->model);
}

/* One of each. */
static void measure(struct bench_run *run, void *one)
{
    struct prompt *const p = one;
    const float *outputs;
    double start = seconds_now();

    (void)run;
    must(tarn_run_forward(p->run, &outputs, p->symbols, NULL, &failure));
    p->forward_s = fmin(p->forward_s, seconds_now() - start);
    stream_block_restart(&p->stream);
    start = seconds_now();
    stream_block_prefill(&p->stream, 0, p->symbols, p->length);
    p->prefill_s = fmin(p->prefill_s, seconds_now() - start);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct prompt *const p = one;
    struct bench_record r = {0};

    bench_text(&r, "preset", NULL, v->model.preset);
    bench_text(&r, "attention", NULL, v->model.attention);
    bench_text(&r, "precision", NULL, v->precision);
    bench_count(&r, "length", "length", p->length);
    bench_count(&r, "threads", NULL, run->threads);
    bench_number(&r, "prefill_tokens_per_s", "prefill tokens/s",
                 (double)p->length / p->prefill_s);
    bench_number(&r, "forward_tokens_per_s", "forward tokens/s",
                 (double)p->length / p->forward_s);
    bench_number(&r, "of_forward", "of forward", p->forward_s / p->prefill_s);
    bench_report(run, &r);
}

const struct command bench_prefill = {
    .name = "tarn bench prefill",
    .summary = "speed of reading a prompt, compared with the forward pass",
    .help =
        "Measure how fast a stream reads a prompt, many positions at a time, and compare it "
        "with the forward pass over whole sequences, by turns.",
    .options = options,
    .examples = "tarn bench prefill --length 65536\n"
                "tarn bench prefill --preset mnist-paper --threads 1\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct prompt),
            .plot = {.x = "length",
                     .x_label = "symbols of the prompt",
                     .series = "attention",
                     .panels = {{"prefill_tokens_per_s", "tokens per second", 1.0},
                                {"of_forward", "fraction of the forward pass", 1.0}}},
            .list = list,
            .open = open_one,
            .measure = measure,
            .close = close_one,
            .report = report,
        },
};
