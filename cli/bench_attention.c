/* SPDX-License-Identifier: MIT */
/* bench_attention.c - time and memory of every attention at growing lengths: Figure 1. All
 * methods run at one length before the next. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attention_timing.h"

/* ---- Options ------------------------------------------------------------ */

enum { TOKENS = 65536, METHODS_MAX = 16, SPEC_MAX = 128 }; /* TOKENS: batch times length */

#define LENGTH_MAX ((size_t)1 << 40)
#define WIDTH_MAX ((size_t)1 << 20)

struct options {
    struct bench_options common;
    const char *attention, *feature_map, *layout;
    struct args_counts lengths;
    bool causal, forward_only, demo;
    size_t length, batch, heads, head_width, value_width, memory_limit, rounds, seed;
    double time_limit;
};

static const struct args_option options[] = {
    {"attention", "SPEC[;SPEC...]", ARGS_TEXT,
     "softmax;softmax-stored;linear;lsh-1;lsh-4;lsh-8", AT(attention), 0, 0,
     "attention methods to compare, listed below"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, AT(feature_map), 0, 0,
     "feature map of the methods that use one [elu]"},
    {"causal", NULL, ARGS_FLAG, NULL, AT(causal), 0, 0,
     "causal attention: a position attends only to itself and earlier ones"},
    {"length", "N", ARGS_COUNT, "0", AT(length), 0, LENGTH_MAX,
     "a single sequence length; 0: those of --lengths"},
    {"lengths", "LO..HI", ARGS_SPAN, "512..65536", AT(lengths), 1, LENGTH_MAX,
     "sequence lengths: LO, doubled up to HI"},
    {"batch", "B", ARGS_COUNT, "0", AT(batch), 0, LENGTH_MAX,
     "batch size; 0: 65536 / length, so that the number of tokens stays the same"},
    {"heads", "H", ARGS_COUNT, "8", AT(heads), 1, WIDTH_MAX, "number of attention heads"},
    {"head-width", "D", ARGS_COUNT, "32", AT(head_width), 1, WIDTH_MAX,
     "width of queries and keys per head"},
    {"value-width", "M", ARGS_COUNT, "0", AT(value_width), 0, WIDTH_MAX,
     "width of values per head; 0: as --head-width"},
    {"layout", "bnhd|bhnd", ARGS_TEXT, "bhnd", AT(layout), 0, 0,
     "memory layout of the arrays: batch, length, heads, width or batch, heads, length, "
     "width"},
    {"memory-limit", "BYTES", ARGS_BYTES, "0", AT(memory_limit), 0, (size_t)1 << 50,
     "skip what needs more memory; 0: half of the installed memory"},
    {"time-limit", "SECONDS", ARGS_SECONDS, "600", AT(time_limit), 0, 0,
     "skip what is expected to take longer per forward and backward pass"},
    BENCH_REPEAT("0", 0, 1000000,
                 "repetitions; the fastest counts; 0: for a second, at least 3, or 2 if they "
                 "take over 10 s"),
    {"rounds", "N", ARGS_COUNT, "1", AT(rounds), 1, 1000000,
     "repetitions of the whole table; the fastest of each row counts, so that a busy minute "
     "does not distort single rows"},
    {"forward-only", NULL, ARGS_FLAG, NULL, AT(forward_only), 0, 0,
     "measure only the forward pass"},
    {"seed", "S", ARGS_COUNT, "1", AT(seed), 0, SIZE_MAX,
     "random seed of arrays, features and hashes"},
    {"demo", NULL, ARGS_FLAG, NULL, AT(demo), 0, 0,
     "a short demonstration: softmax and linear attention up to length 8192"},
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("row"),
    BENCH_FILES,
    {0},
};

static const struct args_group groups[] = {
    {"most used options", "attention lengths length causal threads demo plot csv json"},
    {"sizes", "batch heads head-width value-width layout feature-map seed"},
    {"measurement", "repeat rounds forward-only memory-limit time-limit"},
    {0},
};

static const struct args_table tables[] = {
    {"attention, with options as in lsh:rounds=4,chunk=32 (lsh-4 is short for lsh:rounds=4, "
     "softmax-stored for softmax:store=1)",
     tarn_attention_kind, "attention"},
    {"feature maps", tarn_feature_map, "feature-map"},
    {0},
};

/* Replaces zeros by the actual defaults. */
static void fill_in(struct options *v)
{
    if (v->demo) {
        v->attention = demo_methods;
        v->lengths = (struct args_counts){{512, 8192}, 2};
        v->length = 0;
        v->batch = 1;
        v->causal = true;
    }
    if (v->length > 0)
        v->lengths = (struct args_counts){{v->length}, 1};
    if (v->value_width == 0)
        v->value_width = v->head_width;
    if (v->memory_limit == 0)
        v->memory_limit = hardware_memory() / 2;
}

/* ---- Methods ------------------------------------------------------------ */

struct method {
    char label[SPEC_MAX]; /* "lsh-4" */
    char spec[SPEC_MAX];  /* "lsh:rounds=4" */
    bool has_map;         /* takes --feature-map */
};

/* Short names, as the paper's figures write them. */
static const struct {
    const char *label, *spec;
} known[] = {
    {"softmax-stored", "softmax:store=1"},
    {"lsh-1", "lsh:rounds=1"},
    {"lsh-4", "lsh:rounds=4"},
    {"lsh-8", "lsh:rounds=8"},
};

static void name_method(struct method *method, const char *text, size_t length)
{
    snprintf(method->spec, sizeof method->spec, "%.*s", (int)length, text);
    memcpy(method->label, method->spec, sizeof method->label);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(method->spec, known[i].label) == 0 ||
            strcmp(method->spec, known[i].spec) == 0) {
            snprintf(method->label, sizeof method->label, "%s", known[i].label);
            snprintf(method->spec, sizeof method->spec, "%s", known[i].spec);
        }
}

/* Splits "spec;spec;..."; the library checks the specs themselves. Returns their number. */
static size_t read_methods(struct method methods[METHODS_MAX], const char *text)
{
    for (size_t count = 0;; text++) {
        const size_t length = strcspn(text, ";");

        if (count == METHODS_MAX || length >= SPEC_MAX)
            refuse("--attention: at most %d methods of fewer than %d bytes each can be "
                   "compared",
                   METHODS_MAX, SPEC_MAX);
        name_method(&methods[count++], text, length);
        text += length;
        if (!*text)
            return count;
    }
}

/* ---- Cases -------------------------------------------------------------- */

/* For all cases: the methods, and what each needed at the length before, to guess the next. */
struct shared {
    struct method methods[METHODS_MAX];
    size_t count;
    struct {
        double seconds, work;
    } before[METHODS_MAX];
    double read_gbps;
};

static struct attention_timing timing_of(const struct options *v, const struct method *method,
                                         size_t length)
{
    const size_t fitting = length < TOKENS ? TOKENS / length : 1;

    return (struct attention_timing){
        .label = method->label,
        .desc = {.kind = method->spec,
                 .feature_map = method->has_map ? v->feature_map : NULL,
                 .causal = v->causal,
                 .batch = v->batch > 0 ? v->batch : fitting,
                 .heads = v->heads,
                 .queries = length,
                 .keys = length,
                 .query_width = v->head_width,
                 .value_width = v->value_width,
                 .seed = v->seed,
                 .host = v->common.host},
        .forward_only = v->forward_only,
        .heads_first = strcmp(v->layout, "bhnd") == 0,
        .repeat = v->common.repeat,
        .forward_s = (double)NAN,
        .backward_s = (double)NAN,
    };
}

/* Which methods take a feature map, "elu" being allowed wherever one is; and names, options and
 * widths that the library refuses, before anything takes time. */
static void check_methods(const struct options *v, struct shared *shared)
{
    bool has_map = false;

    for (size_t i = 0; i < shared->count; i++) {
        struct method *const method = &shared->methods[i];
        struct attention_timing timing = timing_of(v, method, 1);

        timing.desc.batch = 1;
        timing.desc.feature_map = "elu";
        method->has_map = attention_timing_plan(&timing, NULL) == TARN_OK;
        timing.desc.feature_map = method->has_map ? v->feature_map : NULL;
        if (attention_timing_plan(&timing, &failure) != TARN_OK)
            refuse("method '%s': %s", timing.label, failure.text);
        has_map |= method->has_map;
    }
    if (v->feature_map && !has_map)
        refuse("--feature-map: none of the methods in --attention uses one");
}

static void list_cases(struct bench_run *run, size_t first, size_t last)
{
    const struct shared *const shared = run->shared;
    size_t lengths = 0, i = 0;

    for (size_t length = first; length <= last; length *= 2)
        lengths++;
    struct attention_timing *const cases = bench_cases(run, lengths * shared->count);

    for (size_t length = first; length <= last; length *= 2)
        for (size_t m = 0; m < shared->count; m++)
            cases[i++] = timing_of(run->values, &shared->methods[m], length);
}

static void name(struct bench_run *run)
{
    const struct options *const v = run->values;
    char width[32] = "";

    if (v->value_width != v->head_width)
        snprintf(width, sizeof width, " and %zu", v->value_width);
    bench_title(run, "Attention, %s, %s, %zu head%s of width %zu%s, arrays %s",
                v->forward_only ? "forward" : "forward and backward",
                v->causal ? "causal" : "non-causal", v->heads, plural(v->heads), v->head_width,
                width, strcmp(v->layout, "bhnd") == 0 ? "(B, H, N, D)" : "(B, N, H, D)");
}

/* NAN where there is not enough memory. */
static double measure_read(const tarn_host *host)
{
    const size_t bytes = (size_t)256 << 20;
    float *const memory = hardware_block(bytes);
    double gbps = (double)NAN;

    if (memory)
        tarn_measure_read(&gbps, memory, bytes, host->cpu, host->threads, NULL);
    free(memory);
    return gbps;
}

static void list(struct bench_run *run)
{
    struct options *const v = run->values;
    struct shared *const shared = run->shared = allocate(1, sizeof *shared, "the methods");

    fill_in(v);
    if (strcmp(v->layout, "bhnd") != 0 && strcmp(v->layout, "bnhd") != 0)
        refuse("--layout is '%.80s'; it must be bnhd or bhnd", v->layout);
    shared->count = read_methods(shared->methods, v->attention);
    check_methods(v, shared);
    shared->read_gbps = measure_read(&v->common.host);
    name(run);
    run->rounds = v->rounds;
    run->quiet = v->demo;
    list_cases(run, v->lengths.numbers[0], v->lengths.numbers[v->lengths.count - 1]);
}

/* ---- Measuring ---------------------------------------------------------- */

/* Flops where they are known, else tokens: a hash table's work grows little faster. */
static double work_of(const struct attention_timing *t)
{
    return t->flops > 0.0 ? t->flops : (double)t->desc.batch * (double)t->desc.queries;
}

/* Why the case would ask too much of the machine or of the user's patience; NULL: it does not.
 * At the first length there is no guess: 0 / 0, which is not above the limit. */
static const char *reason_to_skip(const struct options *v, struct attention_timing *t,
                                  double seconds_before, double work_before)
{
    t->array_bytes = attention_timing_array_bytes(t);
    if (t->array_bytes <= v->memory_limit)
        must(attention_timing_plan(t, &failure));
    if (attention_timing_peak_bytes(t) > v->memory_limit)
        return "over --memory-limit";
    return seconds_before * work_of(t) / work_before > v->time_limit ? "over --time-limit"
                                                                     : NULL;
}

static void measure(struct bench_run *run, void *one)
{
    struct shared *const shared = run->shared;
    struct attention_timing *const t = one;
    const size_t method = bench_case_index(run, one) % shared->count;

    if (run->round == 0)
        t->skipped = reason_to_skip(run->values, t, shared->before[method].seconds,
                                    shared->before[method].work);
    if (t->skipped)
        return;
    attention_timing_run(t);
    shared->before[method].seconds = attention_timing_seconds(t);
    shared->before[method].work = work_of(t);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct shared *const shared = run->shared;
    const struct attention_timing *const t = one;
    const tarn_attention_desc *const d = &t->desc;
    const double batch = (double)d->batch, seconds = attention_timing_seconds(t);
    const double gflops = t->flops > 0.0 ? 1e-9 * t->flops / seconds : (double)NAN;
    const double bytes = (double)attention_timing_peak_bytes(t);
    struct bench_record r = {0};

    bench_text(&r, "attention", "attention", t->label);
    bench_bool(&r, "causal", d->causal);
    bench_count(&r, "length", "length", d->queries);
    bench_count(&r, "batch", "batch", d->batch);
    bench_count(&r, "heads", NULL, d->heads);
    bench_count(&r, "head_width", NULL, d->query_width);
    bench_count(&r, "value_width", NULL, d->value_width);
    bench_count(&r, "threads", NULL, run->threads);
    bench_scaled(&r, "forward_s", t->forward_s, "forward ms", 1e3);
    bench_scaled(&r, "backward_s", t->backward_s, "backward ms", 1e3);
    bench_number(&r, "us_per_token", "us/token", 1e6 * seconds / batch / (double)d->queries);
    bench_number(&r, "seconds_per_sample", NULL, seconds / batch);
    bench_count(&r, "peak_bytes", NULL, attention_timing_peak_bytes(t));
    bench_count(&r, "extra_bytes", NULL, t->extra_bytes);
    bench_scaled(&r, "peak_bytes_per_sample", bytes / batch, "MiB/sample", 1.0 / 1048576.0);
    bench_number(&r, "gflops", "GFLOP/s", gflops);
    bench_number(&r, "of_peak", "of peak", gflops / run->fma_gflops);
    bench_text(&r, "kind", NULL, d->kind);
    bench_text(&r, "feature_map", NULL, d->feature_map);
    bench_text(&r, "layout", NULL, t->heads_first ? "bhnd" : "bnhd");
    bench_text(&r, "cpu", NULL, run->cpu);
    bench_number(&r, "fma_f32_gflops", NULL, run->fma_gflops);
    bench_number(&r, "read_gbps", NULL, shared->read_gbps);
    bench_skipped(&r, t->skipped);
    bench_report(run, &r);
    if (run->quiet && !run->options->json)
        demo_put(run, t);
}

const struct command bench_attention = {
    .name = "tarn bench attention",
    .summary = "time and memory of attention against sequence length: Figure 1",
    .help =
        "Measure the forward and backward pass of attention against the sequence length: time, "
        "peak memory, and speed as a fraction of the machine's peak. The defaults are those of "
        "Figure 1 of the paper.",
    .options = options,
    .tables = tables,
    .notes = CPU_NOTE,
    .groups = groups,
    .examples = "tarn bench attention --demo\n"
                "tarn bench attention --attention 'linear;softmax' --length 4096 --causal\n"
                "tarn bench attention --plot fig1.svg\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct attention_timing),
            .note = "Memory includes all arrays and buffers.",
            .plot = {.x = "length",
                     .x_label = "sequence length N",
                     .series = "attention",
                     .panels = {{"seconds_per_sample", "time per sample, milliseconds", 1e3},
                                {"peak_bytes_per_sample", "peak memory per sample, MiB",
                                 1.0 / 1048576.0}}},
            .has_peak = true,
            .open_one = true,
            .list = list,
            .measure = measure,
            .report = report,
        },
};
