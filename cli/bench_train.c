/* SPDX-License-Identifier: MIT */
/* bench_train.c - how fast a model trains, and how much memory it takes: whole updates on
 * random symbols. */
#include "bench.h"
#include "bench_model.h"

struct options {
    struct bench_options common;
    struct bench_model model;
    const char *optimizer, *precision;
    size_t length, batch;
    bool recompute;
};

static const struct args_option options[] = {
    BENCH_MODEL("mnist-paper", "listed below"),
    BENCH_FEATURE_MAP,
    {"length", "N", ARGS_COUNT, "784", AT(length), 1, 1 << 28, "sequence length"},
    {"batch", "B", ARGS_COUNT, "10", AT(batch), 1, 1 << 20, "batch size"},
    {"optimizer", "SPEC", ARGS_TEXT, "radam", AT(optimizer), 0, 0,
     "optimizer, with options as in tarn train"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of matrix products"},
    {"recompute", NULL, ARGS_FLAG, NULL, AT(recompute), 0, 0,
     "recompute activations in the backward pass: less memory, more time"},
    BENCH_REPEAT("5", 1, 1000, "updates to measure, after one to warm up; the fastest counts"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("model"),
    BENCH_FILES,
    {0},
};

/* ---- The case ----------------------------------------------------------- */

static void list(struct bench_run *run)
{
    run->rounds++; /* the first warms up */
    bench_title(run, "Training updates on random symbols");
    bench_cases(run, 1);
}

static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct bench_update *const u = one;
    const tarn_config config = bench_model_config(&v->model);
    const tarn_trainer_desc desc = {
        .batch = v->batch,
        .length = v->length,
        .optimizer = v->optimizer,
        .precision = v->precision,
        .recompute = v->recompute,
        .lr = 1e-4,
        .host = v->common.host,
    };

    *u = bench_update_open(&config, &desc);
    u->batch.inputs = u->batch.targets = bench_symbols(u->model, v->batch * v->length);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct bench_update *const u = one;
    const double tokens = (double)v->batch * (double)v->length;
    const double gflops = 1e-9 * tarn_trainer_flops(u->trainer) / u->seconds;
    const size_t parameters = tarn_model_parameters(u->model);
    struct bench_record r = {0};

    bench_text(&r, "preset", "preset", v->model.preset);
    bench_text(&r, "attention", "attention", v->model.attention);
    bench_text(&r, "precision", NULL, v->precision);
    bench_bool(&r, "recompute", v->recompute);
    bench_count(&r, "batch", "batch", v->batch);
    bench_count(&r, "length", "length", v->length);
    bench_count(&r, "threads", NULL, run->threads);
    bench_count(&r, "parameters", NULL, parameters);
    bench_number(&r, "update_s", "s/update", u->seconds);
    bench_number(&r, "tokens_per_s", "tokens/s", tokens / u->seconds);
    bench_number(&r, "gflops", "GFLOP/s", gflops);
    bench_number(&r, "of_peak", "of peak", gflops / run->fma_gflops);
    bench_bytes(&r, "planned_bytes", "planned",
                (double)tarn_trainer_bytes(u->trainer) +
                    (double)parameters * (double)sizeof(float));
    bench_bytes(&r, "peak_bytes", "resident", hardware_resident());
    bench_report(run, &r);
}

const struct command bench_train = {
    .name = "tarn bench train",
    .summary = "training speed and memory of a model",
    .help =
        "Measure training updates of a model on random symbols: time, memory, and speed as a "
        "fraction of the machine's peak. An update is counted as 6 floating-point operations "
        "per parameter and position, plus those of attention.",
    .options = options,
    .tables = (const struct args_table[]){{"presets", tarn_preset, "preset"}, {0}},
    .examples = "tarn bench train --preset mnist-paper --batch 10\n"
                "tarn bench train --preset small --attention softmax --length 4096\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct bench_update),
            .plot = {.x = "length",
                     .x_label = "sequence length N",
                     .series = "attention",
                     .panels = {{"tokens_per_s", "tokens per second", 1.0},
                                {"peak_bytes", "peak resident memory, MiB", 1.0 / 1048576.0}}},
            .has_peak = true,
            .list = list,
            .open = open_one,
            .measure = bench_update_measure,
            .report = report,
        },
};
