/* SPDX-License-Identifier: MIT */
/* cmd_generate.c - tarn generate: reads the prompt, then samples symbol after symbol.
 *
 * Saved streams have not yet read the symbols chosen last, which are saved with them:
 * continuing begins by reading them, exactly as without the interruption. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "generate_images.h"
#include "generate_options.h"
#include "generate_sink.h"
#include "model_open.h"
#include "output.h"
#include "stopwatch.h"
#include "stream_block.h"
#include "terminal.h"
#include "words.h"

enum { USUAL = 256 }; /* default number of symbols */

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

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

/* The first Ctrl-C ends generation after the current symbol; a second one ends the program. */
static void listen_to_ctrl_c(void)
{
    struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};

    sigaction(SIGINT, &action, NULL);
}

static int refused(const tarn_error *err)
{
    return command_error(&cmd_generate, err);
}

static int failed(const char *what, const char *why)
{
    return command_fail(&cmd_generate, "%s: %s", what, why);
}

/* ---- Prompt ------------------------------------------------------------- */

/* The bytes of a file, which may be a pipe. NULL: see errno. */
static char *read_bytes(const char *path, size_t *length)
{
    FILE *const file = fopen(path, "rb");
    char *bytes = NULL;
    size_t room = 0, used = 0;

    if (!file)
        return NULL;
    do {
        char *const grown = used + 1 >= room ? realloc(bytes, room = 2 * room + 4096) : bytes;

        if (!grown)
            break;
        bytes = grown;
        used += fread(bytes + used, 1, room - used, file);
    } while (!feof(file) && !ferror(file));
    const bool whole = feof(file) && !ferror(file);
    const int why = errno;

    fclose(file);
    if (!whole) {
        free(bytes);
        errno = why ? why : EIO;
        return NULL;
    }
    *length = used;
    return bytes;
}

static int encode(struct session *s, const char *text, size_t length)
{
    tarn_error err;

    s->prompt = malloc((length + 1) * sizeof *s->prompt);
    if (!s->prompt)
        return failed("prompt", "not enough memory");
    if (tarn_task_encode(s->task, s->prompt, &s->prompt_count, text, length, &err) != TARN_OK)
        return refused(&err);
    return ARGS_GO_ON;
}

/* The model needs at least one symbol before it can predict. */
static int begin_somehow(struct session *s)
{
    const int code = encode(s, "\n", 1);

    if (code == ARGS_GO_ON && s->prompt_count == 0)
        s->prompt[s->prompt_count++] = 0;
    return code;
}

static int read_prompt(struct session *s)
{
    const struct generate_options *const o = &s->o;
    int code = ARGS_GO_ON;

    if (o->prompt)
        code = encode(s, o->prompt, strlen(o->prompt));
    if (o->prompt_file) {
        size_t length = 0;
        char *const bytes = read_bytes(o->prompt_file, &length);

        code = bytes ? encode(s, bytes, length) : failed(o->prompt_file, strerror(errno));
        free(bytes);
    }
    if (code == ARGS_GO_ON && s->prompt_count == 0 && !o->load) {
        free(s->prompt);
        code = begin_somehow(s);
    }
    return code;
}

/* ---- Setting up --------------------------------------------------------- */

/* Symbols of a model without a task are printed as numbers. */
static int open_task(struct session *s)
{
    const tarn_config *const config = tarn_model_config(s->model);
    tarn_error err;

    if (*config->task)
        snprintf(s->spec, sizeof s->spec, "%s", config->task);
    else
        snprintf(s->spec, sizeof s->spec, "copy:symbols=%zu",
                 config->symbols > 1 ? config->symbols - 1 : 1);
    return tarn_task_open(&s->task, s->spec, &err) == TARN_OK ? ARGS_GO_ON : refused(&err);
}

/* Takes from the saved state what the command line leaves open. */
static int read_about(struct session *s)
{
    struct generate_options *const o = &s->o;
    tarn_error err;

    if (o->load && tarn_streams_inspect(&s->from, o->load, &err) != TARN_OK)
        return failed("--load-state", err.text);
    if (o->load && !s->from.has_next)
        return failed(o->load, "is not a state saved by --save-state: it has no next symbols");
    if (o->load && !o->method)
        o->method = s->from.method;
    if (o->streams == 0)
        o->streams = o->load ? s->from.count : 1;
    return ARGS_GO_ON;
}

/* Checked before anything is printed. The last symbol is not read. */
static int check_length(const struct session *s, size_t longest)
{
    const size_t learned = tarn_model_config(s->model)->positions;

    if (learned == 0 || longest - 1 <= learned)
        return ARGS_GO_ON;
    return command_refuse(
        &cmd_generate,
        "prompt and -n need %zu positions; the model has learned only %zu; reduce -n or "
        "shorten the prompt",
        longest - 1, learned);
}

static int make_streams(struct session *s)
{
    const struct generate_options *const o = &s->o;
    struct stream_block *const streams = &s->streams;
    const tarn_engine_desc desc = {
        .longest = (size_t)s->from.position + (o->load ? 1 : 0) + s->prompt_count + o->count,
        .method = o->method,
        .precision = o->precision,
        .host = o->host,
    };
    tarn_error err;
    const int code = check_length(s, desc.longest);

    if (code != ARGS_GO_ON)
        return code;
    if (stream_block_open(streams, s->model, &desc, o->streams, &err) != TARN_OK)
        return refused(&err);
    s->chosen = calloc(o->streams, sizeof *s->chosen);
    if (!s->chosen)
        return failed("streams", "not enough memory");
    if (o->load &&
        tarn_streams_load(streams->engine, streams->at, streams->n, o->load, &err) != TARN_OK)
        return failed("--load-state", err.text);
    return ARGS_GO_ON;
}

static int open_model(struct session *s)
{
    s->model = model_open(&cmd_generate, s->o.model, s->o.best);
    if (!s->model)
        return EXIT_FAILED;
    const int code = open_task(s);

    if (code != ARGS_GO_ON)
        return code;
    if (tarn_model_config(s->model)->frames > 0)
        return command_refuse(
            &cmd_generate,
            "%s is a speech model (task '%s'), which cannot generate; use tarn transcribe",
            s->o.model, s->spec);
    return read_prompt(s);
}

static int set_up(struct session *s)
{
    int code;

    if (s->o.scale > 0)
        return command_refuse(&cmd_generate,
                              "--scale is for image models; %s is a model of task '%s'",
                              s->o.model, s->spec);
    if ((s->o.out && format_is_foreign(&cmd_generate, "-o", s->o.out, FORMAT_TEXT)) ||
        (s->o.save &&
         format_is_foreign(&cmd_generate, "--save-state", s->o.save, FORMAT_MODEL)))
        return EXIT_USAGE;
    if (s->o.save && !output_can_be(&cmd_generate, "--save-state", s->o.save))
        return EXIT_FAILED;
    if (s->o.count == 0)
        s->o.count = USUAL;
    if ((code = read_about(s)) != ARGS_GO_ON || (code = make_streams(s)) != ARGS_GO_ON)
        return code;
    s->sink = (struct sink){.task = s->task, .path = s->o.out, .json = s->o.json};
    return ARGS_GO_ON;
}

static void tear_down(struct session *s)
{
    sink_close(&s->sink);
    free(s->chosen);
    free(s->prompt);
    stream_block_close(&s->streams);
    tarn_task_free(s->task);
    tarn_model_free(s->model);
}

/* ---- Running ------------------------------------------------------------ */

/* Feeds the symbol that a loaded stream has not read yet, then the prompt. */
static tarn_status feed_first(struct session *s, size_t i, tarn_error *err)
{
    const struct stream_block *const streams = &s->streams;
    float *const outputs = streams->outputs + i * streams->width;
    tarn_status status = TARN_OK;

    if (s->o.load)
        status = tarn_engine_step(streams->engine, &streams->at[i], outputs, NULL, 1, err);
    if (status == TARN_OK && s->prompt_count > 0)
        status = tarn_engine_prefill(streams->engine, streams->at[i], outputs, s->prompt,
                                     s->prompt_count, err);
    return status;
}

/* New streams fork after the prompt. */
static int begin(struct session *s)
{
    const tarn_sampling sampling = generate_options_sampling(&s->o);
    tarn_error err;
    tarn_status status = feed_first(s, 0, &err);

    for (size_t i = 1; i < s->streams.n && status == TARN_OK; i++)
        if (s->o.load)
            status = feed_first(s, i, &err);
        else
            stream_block_fork(&s->streams, i, 0);
    if (status == TARN_OK)
        status = stream_block_sampling(&s->streams, &sampling, &err);
    return status == TARN_OK ? ARGS_GO_ON : refused(&err);
}

static int choose(struct session *s, bool steps)
{
    tarn_error err;

    if ((steps && stream_block_step(&s->streams, NULL, &err) != TARN_OK) ||
        stream_block_draw(&s->streams, s->chosen, &err) != TARN_OK)
        return refused(&err);
    return ARGS_GO_ON;
}

static int run_steps(struct session *s)
{
    int code = begin(s);

    if (code != ARGS_GO_ON)
        return code;
    if (!sink_open(&s->sink, s->o.streams, s->o.count))
        return EXIT_FAILED;
    const double start = stopwatch_seconds();

    /* At least one, so that every stream has a symbol that is chosen but not yet read. */
    for (size_t i = 0; i < s->o.count && !(i > 0 && stopped); i++) {
        if ((code = choose(s, i > 0)) != ARGS_GO_ON)
            return code;
        if (!sink_put(&s->sink, s->chosen))
            return EXIT_FAILED;
    }
    s->seconds = stopwatch_seconds() - start;
    return sink_finish(&s->sink, s->seconds) ? EXIT_DONE : EXIT_FAILED;
}

static int save(const struct session *s)
{
    const struct stream_block *const streams = &s->streams;
    tarn_error err;

    if (s->o.save &&
        tarn_streams_save(streams->engine, streams->at, streams->n, s->o.save, &err) != TARN_OK)
        return failed("--save-state", err.text);
    return EXIT_DONE;
}

static void print_statistics(const struct session *s)
{
    char bytes[32];

    if (!isatty(STDERR_FILENO))
        return;
    words_bytes(bytes, sizeof bytes, (double)s->streams.n * (double)s->streams.size);
    fprintf(stderr, "%zu steps, %zu stream%s, %.3g s: %.4g steps/s; state %s\n", s->sink.count,
            s->o.streams, s->o.streams == 1 ? "" : "s", s->seconds,
            (double)s->sink.count / s->seconds, bytes);
}

static int generate_text(struct session *s)
{
    int code = set_up(s);

    if (code != ARGS_GO_ON)
        return code;
    listen_to_ctrl_c();
    code = run_steps(s);
    if (code == EXIT_DONE && (code = save(s)) == EXIT_DONE)
        print_statistics(s);
    return code;
}

static int run(void *values)
{
    struct session s = {.o = *(const struct generate_options *)values};
    tarn_image_size size;
    int code = generate_options_check(&s.o);

    if (code == ARGS_GO_ON && (code = open_model(&s)) == ARGS_GO_ON)
        code = tarn_task_image(&size, s.spec)
                   ? generate_images(&s.o, s.model, s.prompt, s.prompt_count)
                   : generate_text(&s);
    tear_down(&s);
    return code;
}

const struct command cmd_generate = {
    .name = "tarn generate",
    .summary = "generate text or images with a trained model",
    .help =
        "Generate text or images with a trained model, which runs as a recurrent network: each "
        "symbol is sampled from the model's prediction and becomes its next input.",
    .options = generate_rows,
    .tables = (const struct args_table[]){{"methods", tarn_method, "method"}, {0}},
    .notes = "A single stream of text is printed as it is generated, several streams one after "
             "the other at the end. " TERMINAL_RULE,
    .groups = generate_groups,
    .examples = "tarn generate runs/book --prompt 'Once upon a time' -n 500\n"
                "tarn generate runs/book --temperature 0.8 --top-p 0.95 --seed 7\n"
                "tarn generate models/mnist.safetensors -n 64 -o digits.png\n",
    .values = sizeof(struct generate_options),
    .run = run,
};
