/* SPDX-License-Identifier: MIT */
/* bench.c - tarn bench: the table of benchmarks, and how one runs. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

#include "progress.h"

const struct command cmd_bench = {
    .name = "tarn bench",
    .summary = "measure the speed and memory of attention and models",
    .help = "Measure speed and memory, each compared with the limits of this machine. Figures "
            "and tables are those of the paper.",
    .rows = (const struct command *const[]){&bench_peak, &bench_kernels, &bench_attention,
                                            &bench_train, &bench_generate, &bench_prefill,
                                            &bench_image, &bench_speech, &bench_threads, NULL},
    .examples = "tarn bench peak\n"
                "tarn bench attention --demo\n"
                "tarn bench image --preset mnist-paper --method linear,softmax\n",
};

static const double peak_every = 1.0; /* seconds between measurements of the peak */

/* ---- Cases -------------------------------------------------------------- */

void *bench_cases(struct bench_run *run, size_t count)
{
    run->cases = allocate(count, run->bench->case_size, "%zu cases", count);
    run->count = count;
    return run->cases;
}

void *bench_case_at(const struct bench_run *run, size_t index)
{
    return (char *)run->cases + index * run->bench->case_size;
}

size_t bench_case_index(const struct bench_run *run, const void *one)
{
    return (size_t)((const char *)one - (const char *)run->cases) / run->bench->case_size;
}

static void open_case(struct bench_run *run, size_t index)
{
    if (run->bench->open)
        run->bench->open(run, bench_case_at(run, index));
}

static void close_case(const struct bench_run *run, size_t index)
{
    if (run->bench->close)
        run->bench->close(bench_case_at(run, index));
}

/* ---- Turns -------------------------------------------------------------- */

/* The peak, again and again: the speed of a shared machine varies. */
static void measure_peak(struct bench_run *run, double *measured)
{
    const tarn_host *const host = &run->options->host;
    double gflops = 0.0;

    if (!run->bench->has_peak || seconds_now() - *measured < peak_every)
        return;
    must(tarn_measure_fma_f32(&gflops, host->cpu, host->threads, &failure));
    run->fma_gflops = fmax(run->fma_gflops, gflops);
    *measured = seconds_now();
}

/* On a terminal a line that the results replace; in a log only results matter. */
static void show_progress(const struct bench_run *run, size_t index, size_t round)
{
    if (!progress_is_due() || !progress_on_terminal())
        return;
    progress_part(0, "case %zu of %zu", index + 1, run->count);
    progress_part(1, "round %zu of %zu", round + 1, run->rounds);
    progress_show();
}

static void take_turn(struct bench_run *run, size_t index, size_t round)
{
    void *const one = bench_case_at(run, index);
    const bool opens = run->bench->open_in_turn;

    show_progress(run, index, round);
    if (opens)
        open_case(run, index);
    run->bench->measure(run, one, round);
    if (opens)
        close_case(run, index);
    progress_erase();
    if (opens && round + 1 == run->rounds)
        run->bench->report(run, one);
}

static bool is_enough(const struct bench_run *run, size_t round, double seconds)
{
    return round >= run->rounds || (run->seconds_enough > 0.0 && round >= run->rounds_least &&
                                    seconds > run->seconds_enough);
}

/* Cases from `first` to before `end` in turns. */
static void take_turns(struct bench_run *run, size_t first, size_t end)
{
    double measured = -peak_every;

    progress_begin();
    for (size_t round = 0; !is_enough(run, round, progress_seconds()); round++) {
        measure_peak(run, &measured);
        for (size_t i = first; i < end; i++)
            take_turn(run, i, round);
    }
    measure_peak(run, &measured);
}

/* Those that take turns are open together, unless a case is too large for that. */
static void run_together(struct bench_run *run, size_t first, size_t end)
{
    if (run->bench->open_in_turn) {
        take_turns(run, first, end);
        return;
    }
    for (size_t i = first; i < end; i++)
        open_case(run, i);
    take_turns(run, first, end);
    for (size_t i = first; i < end; i++)
        run->bench->report(run, bench_case_at(run, i));
    for (size_t i = first; i < end; i++)
        close_case(run, i);
}

/* ---- All of it ---------------------------------------------------------- */

void bench_run(const struct command *command, void *values)
{
    const struct bench *const bench = command->bench;
    struct bench_options *const options = values;
    struct bench_run run = {
        .bench = bench,
        .values = values,
        .options = options,
        .rounds = options->repeat ? options->repeat : 1,
        .cpu = options->host.cpu ? options->host.cpu : tarn_cpu_name(0),
        .threads = options->host.threads ? options->host.threads : tarn_threads_default(),
    };

    hardware_name(run.processor, sizeof run.processor);
    bench_output_open(&run);
    bench->list(&run);
    const size_t step = run.together ? run.together : run.count;

    for (size_t i = 0; i < run.count; i += step)
        run_together(&run, i, i + step);
    if (bench->conclude && !options->json)
        bench->conclude(&run);
    bench_output_finish(&run);
    if (bench->close_shared)
        bench->close_shared(run.shared);
    free(run.shared);
    free(run.cases);
}
