/* SPDX-License-Identifier: MIT */
/* bench_serve.c - many users of tarn serve at once: memory, throughput, delays; and how long it
 * takes to continue one of many saved states. Server and client share this machine. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "files.h"
#include "http_client.h"
#include "stream_block.h"

enum {
    GAPS = 1 << 22,
    PROBES = 20,
    CONTINUED = 300,
    DIRECT_LEAST = 24,
    DIRECT_MOST = 8192,
    BYTES_MOST = 1 << 24
};

struct options {
    struct bench_options common;
    const char *model, *precision, *folder;
    size_t users, tokens, states;
    double seconds;
};

static const struct args_option options[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, "text or image " MODEL_HELP},
    {"users", "N", ARGS_COUNT, "1000", AT(users), 2, 16000, "streams at the same time"},
    {"tokens", "N", ARGS_COUNT, "700", AT(tokens), 2, 1 << 20,
     "symbols of a request; users ask again when they have them"},
    {"seconds", "S", ARGS_SECONDS, "5", AT(seconds), 0, 0, "measured duration of a round"},
    {"states", "N", ARGS_COUNT, "0", AT(states), 0, 10000000,
     "saved states on disk, some of which are continued"},
    {"folder", "FOLDER", ARGS_TEXT, NULL, AT(folder), 0, 0,
     "new folder for the states, which is removed at the end [in the current one]"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights"},
    BENCH_REPEAT("3", 1, 100, "rounds of a direct measurement and one of the server"),
    BENCH_THREADS(THREADS_HELP),
    BENCH_JSON("model"),
    BENCH_FILES,
    {0},
};

struct load {
    char name[MODEL_PATH + 8], body[256], threads[16], users[16];
    tarn_model *model;
    struct stream_block direct;
    int32_t *symbols;
    struct http_server server;
    double idle_bytes, busy_bytes;
    double *served, *alone; /* tokens per second of each round */
    double *firsts;         /* seconds to the first token */
    double *first_steps;    /* of the batch, until it was drawn */
    size_t rounds, probes, counted;
    double *gaps; /* of all rounds */
    size_t gap_count;
    double median_s, p99_s;
    double *continued, *read; /* seconds to continue a state; to read a file of its size */
    size_t continued_count;
};

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Not a number if there is nothing. */
static double quantile(double *values, size_t count, double fraction)
{
    if (count == 0)
        return (double)NAN;
    qsort(values, count, sizeof *values, by_size);
    return values[(size_t)(fraction * (double)(count - 1) + 0.5)];
}

/* ---- Direct ------------------------------------------------------------- */

/* As tarn bench generate: steps of all streams in this process, without a server. */
static double direct_rate(struct load *l, const struct options *v)
{
    static double seconds[DIRECT_MOST];
    const size_t known = tarn_model_config(l->model)->symbols;
    const double end = seconds_now() + 0.1 * v->seconds;
    size_t i = 0;

    for (; i < DIRECT_MOST && (i < DIRECT_LEAST || seconds_now() < end); i++) {
        if (i % v->tokens == 0)
            stream_block_restart(&l->direct);
        for (size_t b = 0; b < v->users; b++)
            l->symbols[b] = (int32_t)((7 * i + 3 * b) % known);
        const double start = seconds_now();

        stream_block_step(&l->direct, l->symbols);
        seconds[i] = seconds_now() - start;
    }
    return (double)v->users / quantile(seconds, i, 0.5);
}

/* ---- Served ------------------------------------------------------------- */

static double metric(const struct load *l, const char *name)
{
    double seconds;
    char key[96];
    char *const text = http_ask(&l->server, "GET", "/metrics", "", &seconds);

    snprintf(key, sizeof key, "\ntarn_%s{model=\"m\"} ", name);
    const double value = http_number(text, key);

    free(text);
    return value;
}

static void wait_for_users(struct load *l, struct http_users *users, size_t count)
{
    const double end = seconds_now() + 120.0;

    while (metric(l, "users") != (double)count) {
        if (seconds_now() > end)
            fail("the server did not get %zu users within 120 s", count);
        http_users_run(users, 0.05, SIZE_MAX);
    }
}

/* One user leaves and joins again while the others keep generating. Steps are counted only if
 * no other user began a request in between. */
static void probe(struct load *l, struct http_users *users, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct http_user *const user = &users->users[users->count - 1];
        const double firsts = metric(l, "first_tokens_total");
        const double steps = metric(l, "first_token_steps_total");

        http_user_begin(users, users->count - 1);
        http_users_run(users, 60.0, users->count - 1);
        if (user->first_s == 0.0)
            fail("no first token within 60 s");
        l->firsts[l->probes++] = user->first_s;
        l->first_steps[l->counted] = metric(l, "first_token_steps_total") - steps;
        l->counted += metric(l, "first_tokens_total") == firsts + 1.0;
        http_users_renew(users, users->count - 1);
        http_users_run(users, 0.1, SIZE_MAX);
    }
}

static void serve_round(struct load *l, const struct options *v)
{
    struct http_users users = {.again = true};

    http_users_open(&users, &l->server, v->users, l->body);
    for (size_t i = 0; i + 1 < v->users; i++)
        http_user_begin(&users, i);
    wait_for_users(l, &users, v->users - 1);
    probe(l, &users, PROBES / v->common.repeat + 1);
    http_user_begin(&users, v->users - 1);
    wait_for_users(l, &users, v->users);
    users.gaps = l->gaps + l->gap_count;
    users.gap_room = GAPS - l->gap_count;
    const double before = metric(l, "generated_tokens_total"), start = seconds_now();

    http_users_run(&users, v->seconds, SIZE_MAX);
    const double after = metric(l, "generated_tokens_total"), end = seconds_now();

    l->served[l->rounds] = (after - before) / (end - start);
    l->gap_count += users.gap_count;
    l->busy_bytes = fmax(l->busy_bytes, http_server_resident(&l->server));
    users.gaps = NULL;
    http_users_close(&users);
    while (metric(l, "users") > 0.0)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

/* ---- States ------------------------------------------------------------- */

static void write_state(const char *path, const char *bytes, size_t size)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

    if (file < 0 || write(file, bytes, size) != (ssize_t)size || close(file) != 0)
        fail("%s: %s", path, strerror(errno));
}

/* The bytes of a state that the server made, to be freed. */
static char *make_state(const struct load *l, const char *folder, size_t *size)
{
    double seconds;
    char *const made = http_ask(&l->server, "POST", "/v1/completions",
                                "{\"model\":\"m\",\"prompt\":[0],\"max_tokens\":20,"
                                "\"return_state\":\"id\"}",
                                &seconds);
    const char *const id = strstr(made, "\"state\":{\"id\":\"");
    char path[TARN_PATH_SIZE];

    if (!id)
        fail("the server returned no state");
    snprintf(path, sizeof path, "%s/%.32s.state", folder, id + strlen("\"state\":{\"id\":\""));
    free(made);
    FILE *const file = fopen(path, "rb");
    char *const bytes = allocate((size_t)BYTES_MOST, 1, "a state");

    if (!file || (*size = fread(bytes, 1, (size_t)BYTES_MOST, file)) == 0)
        fail("%s: %s", path, strerror(errno));
    fclose(file);
    unlink(path);
    return bytes;
}

/* Names that nobody need guess. */
static void state_path(char path[TARN_PATH_SIZE], const char *folder, size_t i)
{
    snprintf(path, TARN_PATH_SIZE, "%s/%032zx.state", folder, i);
}

/* Out of the system's cache, as after a long time. */
static void forget(const char *path)
{
    const int file = open(path, O_RDONLY);

    if (file < 0 || fdatasync(file) != 0 || posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED) != 0)
        fail("%s: %s", path, strerror(errno));
    close(file);
}

/* Seconds that the disk takes. */
static double read_state(const char *path)
{
    static char bytes[BYTES_MOST];

    forget(path);
    const double start = seconds_now();
    const int file = open(path, O_RDONLY);

    if (file < 0 || read(file, bytes, sizeof bytes) <= 0 || close(file) != 0)
        fail("%s: %s", path, strerror(errno));
    return seconds_now() - start;
}

static void continue_states(struct load *l, const char *folder, size_t states)
{
    char path[TARN_PATH_SIZE], body[160];

    l->continued = allocate(CONTINUED, sizeof *l->continued, "times");
    l->read = allocate(CONTINUED, sizeof *l->read, "times");
    for (; l->continued_count < CONTINUED; l->continued_count++) {
        const size_t i = (l->continued_count * 7919 + 1) % states;

        state_path(path, folder, (i + states / 2) % states);
        l->read[l->continued_count] = read_state(path);
        state_path(path, folder, i);
        forget(path);
        snprintf(body, sizeof body,
                 "{\"model\":\"m\",\"state\":\"%032zx\",\"max_tokens\":1,\"seed\":1}", i);
        free(http_ask(&l->server, "POST", "/v1/completions", body,
                      &l->continued[l->continued_count]));
    }
}

static void remove_states(const char *folder, size_t states)
{
    char path[TARN_PATH_SIZE];

    for (size_t i = 0; i < states; i++) {
        state_path(path, folder, i);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/lock", folder);
    unlink(path);
    if (rmdir(folder) != 0)
        warn("%s: %s", folder, strerror(errno));
}

/* The server is started twice: the second time it finds what is there. */
static void measure_states(struct load *l, const struct options *v)
{
    const char *const folder = v->folder ? v->folder : "tarn-bench-states";
    const char *const arguments[] = {l->name,    "--port",       "0",          "--state-dir",
                                     folder,     "--max-states", "100000000",  "--threads",
                                     l->threads, "--precision",  v->precision, NULL};
    char path[TARN_PATH_SIZE];
    size_t size;

    if (mkdir(folder, 0700) != 0)
        fail("--folder %s: %s", folder, strerror(errno));
    http_server_stop(&l->server);
    l->server = http_server_start(arguments);
    char *const bytes = make_state(l, folder, &size);

    http_server_stop(&l->server);
    for (size_t i = 0; i < v->states; i++) {
        state_path(path, folder, i);
        write_state(path, bytes, size);
    }
    free(bytes);
    l->server = http_server_start(arguments);
    continue_states(l, folder, v->states);
    http_server_stop(&l->server);
    remove_states(folder, v->states);
}

/* ---- The benchmark ------------------------------------------------------ */

static void start_server(struct load *l, const struct options *v)
{
    const char *const arguments[] = {l->name,      "--port",    "0",        "--max-streams",
                                     l->users,     "--threads", l->threads, "--precision",
                                     v->precision, NULL};

    snprintf(l->threads, sizeof l->threads, "%zu", v->common.host.threads);
    snprintf(l->users, sizeof l->users, "%zu", v->users);
    l->server = http_server_start(arguments);
    l->idle_bytes = http_server_resident(&l->server);
}

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct load *const l = bench_cases(run, 1);
    const tarn_engine_desc desc = {
        .longest = v->tokens, .precision = v->precision, .host = v->common.host};

    if (!tarn_server_available())
        fail("this build has no server; install libmicrohttpd and build again");
    snprintf(l->name, sizeof l->name, "m=%s", v->model);
    snprintf(l->body, sizeof l->body,
             "{\"model\":\"m\",\"prompt\":[0],\"max_tokens\":%zu,\"stream\":true}", v->tokens);
    start_server(l, v);
    l->model = model_open(v->model, false);
    l->direct = stream_block_open(l->model, &desc, v->users);
    l->symbols = allocate(v->users, sizeof *l->symbols, "the symbols");
    l->served = allocate(run->rounds, sizeof *l->served, "times");
    l->alone = allocate(run->rounds, sizeof *l->alone, "times");
    l->firsts = allocate(PROBES + run->rounds + 1, sizeof *l->firsts, "times");
    l->first_steps = allocate(PROBES + run->rounds + 1, sizeof *l->first_steps, "steps");
    l->gaps = allocate(GAPS, sizeof *l->gaps, "times");
    bench_title(run, "%zu users of %s at once, weights in %s", v->users, v->model,
                v->precision);
}

static void measure(struct bench_run *run, void *one)
{
    const struct options *const v = run->values;
    struct load *const l = one;

    l->alone[l->rounds] = direct_rate(l, v);
    serve_round(l, v);
    l->rounds++;
    if (l->rounds == run->rounds && v->states > 0)
        measure_states(l, v);
    else if (l->rounds == run->rounds)
        http_server_stop(&l->server);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct load *const l = one;
    const double served = quantile(l->served, l->rounds, 0.5);
    const double alone = quantile(l->alone, l->rounds, 0.5);
    const double median = quantile(l->gaps, l->gap_count, 0.5);
    const double p99 = quantile(l->gaps, l->gap_count, 0.99);
    const double more = l->busy_bytes - l->idle_bytes;
    struct bench_record r = {0};

    bench_count(&r, "users", "users", v->users);
    bench_text(&r, "precision", NULL, v->precision);
    bench_count(&r, "threads", NULL, run->threads);
    bench_bytes(&r, "idle_bytes", "idle", l->idle_bytes);
    bench_bytes(&r, "users_bytes", "users' memory", more);
    bench_number(&r, "bytes_per_user", NULL, more / (double)v->users);
    bench_number(&r, "tokens_per_s", "tokens/s", served);
    bench_number(&r, "direct_tokens_per_s", "direct", alone);
    bench_number(&r, "of_direct", "of direct", served / alone);
    bench_number(&r, "gap_ms", "ms/token", 1e3 * median);
    bench_number(&r, "gap_p99_ms", NULL, 1e3 * p99);
    bench_number(&r, "p99_of_median", "p99/median", p99 / median);
    bench_number(&r, "first_ms", "first ms", 1e3 * quantile(l->firsts, l->probes, 0.5));
    bench_number(&r, "first_most_ms", "most", 1e3 * quantile(l->firsts, l->probes, 1.0));
    bench_number(&r, "first_steps", "steps", quantile(l->first_steps, l->counted, 0.5));
    bench_number(&r, "first_steps_most", "most", quantile(l->first_steps, l->counted, 1.0));
    bench_count(&r, "states", "states", v->states);
    bench_number(&r, "continue_ms", "continue ms",
                 1e3 * quantile(l->continued, l->continued_count, 0.5));
    bench_number(&r, "continue_p99_ms", "p99",
                 1e3 * quantile(l->continued, l->continued_count, 0.99));
    bench_number(&r, "continue_most_ms", "most",
                 1e3 * quantile(l->continued, l->continued_count, 1.0));
    bench_number(&r, "read_ms", "read ms", 1e3 * quantile(l->read, l->continued_count, 0.5));
    bench_number(&r, "read_p99_ms", "p99", 1e3 * quantile(l->read, l->continued_count, 0.99));
    bench_number(&r, "read_most_ms", "most", 1e3 * quantile(l->read, l->continued_count, 1.0));
    bench_report(run, &r);
}

const struct command bench_serve = {
    .name = "tarn bench serve",
    .summary = "many users of tarn serve: memory, throughput and delays",
    .help = "Start tarn serve and measure it with many users at once, on this machine: its "
            "memory for them, symbols per second compared with steps of the same batch without "
            "a server, the time between the symbols of a user, the time until a user who joins "
            "has the first symbol, the steps of the batch until it is drawn, and the time to "
            "continue a state from disk.",
    .options = options,
    .notes = "Server and client share the processors of this machine.",
    .examples = "tarn bench serve models/mnist.safetensors\n"
                "tarn bench serve models/mnist.safetensors --users 64 --states 100000\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct load),
            .list = list,
            .measure = measure,
            .report = report,
        },
};
