/* SPDX-License-Identifier: MIT */
/* bench_speech.c - training speed on utterances of given lengths by the paper's four methods,
 * which alternate, and by a model that is little more than its CTC loss. */
#include <inttypes.h>
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
#include "tarn/tarn.h"

/* 39 phones and the blank; a label every 8 frames, about as fast as people speak. */
enum { BANDS = 40, SYMBOLS = 40, FRAMES_A_LABEL = 8, LENGTHS_MAX = 16, FRAMES_A_SECOND = 100 };

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

enum { METHODS = sizeof methods / sizeof methods[0], CTC = METHODS - 1 };

/* ---- Options ------------------------------------------------------------ */

struct values {
    const char *preset, *lengths;
    size_t frames, threads, repeat;
    bool json;
};

#define AT(field) offsetof(struct values, field)

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "speech-paper", AT(preset), 0, 0,
     "model preset of the transformers, as in tarn bench train"},
    {"lengths", "N,...", ARGS_TEXT, "800,2400", AT(lengths), 0, 0,
     "frames per utterance, at 100 frames per second"},
    {"frames", "N", ARGS_COUNT, "8000", AT(frames), 1, 1 << 24,
     "frames per batch, which holds as many utterances as fit, at least one"},
    {"repeat", "N", ARGS_COUNT, "3", AT(repeat), 1, 1000,
     "updates to measure, after one to warm up; the fastest counts"},
    {"threads", "N", ARGS_COUNT, "0", AT(threads), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object per length and method"},
    {0},
};

static const struct args_table tables[] = {
    {NULL, tarn_preset, "preset"},
    {0},
};

/* ---- One length --------------------------------------------------------- */

struct subject {
    tarn_model *model;
    tarn_trainer *trainer;
    double seconds, cpu_seconds; /* of the best update, by the clock and by the processors */
};

struct bench {
    const struct values *values;
    const char *cpu;
    size_t length, batch;
    struct subject subjects[METHODS];
    float *frames;
    int32_t *labels;
    size_t *counts;
    double peak; /* GFLOP/s */
};

static double draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1 << 24);
}

static bool make_data(struct bench *b)
{
    const size_t floats = b->batch * b->length * BANDS;
    const size_t each = b->length / FRAMES_A_LABEL;
    uint32_t state = 1;

    b->frames = malloc(floats * sizeof *b->frames);
    b->labels = malloc((b->batch * each + 1) * sizeof *b->labels);
    b->counts = malloc(b->batch * sizeof *b->counts);
    if (!b->frames || !b->labels || !b->counts)
        return false;
    for (size_t i = 0; i < floats; i++)
        b->frames[i] = (float)(2.0 * draw(&state) - 1.0);
    for (size_t i = 0; i < b->batch * each; i++)
        b->labels[i] = 1 + (int32_t)(draw(&state) * (SYMBOLS - 1));
    for (size_t i = 0; i < b->batch; i++)
        b->counts[i] = each;
    return true;
}

static tarn_status configure(tarn_config *config, const char *preset,
                             const struct method *method, tarn_error *err)
{
    tarn_status status = tarn_config_preset(config, preset, err);

    if (status == TARN_OK)
        status = tarn_config_set(config, "head", "ctc", err);
    for (size_t i = 0; status == TARN_OK && i < 6 && method->fields[i][0]; i++)
        status = tarn_config_set(config, method->fields[i][0], method->fields[i][1], err);
    config->symbols = SYMBOLS;
    config->frames = BANDS;
    config->causal = false;
    return status;
}

static tarn_status open_subject(struct bench *b, size_t method, tarn_error *err)
{
    struct subject *const s = &b->subjects[method];
    const tarn_trainer_desc desc = {
        .batch = b->batch,
        .length = b->length,
        .optimizer = strcmp(methods[method].name, "bi-lstm") == 0 ? "adam" : "radam",
        .lr = 1e-4,
        .host = {.threads = b->values->threads, .cpu = b->cpu},
    };
    tarn_config config;
    tarn_status status = configure(&config, b->values->preset, &methods[method], err);

    s->seconds = s->cpu_seconds = (double)INFINITY;
    if (status == TARN_OK)
        status = tarn_model_create(&s->model, &config, NULL, err);
    if (status == TARN_OK)
        status = tarn_trainer_create(&s->trainer, s->model, &desc, err);
    return status;
}

static tarn_status measure_peak(struct bench *b, tarn_error *err)
{
    double gflops = 0.0;
    const tarn_status status = tarn_measure_fma_f32(&gflops, b->cpu, b->values->threads, err);

    b->peak = fmax(b->peak, gflops);
    return status;
}

/* One update of every method; the first only warms up. */
static tarn_status measure_turn(struct bench *b, bool counts, tarn_error *err)
{
    const tarn_batch batch = {.targets = b->labels, .frames = b->frames, .counts = b->counts};
    tarn_status status = measure_peak(b, err);

    for (size_t i = 0; i < METHODS && status == TARN_OK; i++) {
        struct subject *const s = &b->subjects[i];
        const double start = stopwatch_seconds(), cpu_start = stopwatch_cpu_seconds();
        tarn_report report;

        status = tarn_trainer_update(s->trainer, &report, &batch, 1, err);
        if (!counts)
            continue;
        s->seconds = fmin(s->seconds, stopwatch_seconds() - start);
        s->cpu_seconds = fmin(s->cpu_seconds, stopwatch_cpu_seconds() - cpu_start);
    }
    return status;
}

static tarn_status measure(struct bench *b, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < METHODS && status == TARN_OK; i++)
        status = open_subject(b, i, err);
    for (size_t turn = 0; turn <= b->values->repeat && status == TARN_OK; turn++)
        status = measure_turn(b, turn > 0, err);
    return status;
}

static void close_length(struct bench *b)
{
    for (size_t i = 0; i < METHODS; i++) {
        tarn_trainer_free(b->subjects[i].trainer);
        tarn_model_free(b->subjects[i].model);
        b->subjects[i] = (struct subject){0};
    }
    free(b->frames);
    free(b->labels);
    free(b->counts);
    b->frames = NULL;
    b->labels = NULL;
    b->counts = NULL;
}

/* ---- Report ------------------------------------------------------------- */

static double frames_per_s(const struct bench *b, size_t method)
{
    return (double)(b->batch * b->length) / b->subjects[method].seconds;
}

/* Only where a number of flops is agreed. */
static double of_peak(const struct bench *b, size_t method)
{
    const struct subject *const s = &b->subjects[method];
    const bool counted = strcmp(methods[method].name, "lsh-4") != 0;

    return counted ? 1e-9 * tarn_trainer_flops(s->trainer) / s->seconds / b->peak : (double)NAN;
}

static void print_json(const struct bench *b, size_t method)
{
    const struct subject *const s = &b->subjects[method];
    char processor[128];
    json_t *const object = json_object();

    hardware_name(processor, sizeof processor);
    json_put_text(object, "preset", b->values->preset);
    json_put_text(object, "method", methods[method].name);
    json_put_text(object, "precision", "f32");
    json_put_count(object, "length", b->length);
    json_put_count(object, "batch", b->batch);
    json_put_count(object, "labels", b->batch * (b->length / FRAMES_A_LABEL));
    json_put_text(object, "processor", processor);
    json_put_text(object, "cpu", b->cpu ? b->cpu : tarn_cpu_name(0));
    json_put_count(object, "threads",
                   b->values->threads ? b->values->threads : tarn_threads_default());
    json_put_count(object, "repeat", b->values->repeat);
    json_put_count(object, "parameters", tarn_model_parameters(s->model));
    json_put_number(object, "update_s", s->seconds);
    json_put_number(object, "update_cpu_s", s->cpu_seconds);
    json_put_number(object, "frames_per_s", frames_per_s(b, method));
    json_put_number(object, "seconds_per_hour",
                    3600.0 * FRAMES_A_SECOND / frames_per_s(b, method));
    json_put_number(object, "ctc_share", b->subjects[CTC].seconds / s->seconds);
    json_put_number(object, "fma_f32_gflops", b->peak);
    json_put_number(object, "of_peak", of_peak(b, method));
    json_print_line(object);
}

static void print_row(const struct bench *b, size_t method)
{
    const double peak = of_peak(b, method);

    printf("  %-10s %10.3f %10.0f %16.1f", methods[method].name, b->subjects[method].seconds,
           frames_per_s(b, method), 3600.0 * FRAMES_A_SECOND / frames_per_s(b, method));
    if (isfinite(peak))
        printf(" %8.2f\n", peak);
    else
        printf(" %8s\n", "-");
}

static void report(const struct bench *b)
{
    if (!b->values->json)
        printf("%zu utterances of %zu frames; the CTC loss takes at most %.1f ms per update\n"
               "  %-10s %10s %10s %16s %8s\n",
               b->batch, b->length, 1e3 * b->subjects[CTC].seconds, "method", "s/update",
               "frames/s", "s/hour of speech", "of peak");
    for (size_t i = 0; i < CTC; i++)
        if (b->values->json)
            print_json(b, i);
        else
            print_row(b, i);
}

/* ---- The command -------------------------------------------------------- */

static bool read_lengths(size_t *lengths, size_t *count, const char *text)
{
    for (*count = 0; *count < LENGTHS_MAX;) {
        char *end;
        const uintmax_t number = *text >= '0' && *text <= '9' ? strtoumax(text, &end, 10) : 0;

        if (number < 1 || number > 1 << 24 || (*end != ',' && *end != '\0'))
            return false;
        lengths[(*count)++] = (size_t)number;
        if (*end == '\0')
            return true;
        text = end + 1;
    }
    return false;
}

static tarn_status run_length(struct bench *b, size_t length, tarn_error *err)
{
    tarn_status status;

    b->length = length;
    b->batch = b->values->frames > length ? b->values->frames / length : 1;
    status = make_data(b) ? measure(b, err) : bench_no_memory(err, "the utterances");
    if (status == TARN_OK)
        report(b);
    close_length(b);
    return status;
}

static int run(void *given)
{
    const struct values *const values = given;
    struct bench bench = {.values = values};
    size_t lengths[LENGTHS_MAX], count;
    tarn_status status = TARN_OK;
    tarn_error err;

    if (!hardware_cpu(&bench.cpu))
        return EXIT_USAGE;
    if (!read_lengths(lengths, &count, values->lengths))
        return command_refuse(
            &bench_speech,
            "--lengths is '%.80s'; it must be up to 16 whole numbers from 1 to "
            "16777216, such as 800,2400",
            values->lengths);
    for (size_t i = 0; i < count && status == TARN_OK; i++)
        status = run_length(&bench, lengths[i], &err);
    return status == TARN_OK ? EXIT_DONE : command_error(&bench_speech, &err);
}

const struct command bench_speech = {
    .name = "tarn bench speech",
    .summary = "speech training speed of each method: Table 3",
    .help =
        "Measure training updates on random utterances of equal length, as for the time per "
        "epoch in Table 3 of the paper but without padding. The methods are bi-lstm (3 layers "
        "of 320 units in each direction), softmax, lsh-4 and linear. ctc_share is an upper "
        "bound on the fraction of an update spent in the CTC loss: the time of a whole update "
        "of a model of width 4.",
    .options = options,
    .tables = tables,
    .examples = "tarn bench speech\n"
                "tarn bench speech --preset speech-small --lengths 800,1600\n",
    .values = sizeof(struct values),
    .run = run,
};
