/* SPDX-License-Identifier: MIT */
/* cmd_serve.c - tarn serve: models behind HTTP, until a signal ends it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "files.h"
#include "hardware.h"

struct options {
    struct args_words models;
    tarn_server_desc desc;
    const char *keys; /* file with them */
    bool best;
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERANDS, NULL, AT(models), 1, 0,
     MODEL_HELP ", served under its name without the ending; NAME=MODEL gives it another"},
    {"host", "ADDRESS", ARGS_TEXT, "127.0.0.1", AT(desc.address), 0, 0,
     "numeric address to listen on; 0.0.0.0 or :: for all, which lets other machines in"},
    {"port", "PORT", ARGS_COUNT, "8080", AT(desc.port), 0, 65535,
     "port to listen on; 0: any free one, which is printed"},
    {"state-dir", "FOLDER", ARGS_TEXT, NULL, AT(desc.state_folder), 0, 0,
     "keep states of streams in a folder, also after a restart [in memory]"},
    {"max-states", "N", ARGS_COUNT, "0", AT(desc.max_states), 0, (size_t)1 << 32,
     "states to keep; the oldest are removed; 0: 1000000 in a folder, 1000 in memory"},
    {"state-age", "SECONDS", ARGS_NUMBER, "0", AT(desc.state_seconds), 0, 1000000000,
     "remove states that are older; 0: never"},
    {"max-streams", "N", ARGS_COUNT, "1024", AT(desc.max_streams), 1, 1 << 20,
     "streams of a model that run at the same time"},
    {"max-queue", "N", ARGS_COUNT, "1024", AT(desc.max_queue), 1, 1 << 20,
     "streams of a model that wait; further requests get status 429"},
    {"max-tokens", "N", ARGS_COUNT, "65536", AT(desc.max_tokens), 1, (size_t)1 << 40,
     "maximum of max_tokens in a request"},
    {"max-context", "N", ARGS_COUNT, "4096", AT(desc.max_context), 1, 1 << 28,
     "positions of a stream of models whose state grows, such as softmax attention; those of "
     "linear attention have no limit"},
    {"max-body", "BYTES", ARGS_BYTES, "32M", AT(desc.max_body), 1024, (size_t)1 << 40,
     "maximum size of a request"},
    {"max-connections", "N", ARGS_COUNT, "16384", AT(desc.max_connections), 1, 1 << 20,
     "maximum number of connections"},
    {"max-seconds", "SECONDS", ARGS_SECONDS, "600", AT(desc.max_seconds), 0, 0,
     "maximum duration of a request"},
    {"drain", "SECONDS", ARGS_SECONDS, "10", AT(desc.drain_seconds), 0, 0,
     "time for running streams to end after SIGTERM or Ctrl-C; then they are cut off"},
    {"api-key-file", "FILE", ARGS_TEXT, NULL, AT(keys), 0, 0,
     "file with a key per line, one of which requests must have: Authorization: Bearer KEY"},
    {"cors", "ORIGIN", ARGS_TEXT, NULL, AT(desc.cors), 0, 0,
     "allow pages of another origin to use the server, such as https://example.org, or *"},
    {"log", "FILE", ARGS_TEXT, NULL, AT(desc.log), 0, 0,
     "append a JSON object per request to a file; - for standard error"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(desc.precision), 0, 0,
     "precision of the weights"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", AT(desc.host), 0, 1024, THREADS_HELP},
    {0},
};

/* ---- Models ------------------------------------------------------------- */

struct served {
    char name[TARN_NAME_SIZE];
    char path[MODEL_PATH];
    tarn_model *model;
};

/* "digits=runs/digits", or the last part of a path without ".safetensors". */
static void name_model(struct served *served, const char *word, const char **given)
{
    static const char ending[] = ".safetensors";
    const char *const equals = strchr(word, '=');
    size_t length = strlen(word);

    *given = equals ? equals + 1 : word;
    if (equals) {
        snprintf(served->name, sizeof served->name, "%.*s", (int)(equals - word), word);
        return;
    }
    while (length > 1 && word[length - 1] == '/')
        length--;
    size_t first = length;

    while (first > 0 && word[first - 1] != '/')
        first--;
    if (length - first > sizeof ending - 1 &&
        strncmp(word + length - (sizeof ending - 1), ending, sizeof ending - 1) == 0)
        length -= sizeof ending - 1;
    snprintf(served->name, sizeof served->name, "%.*s", (int)(length - first), word + first);
}

static void open_models(struct served *served, tarn_served_model *models,
                        const struct options *o)
{
    for (size_t i = 0; i < o->models.count; i++) {
        const char *given;

        name_model(&served[i], o->models.words[i], &given);
        model_path(served[i].path, given, o->best);
        served[i].model = model_open(given, o->best);
        models[i] = (tarn_served_model){served[i].name, served[i].model, served[i].path};
    }
}

/* ---- Keys --------------------------------------------------------------- */

struct keys {
    char **at;
    size_t count, room;
};

static void add_key(struct keys *keys, const char *line, size_t length)
{
    if (keys->count == keys->room) {
        keys->room = 2 * keys->room + 16;
        keys->at = realloc(keys->at, keys->room * sizeof *keys->at);
        if (!keys->at)
            fail("not enough memory for the keys");
    }
    keys->at[keys->count] = allocate(length + 1, 1, "a key");
    memcpy(keys->at[keys->count++], line, length);
}

/* Lines that are empty or begin with # are none. */
static void read_keys(struct keys *keys, const char *path)
{
    FILE *const file = path ? fopen(path, "r") : NULL;
    char line[1024];

    if (!path)
        return;
    if (!file)
        fail("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof line, file)) {
        const size_t length = strcspn(line, "\r\n");

        if (length == sizeof line - 1)
            fail("%s: a key is longer than %zu bytes", path, sizeof line - 2);
        if (length > 0 && *line != '#')
            add_key(keys, line, length);
    }
    if (ferror(file))
        fail("%s: %s", path, strerror(errno));
    fclose(file);
    if (keys->count == 0)
        fail("%s: contains no keys; expected one per line", path);
}

/* ---- Running ------------------------------------------------------------ */

static tarn_server *running;

/* The first signal lets streams end; the second exits at once. */
static void on_signal(int number)
{
    static volatile sig_atomic_t asked;

    if (asked)
        _exit(128 + number);
    asked = 1;
    tarn_server_stop(running);
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

/* Every connection is an open file; systems often allow 1024 at first and more if asked. */
static void allow_connections(size_t count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count + 64)
        return;
    limit.rlim_cur = limit.rlim_max < count + 64 ? limit.rlim_max : (rlim_t)(count + 64);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void print_address(const char *address)
{
    const char *const colon = strchr(address, ':');

    printf("listening on http://%s%s%s:%zu\n", colon ? "[" : "", address, colon ? "]" : "",
           tarn_server_port(running));
    fflush(stdout);
}

static void run(void *values)
{
    struct options *const o = values;
    struct served *const served = allocate(o->models.count, sizeof *served, "the models");
    tarn_served_model *const models = allocate(o->models.count, sizeof *models, "the models");
    struct keys keys = {0};

    if (!tarn_server_available())
        fail("this build has no server; install libmicrohttpd and build again");
    read_keys(&keys, o->keys);
    open_models(served, models, o);
    o->desc.models = models;
    o->desc.model_count = o->models.count;
    o->desc.keys = (const char *const *)keys.at;
    o->desc.key_count = keys.count;
    allow_connections(o->desc.max_connections);
    must(tarn_server_create(&running, &o->desc, &failure));
    listen_to_signals();
    print_address(o->desc.address);
    tarn_server_run(running);
    tarn_server_free(running);
    for (size_t i = 0; i < keys.count; i++)
        free(keys.at[i]);
    for (size_t i = 0; i < o->models.count; i++)
        tarn_model_free(served[i].model);
    free(keys.at);
    free(models);
    free(served);
}

const struct command cmd_serve = {
    .name = "tarn serve",
    .summary = "serve models over HTTP, to programs and browsers",
    .help = "Serve trained models over HTTP with the requests of OpenAI's API: completions of "
            "text and images, transcription of speech. All users of a model advance in one "
            "batch, each with a state of fixed size that can be saved, forked and continued. "
            "A page at / shows it in a browser. docs/serve.md describes the requests.",
    .options = rows,
    .notes = "Without --host only programs on this machine can connect. Anyone who can connect "
             "can use the models unless there is an --api-key-file.",
    .examples = "tarn serve models/mnist.safetensors\n"
                "tarn serve digits=runs/digits runs/book --state-dir states --port 8000\n"
                "curl http://127.0.0.1:8080/v1/completions -H 'Content-Type: application/json' "
                "-d '{\"model\": \"book\", \"prompt\": \"Once\", \"max_tokens\": 50}'\n",
    .values = sizeof(struct options),
    .run = run,
};
