/* SPDX-License-Identifier: MIT */
/* bench_speech.c - training speed on utterances of given lengths by the paper's four methods,
 * and by a model that is little more than its CTC loss. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"
#include "bench_model.h"

/* 39 phones and the blank; a label every 8 frames, about as fast as people speak. */
enum { BANDS = 40, SYMBOLS = 40, FRAMES_A_LABEL = 8, FRAMES_A_SECOND = 100 };

/* ---- Methods ------------------------------------------------------------ */

/* What is changed in the preset. The last one's width is the least that there is: its updates
 * are the loss, and a little. */
static const struct method {
    const char *name, *fields[6][2];
} methods[] = {
    {"bi-lstm",
     {{"body", "lstm"},
      {"position", "none"},
      {"layers", "3"},
      {"heads", "1"},
      {"width", "640"}}},
    {"softmax", {{"attention", "softmax"}}},
    {"lsh-4", {{"attention", "lsh:rounds=4"}}},
    {"linear", {{"attention", "linear"}}},
    {"ctc", {{"layers", "1"}, {"heads", "1"}, {"width", "4"}, {"feed", "1"}}},
};

enum { LSTM, LSH = 2, CTC = 4, METHODS = sizeof methods / sizeof methods[0] };

/* ---- Options ------------------------------------------------------------ */

struct options {
    struct bench_options common;
    const char *preset;
    struct args_counts lengths;
    size_t frames;
};

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "speech-paper", AT(preset), 0, 0,
     "model preset of the transformers, as in tarn bench train"},
    {"lengths", "N,...", ARGS_COUNTS, "800,2400", AT(lengths), 1, 1 << 24,
     "frames per utterance, at 100 frames per second"},
    {"frames", "N", ARGS_COUNT, "8000", AT(frames), 1, 1 << 24,
     "frames per batch, which holds as many utterances as fit, at least one"},
    BENCH_REPEAT("3", 1, 1000, "updates to measure, after one to warm up; the fastest counts"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("length and method"),
    BENCH_FILES,
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

/* A method at a length, with its own copy of the same random utterances. */
struct trained {
    struct bench_update update;
    size_t method, length, batch;
    float *frames;
    int32_t *labels;
    size_t *counts;
};

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct trained *const cases = bench_cases(run, v->lengths.count * METHODS);

    for (size_t i = 0; i < run->count; i++) {
        const size_t length = v->lengths.numbers[i / METHODS];

        cases[i] = (struct trained){.method = i % METHODS,
                                    .length = length,
                                    .batch = v->frames > length ? v->frames / length : 1};
    }
    run->rounds++; /* the first warms up */
    run->together = METHODS;
    bench_title(run, "Training updates of %s on random utterances of equal length", v->preset);
}

static void make_data(struct trained *t)
{
    static const char what[] = "the utterances";
    const size_t floats = t->batch * t->length * BANDS;
    const size_t each = t->length / FRAMES_A_LABEL;
    uint32_t state = 1;

    t->frames = allocate(floats, sizeof *t->frames, what);
    t->labels = allocate(t->batch * each, sizeof *t->labels, what);
    t->counts = allocate(t->batch, sizeof *t->counts, what);
    for (size_t i = 0; i < floats; i++)
        t->frames[i] = (float)(2.0 * bench_draw(&state) - 1.0);
    for (size_t i = 0; i < t->batch * each; i++)
        t->labels[i] = 1 + (int32_t)(bench_draw(&state) * (SYMBOLS - 1));
    for (size_t i = 0; i < t->batch; i++)
        t->counts[i] = each;
}

static tarn_config config_of(const char *preset, const struct method *method)
{
    const struct bench_model which = {.preset = preset, .head = "ctc"};
    tarn_config config = bench_model_config(&which);

    for (size_t i = 0; i < 6 && method->fields[i][0]; i++)
        must(tarn_config_set(&config, method->fields[i][0], method->fields[i][1], &failure));
    config.symbols = SYMBOLS;
    config.frames = BANDS;
    config.causal = false;
    return config;
}

static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct trained *const t = one;
    const tarn_config config = config_of(v->preset, &methods[t->method]);
    const tarn_trainer_desc desc = {
        .batch = t->batch,
        .length = t->length,
        .optimizer = t->method == LSTM ? "adam" : "radam",
        .lr = 1e-4,
        .host = v->common.host,
    };

    t->update = bench_update_open(&config, &desc);
    make_data(t);
    t->update.batch =
        (tarn_batch){.targets = t->labels, .frames = t->frames, .counts = t->counts};
}

static void close_one(void *one)
{
    struct trained *const t = one;

    bench_update_close(&t->update);
    free(t->frames);
    free(t->labels);
    free(t->counts);
}

/* ---- Report ------------------------------------------------------------- */

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct trained *const t = one, *const ctc = t - t->method + CTC;
    const struct bench_update *const u = &t->update;
    const double frames_per_s = (double)(t->batch * t->length) / u->seconds;
    const double flops = t->method == LSH ? (double)NAN : tarn_trainer_flops(u->trainer);
    struct bench_record r = {0};

    if (t->method == CTC)
        return;
    bench_text(&r, "method", "method", methods[t->method].name);
    bench_text(&r, "preset", NULL, v->preset);
    bench_text(&r, "precision", NULL, "f32");
    bench_count(&r, "length", "length", t->length);
    bench_count(&r, "batch", "batch", t->batch);
    bench_count(&r, "labels", NULL, t->batch * (t->length / FRAMES_A_LABEL));
    bench_text(&r, "processor", NULL, run->processor);
    bench_text(&r, "cpu", NULL, run->cpu);
    bench_count(&r, "threads", NULL, run->threads);
    bench_count(&r, "repeat", NULL, v->common.repeat);
    bench_count(&r, "parameters", NULL, tarn_model_parameters(u->model));
    bench_number(&r, "update_s", "s/update", u->seconds);
    bench_number(&r, "update_cpu_s", NULL, u->cpu_seconds);
    bench_number(&r, "frames_per_s", "frames/s", frames_per_s);
    bench_number(&r, "seconds_per_hour", "s/hour of speech",
                 3600.0 * FRAMES_A_SECOND / frames_per_s);
    bench_number(&r, "ctc_share", "of CTC", ctc->update.seconds / u->seconds);
    bench_number(&r, "fma_f32_gflops", NULL, run->fma_gflops);
    bench_number(&r, "of_peak", "of peak", 1e-9 * flops / u->seconds / run->fma_gflops);
    bench_report(run, &r);
}

const struct command bench_speech = {
    .name = "tarn bench speech",
    .summary = "speech training speed of each method: Table 3",
    .help =
        "Measure training updates on random utterances of equal length, as for the time per "
        "epoch in Table 3 of the paper but without padding. The methods are bi-lstm (3 layers "
        "of 320 units in each direction), softmax, lsh-4 and linear. ctc_share, in the table "
        "'of CTC', is an upper bound on the fraction of an update spent in the CTC loss: the "
        "time of a whole update of a model of width 4.",
    .options = options,
    .examples = "tarn bench speech\n"
                "tarn bench speech --preset speech-small --lengths 800,1600\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct trained),
            .plot = {.x = "length",
                     .x_label = "frames per utterance",
                     .series = "method",
                     .panels = {{"frames_per_s", "frames per second", 1.0},
                                {"seconds_per_hour", "seconds per hour of speech", 1.0}}},
            .has_peak = true,
            .list = list,
            .open = open_one,
            .measure = bench_update_measure,
            .close = close_one,
            .report = report,
        },
};
