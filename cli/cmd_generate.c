/* SPDX-License-Identifier: MIT */
/* cmd_generate.c - tarn generate: reads the prompt, then samples symbol after symbol.
 *
 * Saved streams have not yet read the symbols chosen last, which are saved with them:
 * continuing begins by reading them, exactly as without the interruption. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "cmd_generate.h"
#include "hardware.h"
#include "picture.h"
#include "progress.h"
#include "terminal.h"
#include "words.h"

enum { USUAL = 256 }; /* default number of symbols */

#define GIVEN(field) offsetof(struct generate_options, field)

#define COUNT_MAX ((size_t)1 << 40)

static const struct args_option options[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, GIVEN(model), 1, 0, MODEL_HELP},
    {"n", "N", ARGS_COUNT, NULL, GIVEN(count), 1, COUNT_MAX,
     "number of symbols (bytes of text) per stream, or of images [256 symbols, 16 images]"},
    {"length", "N", ARGS_COUNT, NULL, GIVEN(count), 1, COUNT_MAX, "same as -n"},
    {"prompt", "TEXT", ARGS_TEXT, NULL, GIVEN(prompt), 0, 0,
     "prompt, not echoed; models of numbers take symbols such as '5 1 4', image models the "
     "first pixel values [a newline, or 0]"},
    {"prompt-file", "FILE", ARGS_TEXT, NULL, GIVEN(prompt_file), 0, 0,
     "read the prompt from a file"},
    {"streams", "B", ARGS_COUNT, "0", GIVEN(streams), 0, (size_t)1 << 20,
     "sequences to generate at the same time, each with its own random numbers; 0: one, or "
     "as many as in --load-state, or up to 256 images"},
    SAMPLING_OPTIONS(struct generate_options),
    {"method", "METHOD", ARGS_TEXT, NULL, GIVEN(how.method), 0, 0,
     "generation method, listed below [recurrent, if the attention supports it]"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", GIVEN(how.precision), 0, 0,
     "precision of the weights; bf16 halves the memory traffic and int8 halves it again, and "
     "both are slightly less accurate. bf16-inputs also rounds what is multiplied with them, "
     "which is faster for many streams on processors with instructions for bf16; only for "
     "recurrent"},
    {"save-state", "FILE", ARGS_TEXT, NULL, GIVEN(save), 0, 0,
     "save the state of all streams at the end or after Ctrl-C, for --load-state"},
    {"load-state", "FILE", ARGS_TEXT, NULL, GIVEN(load), 0, 0,
     "continue from a saved state, as if generation had not been interrupted"},
    {"o", "FILE", ARGS_TEXT, NULL, GIVEN(out), 0, 0,
     "write to a file instead of standard output; images: a PNG file with all of them, an "
     "animation if the name ends in .svg, or a folder with one PNG file each if it ends in /; "
     "required for images unless standard output is a terminal"},
    {"scale", "K", ARGS_COUNT, "0", GIVEN(scale), 0, PICTURE_SCALE_MOST,
     "images: " PICTURE_SCALE_HELP},
    {"best", NULL, ARGS_FLAG, NULL, GIVEN(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", GIVEN(how.host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, GIVEN(json), 0, 0,
     "print one JSON object per stream at the end: text, symbols, seconds, steps_per_s; for "
     "images one in all: images, height, width, channels, seconds, images_per_s"},
    {0},
};

static const struct args_group groups[] = {
    {"most used options", "n prompt prompt-file o temperature top-k top-p greedy seed"},
    {0},
};

struct session {
    struct generate_options o;
    char spec[TARN_NAME_SIZE]; /* of the task */
    tarn_task *task;
    tarn_model *model;
    struct stream_block streams;
    int32_t *prompt; /* read first by every stream, count of them */
    size_t prompt_count;
    int32_t *chosen;         /* symbols of all streams */
    tarn_streams_about from; /* of --load-state; position 0 without */
    struct sink sink;
    double seconds;
};

/* ---- Prompt ------------------------------------------------------------- */

/* The bytes of a file, which may be a pipe. To be freed. */
static char *read_bytes(const char *path, size_t *length)
{
    FILE *const file = fopen(path, "rb");
    char *bytes = NULL;
    size_t room = 0;

    if (!file)
        fail("%s: %s", path, strerror(errno));
    for (*length = 0; !feof(file); *length += fread(bytes + *length, 1, room - *length, file)) {
        if (ferror(file))
            fail("%s: %s", path, strerror(errno));
        if (*length == room && !(bytes = realloc(bytes, room = 2 * room + 4096)))
            fail("%s: %s", path, strerror(ENOMEM));
    }
    fclose(file);
    return bytes;
}

static void encode(struct session *s, const char *text, size_t length)
{
    s->prompt = allocate(length + 1, sizeof *s->prompt, "the prompt");
    must(tarn_task_encode(s->task, s->prompt, &s->prompt_count, text, length, &failure));
}

/* The model needs at least one symbol before it can predict. */
static void read_prompt(struct session *s)
{
    const struct generate_options *const o = &s->o;

    if (o->prompt)
        encode(s, o->prompt, strlen(o->prompt));
    if (o->prompt_file) {
        size_t length;
        char *const bytes = read_bytes(o->prompt_file, &length);

        encode(s, bytes, length);
        free(bytes);
    }
    if (s->prompt_count > 0 || o->load)
        return;
    free(s->prompt);
    encode(s, "\n", 1);
    if (s->prompt_count == 0)
        s->prompt[s->prompt_count++] = 0;
}

/* ---- Setting up --------------------------------------------------------- */

/* Symbols of a model without a task are printed as numbers. */
static void open_model(struct session *s)
{
    s->model = model_open(s->o.model, s->o.best);
    const tarn_config *const config = tarn_model_config(s->model);

    if (*config->task)
        snprintf(s->spec, sizeof s->spec, "%s", config->task);
    else
        snprintf(s->spec, sizeof s->spec, "copy:symbols=%zu",
                 config->symbols > 1 ? config->symbols - 1 : 1);
    must(tarn_task_open(&s->task, s->spec, &failure));
    if (config->frames > 0)
        refuse("%s is a speech model (task '%s'), which cannot generate; use tarn transcribe",
               s->o.model, s->spec);
}

/* Takes from the saved state what the command line leaves open. */
static void read_about(struct session *s)
{
    struct generate_options *const o = &s->o;

    if (o->load && tarn_streams_inspect(&s->from, o->load, &failure) != TARN_OK)
        fail("--load-state: %s", failure.text);
    if (o->load && !s->from.has_next)
        fail("%s: is not a state saved by --save-state: it has no next symbols", o->load);
    if (o->load && !o->how.method)
        o->how.method = s->from.method;
    if (o->streams == 0)
        o->streams = o->load ? s->from.count : 1;
}

/* Checked before anything is printed. The last symbol is not read. */
static void check_length(const struct session *s, size_t longest)
{
    const size_t learned = tarn_model_config(s->model)->positions;

    if (learned > 0 && longest - 1 > learned)
        refuse("prompt and -n need %zu positions; the model has learned only %zu; reduce -n or "
               "shorten the prompt",
               longest - 1, learned);
}

static void make_streams(struct session *s)
{
    struct generate_options *const o = &s->o;
    struct stream_block *const streams = &s->streams;

    o->how.longest = (size_t)s->from.position + (o->load ? 1 : 0) + s->prompt_count + o->count;
    check_length(s, o->how.longest);
    *streams = stream_block_open(s->model, &o->how, o->streams);
    s->chosen = allocate(o->streams, sizeof *s->chosen, "the streams");
    if (o->load && tarn_streams_load(streams->engine, streams->at, streams->n, o->load,
                                     &failure) != TARN_OK)
        fail("--load-state: %s", failure.text);
}

static void set_up(struct session *s)
{
    if (s->o.scale > 0)
        refuse("--scale is for image models; %s is a model of task '%s'", s->o.model, s->spec);
    if (s->o.out)
        check_format("-o", s->o.out, FORMAT_TEXT);
    if (s->o.save) {
        check_format("--save-state", s->o.save, FORMAT_MODEL);
        check_writable("--save-state", s->o.save);
    }
    if (s->o.count == 0)
        s->o.count = USUAL;
    read_about(s);
    make_streams(s);
    s->sink = (struct sink){.task = s->task, .path = s->o.out, .json = s->o.json};
}

/* ---- Running ------------------------------------------------------------ */

/* Feeds the symbol that a loaded stream has not read yet, then the prompt. */
static void feed_first(struct session *s, size_t i)
{
    struct stream_block *const streams = &s->streams;
    float *const outputs = streams->outputs + i * streams->width;

    if (s->o.load)
        must(tarn_engine_step(streams->engine, &streams->at[i], outputs, NULL, 1, &failure));
    if (s->prompt_count > 0)
        stream_block_prefill(streams, i, s->prompt, s->prompt_count);
}

/* New streams fork after the prompt. */
static void begin(struct session *s)
{
    feed_first(s, 0);
    for (size_t i = 1; i < s->streams.n; i++)
        if (s->o.load)
            feed_first(s, i);
        else
            stream_block_fork(&s->streams, i, 0);
    stream_block_sampling(&s->streams, sampling_of(&s->o.sampling));
}

static void run_steps(struct session *s)
{
    begin(s);
    sink_open(&s->sink, s->o.streams, s->o.count);
    const double start = seconds_now();

    /* At least one, so that every stream has a symbol that is chosen but not yet read. */
    for (size_t i = 0; i < s->o.count && !(i > 0 && progress_must_stop()); i++) {
        if (i > 0)
            stream_block_step(&s->streams, NULL);
        stream_block_draw(&s->streams, s->chosen);
        sink_put(&s->sink, s->chosen);
    }
    s->seconds = seconds_now() - start;
    sink_finish(&s->sink, s->seconds);
}

static void print_statistics(const struct session *s)
{
    char bytes[32];

    if (!isatty(STDERR_FILENO))
        return;
    words_bytes(bytes, sizeof bytes, (double)s->streams.n * (double)s->streams.size);
    fprintf(stderr, "%zu steps, %zu stream%s, %.3g s: %.4g steps/s; state %s\n", s->sink.count,
            s->o.streams, plural(s->o.streams), s->seconds, (double)s->sink.count / s->seconds,
            bytes);
}

static void generate_text(struct session *s)
{
    const struct stream_block *const streams = &s->streams;

    set_up(s);
    progress_listen(); /* generation then ends after the current symbol */
    run_steps(s);
    if (s->o.save && tarn_streams_save(streams->engine, streams->at, streams->n, s->o.save,
                                       &failure) != TARN_OK)
        fail("--save-state: %s", failure.text);
    print_statistics(s);
}

static void run(void *values)
{
    struct session s = {.o = *(const struct generate_options *)values};
    tarn_image_size size;

    if (s.o.prompt && s.o.prompt_file)
        refuse("--prompt and --prompt-file cannot be used together; give one of them");
    sampling_of(&s.o.sampling);
    open_model(&s);
    read_prompt(&s);
    if (tarn_task_image(&size, s.spec))
        generate_images(&s.o, s.model, s.prompt, s.prompt_count);
    else
        generate_text(&s);
    free(s.chosen);
    free(s.prompt);
    stream_block_close(&s.streams);
    tarn_task_free(s.task);
    tarn_model_free(s.model);
}

const struct command cmd_generate = {
    .name = "tarn generate",
    .summary = "generate text or images with a trained model",
    .help =
        "Generate text or images with a trained model, which runs as a recurrent network: each "
        "symbol is sampled from the model's prediction and becomes its next input.",
    .options = options,
    .tables = (const struct args_table[]){{"methods", tarn_method, "method"}, {0}},
    .notes = "A single stream of text is printed as it is generated, several streams one after "
             "the other at the end. " TERMINAL_RULE,
    .groups = groups,
    .examples = "tarn generate runs/book --prompt 'Once upon a time' -n 500\n"
                "tarn generate runs/book --temperature 0.8 --top-p 0.95 --seed 7\n"
                "tarn generate models/mnist.safetensors -n 64 -o digits.png\n",
    .values = sizeof(struct generate_options),
    .run = run,
};
