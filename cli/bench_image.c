/* SPDX-License-Identifier: MIT */
/* bench_image.c - images per second by the paper's five methods. The methods alternate, so that
 * a busy minute does not distort a single one. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_model.h"
#include "command.h"
#include "draw.h"
#include "hardware.h"
#include "image_report.h"
#include "model_open.h"
#include "progress_line.h"
#include "stopwatch.h"

/* ---- Methods ------------------------------------------------------------ */

static const tarn_option_info none[] = {{0}};

const struct image_method image_methods[] = {
    {{"linear", "linear attention with a constant-size state, (16)-(20)", none},
     "linear",
     "recurrent",
     true},
    {{"stateful-softmax", "softmax with a cache of keys and values", none},
     "softmax",
     "recurrent",
     true},
    {{"softmax", "softmax that recomputes all bytes so far for each byte", none},
     "softmax",
     "recompute",
     true},
    {{"lsh-1", "Reformer with one hashing round, recomputed in the same way", none},
     "lsh:rounds=1",
     "recompute",
     false},
    {{"lsh-4", "Reformer with four hashing rounds", none}, "lsh:rounds=4", "recompute", false},
};

enum { METHODS = sizeof image_methods / sizeof image_methods[0], BATCHES_MAX = 16 };

/* Bytes of an image, for presets that were made for images. */
static const struct {
    const char *preset;
    size_t length;
} lengths[] = {{"mnist-paper", 28 * 28}, {"cifar-paper", 32 * 32 * 3}};

/* ---- Options ------------------------------------------------------------ */

struct values {
    const char *preset, *like, *method, *batch, *precision;
    size_t length, threads, repeat;
    double budget;
    bool json;
};

#define AT(field) offsetof(struct values, field)

static const struct args_option options[] = {
    {"preset", "NAME", ARGS_TEXT, "mnist-paper", AT(preset), 0, 0,
     "model preset, as in tarn bench train, with random weights and a head of 10 logistics"},
    {"like", "MODEL", ARGS_TEXT, NULL, AT(like), 0, 0,
     "use the sizes and the head of this image model instead of a preset; a " MODEL_HELP},
    {"method", "NAME[:B],...", ARGS_TEXT, "linear,stateful-softmax,softmax,lsh-1,lsh-4",
     AT(method), 0, 0, "methods to compare, listed below; B is the batch size of one method"},
    {"batch", "B,...", ARGS_TEXT, "1", AT(batch), 0, 0,
     "batch sizes: images generated together"},
    {"length", "N", ARGS_COUNT, "0", AT(length), 0, 1 << 24,
     "bytes per image, at least 2; 0: as in the model, 3072 for cifar-paper, else 784"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights of linear and stateful-softmax; others use f32"},
    {"budget", "SECONDS", ARGS_SECONDS, "10", AT(budget), 0, 0,
     "time for one image and method; slower methods are measured at some steps only"},
    {"repeat", "N", ARGS_COUNT, "1", AT(repeat), 1, 1000,
     "repetitions; the fastest of each measured step counts"},
    {"threads", "N", ARGS_COUNT, "0", AT(threads), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object per method and batch size"},
    {0},
};

static const tarn_table_row *method_row(size_t index)
{
    return index < METHODS ? &image_methods[index].about : NULL;
}

static const struct args_table tables[] = {
    {NULL, tarn_preset, "preset"},
    {"methods", method_row, "method"},
    {0},
};

/* ---- One bench ---------------------------------------------------------- */

struct bench {
    const struct values *values;
    char like[MODEL_PATH];       /* a file; "": a preset */
    tarn_model *models[METHODS]; /* NULL: not asked for */
    struct image_bench image;
};

static int refuse(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "%s: --%s is '%.80s'; it must be %s\n", bench_image.name, option, text,
            expected);
    return EXIT_USAGE;
}

/* A batch size at the beginning of `text`; false if there is none. */
static bool read_batch(size_t *batch, const char **text)
{
    char *end;
    const uintmax_t number = **text >= '0' && **text <= '9' ? strtoumax(*text, &end, 10) : 0;

    if (number < 1 || number > 1 << 20)
        return false;
    *batch = (size_t)number;
    *text = end;
    return *end == '\0' || *end == ',';
}

static bool read_batches(size_t *batches, size_t *count, const char *text)
{
    for (*count = 0; *count < BATCHES_MAX;) {
        if (!read_batch(&batches[(*count)++], &text))
            return false;
        if (*text++ == '\0')
            return true;
    }
    return false;
}

static size_t find_method(const char *text, size_t length)
{
    for (size_t i = 0; i < METHODS; i++)
        if (strlen(image_methods[i].about.name) == length &&
            strncmp(image_methods[i].about.name, text, length) == 0)
            return i;
    return METHODS;
}

static bool add_row(struct bench *b, size_t method, size_t batch)
{
    if (b->image.count == IMAGE_ROWS_MAX)
        return false;
    b->image.rows[b->image.count++] = (struct image_row){.method = method, .batch = batch};
    return true;
}

/* One method of the list; moves `*text` past it. */
static bool read_method(struct bench *b, const char **text, const size_t *batches, size_t count)
{
    const size_t length = strcspn(*text, ",:"), method = find_method(*text, length);
    size_t batch;

    *text += length;
    if (method == METHODS)
        return false;
    if (**text == ':') {
        ++*text;
        return read_batch(&batch, text) && add_row(b, method, batch);
    }
    for (size_t i = 0; i < count; i++)
        if (!add_row(b, method, batches[i]))
            return false;
    return true;
}

static int read_rows(struct bench *b)
{
    const char *text = b->values->method;
    size_t batches[BATCHES_MAX], count;

    if (!read_batches(batches, &count, b->values->batch))
        return refuse("batch", b->values->batch,
                      "whole numbers from 1 to 1048576, such as 1,64");
    for (;; text++) {
        if (!read_method(b, &text, batches, count))
            return refuse("method", b->values->method,
                          "a list of linear, stateful-softmax, softmax, lsh-1 and lsh-4, each "
                          "with or without a batch size, such as linear:256,softmax");
        if (*text == '\0')
            return ARGS_GO_ON;
    }
}

/* Takes the size of the images from the model, too. */
static int read_like(struct bench *b)
{
    const char *const given = b->values->like;
    tarn_model *const model = given ? model_open(&bench_image, given, false) : NULL;

    if (!given)
        return ARGS_GO_ON;
    if (!model)
        return EXIT_FAILED;
    const size_t bytes = draw_bytes(draw_size(&bench_image, given, model));

    tarn_model_free(model);
    model_path(&bench_image, b->like, given, false);
    if (b->values->length == 0)
        b->image.length = bytes;
    return bytes > 0 ? ARGS_GO_ON : EXIT_USAGE;
}

static int read_values(struct bench *b)
{
    const struct values *const v = b->values;

    if (v->length == 1)
        return refuse("length", "1", "at least 2, because the first byte is given");
    b->image.length = v->length ? v->length : 28 * 28;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        if (v->length == 0 && strcmp(v->preset, lengths[i].preset) == 0)
            b->image.length = lengths[i].length;
    if (strcmp(v->precision, "f32") != 0 && strcmp(v->precision, "bf16") != 0)
        return refuse("precision", v->precision, "f32 or bf16");
    const int code = hardware_cpu(&b->image.cpu) ? read_rows(b) : EXIT_USAGE;

    return code == ARGS_GO_ON ? read_like(b) : code;
}

/* ---- Measuring ---------------------------------------------------------- */

static tarn_status open_row(struct bench *b, struct image_row *row, tarn_error *err)
{
    const struct image_method *const method = &image_methods[row->method];
    const struct bench_model which = {
        .preset = b->values->preset,
        .like = *b->like ? b->like : NULL,
        .attention = method->attention,
        .head = *b->like ? NULL : "logistic",
    };
    const bool recurrent = strcmp(method->method, "recurrent") == 0;
    tarn_model **const model = &b->models[row->method];
    tarn_status status = TARN_OK;

    if (!*model && (status = bench_model_new(model, &which, err)) != TARN_OK)
        return status;
    const struct image_timing_desc desc = {
        .model = *model,
        .method = method->method,
        .precision = recurrent ? b->values->precision : "f32",
        .cpu = b->image.cpu,
        .threads = b->values->threads,
        .batch = row->batch,
        .length = b->image.length,
        .budget = b->values->budget,
    };

    return image_timing_open(&row->timing, &desc, err);
}

static tarn_status measure_peak(struct bench *b, tarn_error *err)
{
    double gflops;
    const tarn_status status =
        tarn_measure_fma_f32(&gflops, b->image.cpu, b->values->threads, err);

    if (status == TARN_OK)
        b->image.peak = fmax(b->image.peak, gflops);
    return status;
}

static size_t most_pieces(const struct bench *b)
{
    size_t most = 1;

    for (size_t i = 0; i < b->image.count; i++)
        most = b->image.rows[i].timing.count > most ? b->image.rows[i].timing.count : most;
    return most;
}

/* In a log only results matter. */
static void show_progress(struct progress_line *line, size_t pass, size_t passes, double share)
{
    const double now = stopwatch_seconds();
    struct progress_parts parts = {0};

    if (!line->on_terminal || !progress_line_is_due(line, now))
        return;
    progress_part(&parts, 0, "pass %zu of %zu, %.0f %%", pass + 1, passes, 100.0 * share);
    progress_line_show(line, &parts, now);
}

/* Over the image, all methods at the same fraction of their pieces. */
static tarn_status measure_pass(struct bench *b, size_t pass, tarn_error *err)
{
    struct progress_line line = progress_line_of(stopwatch_seconds());
    const size_t turns = most_pieces(b);
    tarn_status status = measure_peak(b, err);

    for (size_t i = 0; i < b->image.count; i++)
        image_timing_restart(&b->image.rows[i].timing);
    for (size_t turn = 0; turn < turns && status == TARN_OK; turn++) {
        for (size_t i = 0; i < b->image.count && status == TARN_OK; i++) {
            struct image_timing *const timing = &b->image.rows[i].timing;

            status = image_timing_advance(timing, (turn + 1) * timing->count / turns, err);
        }
        show_progress(&line, pass, b->values->repeat, (double)(turn + 1) / (double)turns);
    }
    progress_line_erase(&line);
    return status == TARN_OK ? measure_peak(b, err) : status;
}

static tarn_status measure(struct bench *b, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < b->image.count && status == TARN_OK; i++)
        status = open_row(b, &b->image.rows[i], err);
    for (size_t i = 0; i < b->values->repeat && status == TARN_OK; i++)
        status = measure_pass(b, i, err);
    return status;
}

/* ---- The command -------------------------------------------------------- */

static void tear_down(struct bench *b)
{
    for (size_t i = 0; i < b->image.count; i++)
        image_timing_close(&b->image.rows[i].timing);
    for (size_t i = 0; i < METHODS; i++)
        tarn_model_free(b->models[i]);
}

static int run(void *given)
{
    const struct values *const values = given;
    struct bench bench = {.values = values};
    tarn_error err;
    int code = read_values(&bench);

    if (code != ARGS_GO_ON)
        return code;
    bench.image.preset = values->like ? values->like : values->preset;
    bench.image.precision = values->precision;
    bench.image.threads = values->threads ? values->threads : tarn_threads_default();
    bench.image.budget = values->budget;
    bench.image.repeat = values->repeat;
    bench.image.json = values->json;
    if (measure(&bench, &err) == TARN_OK) {
        image_report(&bench.image);
        code = EXIT_DONE;
    } else {
        code = command_error(&bench_image, &err);
    }
    tear_down(&bench);
    return code;
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
    .values = sizeof(struct values),
    .run = run,
};
