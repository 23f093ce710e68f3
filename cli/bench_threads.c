/* SPDX-License-Identifier: MIT */
/* bench_threads.c - how much speed is left when other processes use the cores: training and
 * generation, on one thread and on several, alone and beside busy processes. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "bench_memory.h"
#include "bench_model.h"
#include "bench_update.h"
#include "stopwatch.h"
#include "stream_block.h"

enum { BUSY_MOST = 256 };

struct values {
    struct bench_options common;
    size_t busy;
    double seconds;
};

#define AT(field) offsetof(struct values, field)

static const struct args_option options[] = {
    {"busy", "N", ARGS_COUNT, "0", AT(busy), 0, BUSY_MOST,
     "number of busy processes; 0: one per core"},
    {"seconds", "S", ARGS_SECONDS, "2", AT(seconds), 0, 0, "duration of each measurement"},
    BENCH_THREADS(struct values, "number of threads to compare with one; 0: all cores"),
    BENCH_JSON(struct values, "row"),
    BENCH_CSV(struct values),
    BENCH_PLOT(struct values),
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

static const struct work {
    const char *name, *preset;
    bool trains;
    size_t batch, length;
} works[] = {
    {"train", "tiny", true, 16, 32},
    {"generate", "mnist-paper", false, 1, 784},
    {"generate", "mnist-paper", false, 64, 784},
};

enum { WORKS = sizeof works / sizeof works[0] };

/* A kind of work on a number of threads: an update at a time, or a step of all streams. */
struct worker {
    const struct work *work;
    size_t threads, steps;
    struct bench_update update;
    struct stream_block streams;
    int32_t *symbols;
    double alone, beside; /* tokens/s */
};

static int list(struct bench_run *run)
{
    struct values *const v = run->values;
    const size_t kinds = run->threads > 1 ? 2 : 1, cores = tarn_threads_default();
    struct worker *const cases = bench_cases(run, kinds * WORKS);

    for (size_t i = 0; i < run->count; i++) {
        cases[i].work = &works[i / kinds];
        cases[i].threads = i % kinds == 0 ? 1 : run->threads;
    }
    if (v->busy == 0)
        v->busy = cores < BUSY_MOST ? cores : BUSY_MOST;
    snprintf(run->title, sizeof run->title, "Tokens per second alone and beside %zu busy %s",
             v->busy, v->busy == 1 ? "process" : "processes");
    return cases ? ARGS_GO_ON : EXIT_FAILED;
}

static tarn_status open_trainer(struct worker *w, const tarn_config *config,
                                const tarn_host *host, tarn_error *err)
{
    const tarn_trainer_desc desc = {
        .batch = w->work->batch, .length = w->work->length, .lr = 1e-4, .host = *host};

    return bench_update_open(&w->update, config, &desc, err);
}

static tarn_status open_streams(struct worker *w, const tarn_config *config,
                                const tarn_host *host, tarn_error *err)
{
    const tarn_engine_desc desc = {.longest = w->work->length, .host = *host};
    const tarn_status status = tarn_model_create(&w->update.model, config, NULL, err);

    return status == TARN_OK
               ? stream_block_open(&w->streams, w->update.model, &desc, w->work->batch, err)
               : status;
}

static tarn_status open_one(struct bench_run *run, void *one, tarn_error *err)
{
    struct worker *const w = one;
    const struct bench_model which = {.preset = w->work->preset};
    const tarn_host host = {.threads = w->threads, .cpu = run->options->host.cpu};
    tarn_config config;
    tarn_status status = bench_model_config(&config, &which, err);

    if (status == TARN_OK)
        status = (w->work->trains ? open_trainer : open_streams)(w, &config, &host, err);
    if (status != TARN_OK)
        return status;
    w->symbols = calloc(w->work->batch * w->work->length, sizeof *w->symbols);
    return w->symbols ? TARN_OK : bench_no_memory(err, "the symbols");
}

static void close_one(struct bench_run *run, void *one)
{
    struct worker *const w = one;

    (void)run;
    free(w->symbols);
    stream_block_close(&w->streams);
    bench_update_close(&w->update);
}

static tarn_status work_once(struct worker *w, size_t *tokens, tarn_error *err)
{
    const tarn_batch batch = {.inputs = w->symbols, .targets = w->symbols};

    if (w->work->trains) {
        *tokens += w->work->batch * w->work->length;
        return bench_update_run(&w->update, &batch, true, err);
    }
    *tokens += w->work->batch;
    if (w->steps++ % w->work->length == 0)
        stream_block_restart(&w->streams);
    return stream_block_step(&w->streams, w->symbols, err);
}

/* The mean over all that time, after a quarter of it to warm up: the best moment would be one
 * without the other processes. */
static tarn_status measure_speed(struct worker *w, double seconds, double *tokens_per_s,
                                 tarn_error *err)
{
    double start = stopwatch_seconds(), passed = 0.0;
    bool warm = false;
    size_t tokens = 0;
    tarn_status status = TARN_OK;

    while (status == TARN_OK && !(warm && passed >= seconds)) {
        status = work_once(w, &tokens, err);
        passed = stopwatch_seconds() - start;
        if (!warm && passed >= seconds / 4.0) {
            warm = true;
            tokens = 0;
            passed = 0.0;
            start = stopwatch_seconds();
        }
    }
    *tokens_per_s = (double)tokens / passed;
    return status;
}

/* ---- Busy processes ----------------------------------------------------- */

/* Ends by itself when the program that started it is gone. */
static void be_busy(pid_t parent)
{
    while (getppid() == parent)
        for (volatile unsigned i = 0; i < 1u << 20;)
            i = i + 1;
    _exit(0);
}

struct crowd {
    pid_t processes[BUSY_MOST];
    size_t count;
};

static void crowd_stop(struct crowd *crowd)
{
    for (size_t i = 0; i < crowd->count; i++)
        kill(crowd->processes[i], SIGKILL);
    for (size_t i = 0; i < crowd->count; i++)
        waitpid(crowd->processes[i], NULL, 0);
    crowd->count = 0;
}

static bool crowd_start(struct crowd *crowd, size_t count)
{
    const pid_t parent = getpid();

    for (crowd->count = 0; crowd->count < count; crowd->count++) {
        const pid_t child = fork();

        if (child == 0)
            be_busy(parent);
        if (child < 0) {
            crowd_stop(crowd);
            return false;
        }
        crowd->processes[crowd->count] = child;
    }
    return true;
}

static tarn_status measure(struct bench_run *run, void *one, size_t round, tarn_error *err)
{
    const struct values *const v = run->values;
    struct worker *const w = one;
    struct crowd crowd;
    tarn_status status = measure_speed(w, v->seconds, &w->alone, err);

    (void)round;
    if (status != TARN_OK)
        return status;
    if (!crowd_start(&crowd, v->busy))
        return bench_no_memory(err, "%zu processes", v->busy);
    status = measure_speed(w, v->seconds, &w->beside, err);
    crowd_stop(&crowd);
    return status;
}

static void report(struct bench_run *run, const void *one)
{
    const struct values *const v = run->values;
    const struct worker *const w = one, *const single = w->threads == 1 ? w : w - 1;
    struct bench_record r = {0};

    bench_text(&r, "work", "work", w->work->name);
    bench_text(&r, "preset", "preset", w->work->preset);
    bench_count(&r, "batch", "batch", w->work->batch);
    bench_count(&r, "threads", "threads", w->threads);
    bench_count(&r, "busy", NULL, v->busy);
    bench_number(&r, "alone_tokens_per_s", "alone", w->alone);
    bench_number(&r, "beside_tokens_per_s", "beside", w->beside);
    bench_number(&r, "ratio", "beside/alone", w->beside / w->alone);
    bench_number(&r, "of_one_thread", "of one thread", w->beside / single->beside);
    bench_report(run, &r);
}

/* ---- The row ------------------------------------------------------------ */

static const struct bench bench = {
    .case_size = sizeof(struct worker),
    .plot = {.x = "threads",
             .x_label = "threads",
             .series = "work",
             .panels = {{"alone_tokens_per_s", "tokens per second alone", 1.0},
                        {"beside_tokens_per_s", "beside busy processes", 1.0}}},
    .open_in_turn = true,
    .list = list,
    .open = open_one,
    .measure = measure,
    .close = close_one,
    .report = report,
};

const struct command bench_threads = {
    .name = "tarn bench threads",
    .summary = "speed alone and beside busy processes",
    .help =
        "Measure training and generation on one thread and on several, first alone and then "
        "beside processes that keep the cores busy. With one busy process per core, half of "
        "the speed is a fair share.",
    .options = options,
    .examples = "tarn bench threads\n"
                "tarn bench threads --busy 12 --seconds 5\n",
    .values = sizeof(struct values),
    .bench = &bench,
};
