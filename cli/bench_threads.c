/* SPDX-License-Identifier: MIT */
/* bench_threads.c - what is left of the speed when other processes want the cores: training and
 * generation, on one thread and on all, alone and beside processes that never sleep. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_memory.h"
#include "bench_model.h"
#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "model_open.h"
#include "stopwatch.h"
#include "tarn/tarn.h"

enum { BUSY_MOST = 256 };

struct values {
    size_t threads, busy;
    double seconds;
    bool json;
};

static const struct args_option options[] = {
    {"threads", "N", ARGS_COUNT, "0", offsetof(struct values, threads), 0, 1024,
     "threads to compare with one; 0: all"},
    {"busy", "N", ARGS_COUNT, "0", offsetof(struct values, busy), 0, BUSY_MOST,
     "busy processes to start; 0: as many as tarn uses threads by default"},
    {"seconds", "S", ARGS_SECONDS, "2", offsetof(struct values, seconds), 0, 0,
     "time of each measurement"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "one object per row instead of a table"},
    {0},
};

/* ---- Work --------------------------------------------------------------- */

static const struct subject {
    const char *name, *preset;
    bool trains;
    size_t batch, length;
} subjects[] = {
    {"train", "tiny", true, 16, 32},
    {"generate", "mnist-paper", false, 1, 784},
    {"generate", "mnist-paper", false, 64, 784},
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct work {
    const struct subject *is;
    tarn_model *model;
    tarn_trainer *trainer;     /* or */
    tarn_generator *generator; /* with its state */
    void *state;
    int32_t *symbols;
};

static tarn_status make_trainer(struct work *w, const char *cpu, size_t threads,
                                tarn_error *err)
{
    const tarn_trainer_desc desc = {.batch = w->is->batch,
                                    .length = w->is->length,
                                    .optimizer = "radam",
                                    .precision = "f32",
                                    .lr = 1e-4,
                                    .host = {.threads = threads, .cpu = cpu}};

    return tarn_trainer_create(&w->trainer, w->model, &desc, err);
}

static tarn_status make_generator(struct work *w, const char *cpu, size_t threads,
                                  tarn_error *err)
{
    const tarn_generator_desc desc = {.batch = w->is->batch,
                                      .longest = w->is->length,
                                      .precision = "f32",
                                      .host = {.threads = threads, .cpu = cpu}};
    const tarn_status status = tarn_generator_create(&w->generator, w->model, &desc, err);

    if (status != TARN_OK)
        return status;
    w->state = bench_block_new(tarn_generator_state_size(w->generator));
    return w->state ? TARN_OK : bench_no_memory(err, "a state");
}

static tarn_status work_create(struct work *w, const char *cpu, size_t threads, tarn_error *err)
{
    const struct bench_model which = {.preset = w->is->preset, .attention = "linear"};
    tarn_status status = bench_model_new(&w->model, &which, err);

    if (status == TARN_OK)
        status = (w->is->trains ? make_trainer : make_generator)(w, cpu, threads, err);
    if (status != TARN_OK)
        return status;
    w->symbols = calloc(w->is->batch * w->is->length, sizeof *w->symbols);
    return w->symbols ? TARN_OK : bench_no_memory(err, "the symbols");
}

static void work_free(struct work *w)
{
    free(w->symbols);
    free(w->state);
    tarn_generator_free(w->generator);
    tarn_trainer_free(w->trainer);
    tarn_model_free(w->model);
}

/* One update, or one step of every sequence. Returns how many tokens that is. */
static size_t work_once(struct work *w, size_t at, tarn_status *status, tarn_error *err)
{
    const tarn_batch batch = {.inputs = w->symbols, .targets = w->symbols};
    const float *outputs;
    tarn_report report;

    if (w->is->trains) {
        *status = tarn_trainer_update(w->trainer, &report, &batch, 1, err);
        return w->is->batch * w->is->length;
    }
    if (at % w->is->length == 0)
        memset(w->state, 0, tarn_generator_state_size(w->generator));
    *status = tarn_generator_step(w->generator, w->state, &outputs, w->symbols, err);
    return w->is->batch;
}

/* The mean over all that time: the best stretch would be one without the others. */
static tarn_status measure(struct work *w, double seconds, double *tokens_per_s,
                           tarn_error *err)
{
    tarn_status status = TARN_OK;
    const double start = stopwatch_seconds();
    double passed = 0.0;
    size_t tokens = 0;

    for (size_t i = 0; passed < seconds && status == TARN_OK; i++) {
        tokens += work_once(w, i, &status, err);
        passed = stopwatch_seconds() - start;
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

/* ---- Rows --------------------------------------------------------------- */

struct row {
    const struct subject *is;
    size_t threads;
    double alone, beside; /* tokens/s */
};

static tarn_status measure_beside(struct work *w, const struct values *v, double *tokens_per_s,
                                  tarn_error *err)
{
    struct crowd crowd;
    double warm_up;

    if (!crowd_start(&crowd, v->busy))
        return bench_no_memory(err, "%zu processes", v->busy);
    tarn_status status = measure(w, v->seconds / 4.0, &warm_up, err);

    if (status == TARN_OK)
        status = measure(w, v->seconds, tokens_per_s, err);
    crowd_stop(&crowd);
    return status;
}

static tarn_status measure_row(struct row *row, const struct values *v, const char *cpu,
                               tarn_error *err)
{
    struct work w = {.is = row->is};
    tarn_status status = work_create(&w, cpu, row->threads, err);
    double warm_up;

    if (status == TARN_OK)
        status = measure(&w, v->seconds / 4.0, &warm_up, err);
    if (status == TARN_OK)
        status = measure(&w, v->seconds, &row->alone, err);
    if (status == TARN_OK)
        status = measure_beside(&w, v, &row->beside, err);
    work_free(&w);
    return status;
}

static void print_head(const struct values *v)
{
    char processor[128];

    hardware_name(processor, sizeof processor);
    printf("%s; tokens/s alone and beside %zu busy processes\n", processor, v->busy);
    printf("  %-8s %-11s %5s %7s %11s %11s %6s %13s\n", "work", "preset", "batch", "threads",
           "alone", "beside", "ratio", "of one thread");
}

static void print_row(const struct values *v, const struct row *row, const struct row *one)
{
    if (!v->json) {
        printf("  %-8s %-11s %5zu %7zu %11.0f %11.0f %6.2f %13.2f\n", row->is->name,
               row->is->preset, row->is->batch, row->threads, row->alone, row->beside,
               row->beside / row->alone, row->beside / one->beside);
        fflush(stdout);
        return;
    }
    json_t *const object = json_object();

    json_put_text(object, "work", row->is->name);
    json_put_text(object, "preset", row->is->preset);
    json_put_count(object, "batch", row->is->batch);
    json_put_count(object, "threads", row->threads);
    json_put_count(object, "busy", v->busy);
    json_put_number(object, "alone_tokens_per_s", row->alone);
    json_put_number(object, "beside_tokens_per_s", row->beside);
    json_put_number(object, "ratio", row->beside / row->alone);
    json_put_number(object, "of_one_thread", row->beside / one->beside);
    json_print_line(object);
}

static tarn_status measure_and_report(const struct values *v, const char *cpu, tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (!v->json)
        print_head(v);
    for (size_t s = 0; s < SUBJECTS && status == TARN_OK; s++) {
        struct row one = {&subjects[s], 1, 0.0, 0.0},
                   many = {&subjects[s], v->threads, 0.0, 0.0};

        status = measure_row(&one, v, cpu, err);
        if (status == TARN_OK)
            print_row(v, &one, &one);
        if (status == TARN_OK && v->threads > 1)
            status = measure_row(&many, v, cpu, err);
        if (status == TARN_OK && v->threads > 1)
            print_row(v, &many, &one);
    }
    return status;
}

static int run(void *given)
{
    struct values *const values = given;
    const char *cpu;
    tarn_error err;

    if (!hardware_cpu(&cpu))
        return EXIT_USAGE;
    if (values->threads == 0)
        values->threads = tarn_threads_default();
    if (values->busy == 0)
        values->busy = tarn_threads_default() < BUSY_MOST ? tarn_threads_default() : BUSY_MOST;
    return measure_and_report(values, cpu, &err) == TARN_OK
               ? EXIT_DONE
               : command_error(&bench_threads, &err);
}

const struct command bench_threads = {
    .name = "tarn bench threads",
    .summary = "speed alone and beside busy processes",
    .help = "Speed of training and generation alone and beside busy processes, on one thread "
            "and on all. With as many busy processes as cores, a fair share is 0.5.",
    .options = options,
    .examples = "tarn bench threads\n"
                "tarn bench threads --busy 12 --seconds 5\n",
    .values = sizeof(struct values),
    .run = run,
};
