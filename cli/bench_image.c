/* SPDX-License-Identifier: MIT */
/* bench_image.c - images per second by the paper's five methods. All methods advance
 * through their images together, so that a busy minute does not distort a single one. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_model.h"
#include "draw.h"
#include "image_timing.h"
#include "files.h"
#include "words.h"

/* ---- Methods ------------------------------------------------------------ */

/* By the paper's names; linear is the first. */
static const struct method {
    const char *attention, *method;
    bool counted; /* a number of flops is agreed */
    tarn_table_row about;
} methods[] = {
    {"linear",
     "recurrent",
     true,
     {.name = "linear", .help = "linear attention with a constant-size state, (16)-(20)"}},
    {"softmax",
     "recurrent",
     true,
     {.name = "stateful-softmax", .help = "softmax with a cache of keys and values"}},
    {"softmax",
     "recompute",
     true,
     {.name = "softmax", .help = "softmax that recomputes all bytes so far for each byte"}},
    {"lsh:rounds=1",
     "recompute",
     false,
     {.name = "lsh-1", .help = "Reformer with one hashing round, recomputed in the same way"}},
    {"lsh:rounds=4",
     "recompute",
     false,
     {.name = "lsh-4", .help = "Reformer with four hashing rounds"}},
};

enum { METHODS = sizeof methods / sizeof methods[0], ROWS_MAX = 64 };

/* ---- Options ------------------------------------------------------------ */

struct options {
    struct bench_options common;
    const char *preset, *like, *method, *precision;
    struct args_counts batch;
    size_t length;
    double budget;
};

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "mnist-paper", AT(preset), 0, 0,
     "model preset, as in tarn bench train, with random weights and a head of 10 logistics"},
    {"like", "MODEL", ARGS_TEXT, NULL, AT(like), 0, 0,
     "use the sizes and the head of this image model instead of a preset; a " MODEL_HELP},
    {"method", "NAME[:B],...", ARGS_TEXT, "linear,stateful-softmax,softmax,lsh-1,lsh-4",
     AT(method), 0, 0, "methods to compare, listed below; B is the batch size of one method"},
    {"batch", "B,...", ARGS_COUNTS, "1", AT(batch), 1, 1 << 20,
     "batch sizes: images generated together"},
    {"length", "N", ARGS_COUNT, "0", AT(length), 0, 1 << 24,
     "bytes per image, at least 2; 0: as in the model, 3072 for cifar-paper, else 784"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights of linear and stateful-softmax; others use f32"},
    {"budget", "SECONDS", ARGS_SECONDS, "10", AT(budget), 0, 0,
     "time for one image and method; slower methods are measured at some steps only"},
    BENCH_REPEAT("1", 1, 1000, "repetitions; the fastest of each measured step counts"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("method and batch size"),
    BENCH_FILES,
    {0},
};

static const tarn_table_row *method_row(size_t index)
{
    return index < METHODS ? &methods[index].about : NULL;
}

static const struct args_table tables[] = {
    {"methods", method_row, "method"},
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

/* For all cases. */
struct shared {
    char like[MODEL_PATH];       /* a file; "": a preset */
    tarn_model *models[METHODS]; /* NULL: not needed */
    size_t length;               /* bytes of an image */
    size_t rounds;               /* in which the images are completed once */
};

struct image {
    size_t method, batch;
    struct image_timing timing;
    char steps[48], state[48]; /* for the table */
};

/* One method of the list, with its own batch size or all of --batch; moves `*text` past it. */
static bool read_method(struct bench_run *run, const char **text)
{
    const struct options *const v = run->values;
    struct args_counts batches = v->batch;
    char name[32] = "";
    size_t method = 0;
    int used = 0;

    sscanf(*text, "%31[^:,]%n", name, &used);
    *text += used;
    if (**text == ':') {
        const size_t digits = strspn(++*text, "0123456789");

        batches = (struct args_counts){{strtoul(*text, NULL, 10)}, 1};
        *text += digits;
        if (digits == 0 || batches.numbers[0] < 1 || batches.numbers[0] > 1 << 20)
            return false;
    }
    while (method < METHODS && strcmp(methods[method].about.name, name) != 0)
        method++;
    if (method == METHODS || (**text && **text != ',') || run->count + batches.count > ROWS_MAX)
        return false;
    for (size_t i = 0; i < batches.count; i++)
        *(struct image *)bench_case_at(run, run->count++) =
            (struct image){.method = method, .batch = batches.numbers[i]};
    return true;
}

static void read_methods(struct bench_run *run)
{
    const char *const list = ((const struct options *)run->values)->method;

    bench_cases(run, ROWS_MAX);
    run->count = 0;
    for (const char *text = list;; text++) {
        if (!read_method(run, &text))
            refuse(
                "--method is '%.80s'; it must be a list of linear, stateful-softmax, softmax, "
                "lsh-1 and lsh-4, each with or without a batch size, such as "
                "linear:256,softmax",
                list);
        if (*text == '\0')
            return;
    }
}

/* Bytes of an image: given, as in the model, or as the preset was made for. */
static size_t length_of(const struct options *v, struct shared *s)
{
    size_t length = strcmp(v->preset, "cifar-paper") == 0 ? 32 * 32 * 3 : 28 * 28;

    if (v->like) {
        tarn_model *const model = model_open(v->like, false);

        length = image_bytes(image_size(v->like, model));
        tarn_model_free(model);
        model_path(s->like, v->like, false);
    }
    return v->length ? v->length : length;
}

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct shared *const s = run->shared = allocate(1, sizeof *s, "the models");

    if (v->length == 1)
        refuse("--length is '1'; it must be at least 2, because the first byte is given");
    if (!words_have("f32 bf16 int8 bf16-inputs", v->precision))
        refuse("--precision is '%.80s'; it must be f32, bf16, int8 or bf16-inputs",
               v->precision);
    read_methods(run);
    s->length = length_of(v, s);
    bench_title(run, "%.160s with random weights, %s, images of %zu bytes",
                v->like ? v->like : v->preset, v->precision, s->length);
}

/* "39/783", "1.0 MiB to 9.5 MiB" */
static void describe(struct image *image)
{
    const struct image_timing *const t = &image->timing;
    char first[16], last[16];

    snprintf(image->steps, sizeof image->steps, "%zu/%zu", image_timing_measured(t), t->steps);
    words_bytes(first, sizeof first, (double)t->state_first / (double)image->batch);
    words_bytes(last, sizeof last, (double)t->streams.size);
    snprintf(image->state, sizeof image->state, strcmp(first, last) == 0 ? "%s" : "%s to %s",
             first, last);
}

static void open_one(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct shared *const s = run->shared;
    struct image *const image = one;
    const struct method *const method = &methods[image->method];
    const struct bench_model which = {
        .preset = v->preset,
        .like = *s->like ? s->like : NULL,
        .attention = method->attention,
        .head = *s->like ? NULL : "logistic",
    };
    const bool recurrent = strcmp(method->method, "recurrent") == 0;
    tarn_model **const model = &s->models[image->method];

    if (!*model)
        *model = bench_model_new(&which);
    image->timing = (struct image_timing){
        .model = *model,
        .engine = {.method = method->method,
                   .precision = recurrent ? v->precision : "f32",
                   .host = v->common.host},
        .batch = image->batch,
        .length = s->length,
        .budget = v->budget,
    };
    image_timing_open(&image->timing);
    describe(image);
}

/* ---- Measuring ---------------------------------------------------------- */

/* As many as the method with the most pieces needs. */
static void choose_rounds(struct bench_run *run, struct shared *s)
{
    s->rounds = 1;
    for (size_t i = 0; i < run->count; i++) {
        const struct image *const image = bench_case_at(run, i);

        s->rounds = larger(s->rounds, image->timing.count);
    }
    run->rounds = run->options->repeat * s->rounds;
}

/* All methods are at the same fraction of their pieces. */
static void measure(struct bench_run *run, void *one)
{
    struct shared *const s = run->shared;
    struct image_timing *const t = &((struct image *)one)->timing;

    if (s->rounds == 0)
        choose_rounds(run, s);
    if (run->round % s->rounds == 0)
        image_timing_restart(t);
    image_timing_advance(t, (run->round % s->rounds + 1) * t->count / s->rounds);
}

/* ---- Report ------------------------------------------------------------- */

static double images_per_s(const struct image *image)
{
    return (double)image->batch / image_timing_seconds(&image->timing);
}

/* Relative to linear attention at the same batch size; NAN: not measured. */
static double of_linear(const struct bench_run *run, const struct image *image)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct image *const other = bench_case_at(run, i);

        if (other->method == 0 && other->batch == image->batch)
            return images_per_s(image) / images_per_s(other);
    }
    return (double)NAN;
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct shared *const s = run->shared;
    const struct image *const image = one;
    const struct image_timing *const t = &image->timing;
    const struct method *const method = &methods[image->method];
    const double gflop = method->counted ? 1e-9 * image_timing_flops(t) : (double)NAN;
    const double seconds = image_timing_seconds(t), batch = (double)image->batch;
    struct bench_record r = {0};

    bench_text(&r, "preset", NULL, v->like ? v->like : v->preset);
    bench_text(&r, "weights", NULL, "random");
    bench_text(&r, "method", "method", method->about.name);
    bench_text(&r, "attention", NULL, method->attention);
    bench_text(&r, "generator", NULL, method->method);
    bench_text(&r, "precision", NULL, t->engine.precision);
    bench_count(&r, "batch", "batch", image->batch);
    bench_count(&r, "image_bytes", NULL, s->length);
    bench_text(&r, "processor", NULL, run->processor);
    bench_text(&r, "cpu", NULL, run->cpu);
    bench_count(&r, "threads", NULL, run->threads);
    bench_number(&r, "budget_s", NULL, v->budget);
    bench_count(&r, "repeat", NULL, v->common.repeat);
    bench_count(&r, "measured_steps", NULL, image_timing_measured(t));
    bench_count(&r, "of_steps", NULL, t->steps);
    bench_number(&r, "images_per_s", "images/s", images_per_s(image));
    bench_number(&r, "seconds_per_batch", NULL, seconds);
    bench_number(&r, "seconds_per_image", "s/image", seconds / batch);
    bench_number(&r, "of_linear", NULL, of_linear(run, image));
    bench_number(&r, "gflop_per_image", NULL, gflop);
    bench_number(&r, "fma_f32_gflops", NULL, run->fma_gflops);
    bench_number(&r, "of_peak", "of peak", gflop * images_per_s(image) / run->fma_gflops);
    bench_text(&r, NULL, "steps", image->steps);
    bench_text(&r, NULL, "state", image->state);
    bench_number(&r, "state_first_bytes_per_image", NULL, (double)t->state_first / batch);
    bench_number(&r, "state_last_bytes_per_image", NULL, (double)t->streams.size);
    bench_count(&r, "held_first_bytes", NULL, t->held_first);
    bench_count(&r, "held_last_bytes", NULL, t->held);
    bench_number(&r, "process_peak_bytes", NULL, hardware_resident());
    bench_report(run, &r);
}

static void conclude(const struct bench_run *run)
{
    char bytes[32];

    (void)run;
    words_bytes(bytes, sizeof bytes, hardware_resident());
    printf("\nTime includes sampling; the state is that of one image, first to last byte.\n"
           "Peak memory of this process: %s.\n",
           bytes);
}

const struct command bench_image = {
    .name = "tarn bench image",
    .summary = "images generated per second by each method: Tables 1, 2, 4 and 5",
    .help = "Measure how fast each method generates whole images, and the memory it needs: the "
            "throughput in Tables 1, 2 and 4 of the paper, and the latency in Table 5. The "
            "models have random weights.",
    .options = options,
    .tables = tables,
    .notes =
        "An image of N bytes takes N - 1 steps, each of which reads a byte and samples the "
        "next; "
        "the first byte is given. The time covers steps and sampling, not the setup. If all "
        "steps would take longer than --budget, the image is divided into equal parts and the "
        "middle step of each part is measured; for linear attention, whose steps all cost the "
        "same (slightly more from step 1024), the first ones are measured. measured_steps is "
        "the number of measured steps; running up to them is not part of the budget. of_peak "
        "compares the model's matrix products and attention with the machine's peak "
        "multiply-add rate in f32; it is not defined for lsh. The state is what a method keeps "
        "from one byte to the next; activations and copies of weights are not included.",
    .examples = "tarn bench image --method linear,softmax\n"
                "tarn bench image --like models/mnist.safetensors --method linear:64\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct image),
            .plot = {.x = "batch",
                     .x_label = "images generated together",
                     .series = "method",
                     .panels = {{"images_per_s", "images per second", 1.0},
                                {"state_last_bytes_per_image", "state of an image, MiB",
                                 1.0 / 1048576.0}}},
            .has_peak = true,
            .list = list,
            .open = open_one,
            .measure = measure,
            .report = report,
            .conclude = conclude,
        },
};
