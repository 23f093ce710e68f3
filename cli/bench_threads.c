/* SPDX-License-Identifier: MIT */
/* bench_threads.c - how much speed is left when other processes use the cores: training and
 * generation, on one thread and on several, alone and beside busy processes. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"
#include "bench_model.h"
#include "stream_block.h"

enum { BUSY_MOST = 256 };

struct options {
    struct bench_options common;
    size_t busy;
    double seconds;
};

static const struct args_option options[] = {
    {"busy", "N", ARGS_COUNT, "0", AT(busy), 0, BUSY_MOST,
     "number of busy processes; 0: one per core"},
    {"seconds", "S", ARGS_SECONDS, "2", AT(seconds), 0, 0, "duration of each measurement"},
    BENCH_THREADS("number of threads to compare with one; 0: all cores"),
    BENCH_JSON("row"),
    BENCH_FILES,
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

static void list(struct bench_run *run)
{
    struct options *const v = run->values;
    const size_t kinds = run->threads > 1 ? 2 : 1;
    struct worker *const cases = bench_cases(run, kinds * WORKS);

    for (size_t i = 0; i < run->count; i++) {
        cases[i].work = &works[i / kinds];
        cases[i].threads = i % kinds == 0 ? 1 : run->threads;
    }
    if (v->busy == 0)
        v->busy = smaller(tarn_threads_default(), BUSY_MOST);
    bench_title(run, "Tokens per second alone and beside %zu busy %s", v->busy,
                v->busy == 1 ? "process" : "processes");
}

static void open_one(struct bench_run *run, void *one)
{
    struct worker *const w = one;
    const tarn_config config =
        bench_model_config(&(struct bench_model){.preset = w->work->preset});
    const tarn_host host = {.threads = w->threads, .cpu = run->options->host.cpu};
    const tarn_trainer_desc trainer = {
        .batch = w->work->batch, .length = w->work->length, .lr = 1e-4, .host = host};
    const tarn_engine_desc engine = {.longest = w->work->length, .host = host};

    if (w->work->trains) {
        w->update = bench_update_open(&config, &trainer);
    } else {
        must(tarn_model_create(&w->update.model, &config, NULL, &failure));
        w->streams = stream_block_open(w->update.model, &engine, w->work->batch);
    }
    w->symbols = allocate(w->work->batch * w->work->length, sizeof *w->symbols, "the symbols");
    w->update.batch = (tarn_batch){.inputs = w->symbols, .targets = w->symbols};
}

static void close_one(void *one)
{
    struct worker *const w = one;

    free(w->symbols);
    stream_block_close(&w->streams);
    bench_update_close(&w->update);
}

/* Returns the number of tokens. */
static size_t work_once(struct worker *w)
{
    if (w->work->trains) {
        bench_update_run(&w->update);
        return w->work->batch * w->work->length;
    }
    if (w->steps++ % w->work->length == 0)
        stream_block_restart(&w->streams);
    stream_block_step(&w->streams, w->symbols);
    return w->work->batch;
}

/* Tokens per second: the mean over all that time, after a quarter of it to warm up. The best
 * moment would be one without the other processes. */
static double measure_speed(struct worker *w, double seconds)
{
    double start = seconds_now(), passed = 0.0;
    bool warm = false;
    size_t tokens = 0;

    while (!(warm && passed >= seconds)) {
        tokens += work_once(w);
        passed = seconds_now() - start;
        if (!warm && passed >= seconds / 4.0) {
            warm = true;
            tokens = 0;
            passed = 0.0;
            start = seconds_now();
        }
    }
    return (double)tokens / passed;
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

static void measure(struct bench_run *run, void *one)
{
    const size_t busy = ((const struct options *)run->values)->busy;
    const double seconds = ((const struct options *)run->values)->seconds;
    struct worker *const w = one;
    const pid_t parent = getpid();
    pid_t processes[BUSY_MOST];

    w->alone = measure_speed(w, seconds);
    for (size_t i = 0; i < busy; i++) {
        processes[i] = fork();
        if (processes[i] == 0)
            be_busy(parent);
        if (processes[i] < 0) /* those before end with this one */
            fail("not enough memory for %zu processes", busy);
    }
    w->beside = measure_speed(w, seconds);
    for (size_t i = 0; i < busy; i++)
        kill(processes[i], SIGKILL);
    for (size_t i = 0; i < busy; i++)
        waitpid(processes[i], NULL, 0);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
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
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct worker),
            .plot = {.x = "threads",
                     .x_label = "threads",
                     .series = "work",
                     .panels = {{"alone_tokens_per_s", "tokens per second alone", 1.0},
                                {"beside_tokens_per_s", "beside busy processes", 1.0}}},
            .open_one = true,
            .list = list,
            .open = open_one,
            .measure = measure,
            .close = close_one,
            .report = report,
        },
};
