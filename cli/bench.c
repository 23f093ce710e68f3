/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

#include "bench_output.h"
#include "progress_line.h"
#include "stopwatch.h"

static const double peak_every = 1.0; /* seconds between measurements of the peak */

/* ---- Cases -------------------------------------------------------------- */

void *bench_cases(struct bench_run *run, size_t count)
{
    run->cases = calloc(count, run->bench->case_size);
    run->count = run->cases ? count : 0;
    if (!run->cases)
        command_fail(run->command, "not enough memory for %zu cases", count);
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

static tarn_status open_case(struct bench_run *run, void *one, tarn_error *err)
{
    return run->bench->open ? run->bench->open(run, one, err) : TARN_OK;
}

static void close_case(struct bench_run *run, void *one)
{
    if (run->bench->close)
        run->bench->close(run, one);
}

/* ---- Turns -------------------------------------------------------------- */

/* The peak, again and again: the speed of a shared machine varies. */
static tarn_status measure_peak(struct bench_run *run, double *measured, tarn_error *err)
{
    const tarn_host *const host = &run->options->host;
    double gflops = 0.0;

    if (!run->bench->has_peak || stopwatch_seconds() - *measured < peak_every)
        return TARN_OK;
    const tarn_status status = tarn_measure_fma_f32(&gflops, host->cpu, host->threads, err);

    run->fma_gflops = fmax(run->fma_gflops, gflops);
    *measured = stopwatch_seconds();
    return status;
}

/* On a terminal a line that the results replace; in a log only results matter. */
static void show_progress(struct progress_line *line, const struct bench_run *run, size_t index,
                          size_t round)
{
    const double now = stopwatch_seconds();
    struct progress_parts parts = {0};

    if (!line->on_terminal || !progress_line_is_due(line, now))
        return;
    progress_part(&parts, 0, "case %zu of %zu", index + 1, run->count);
    progress_part(&parts, 1, "round %zu of %zu", round + 1, run->rounds);
    progress_line_show(line, &parts, now);
}

static tarn_status take_turn(struct bench_run *run, size_t index, size_t round, tarn_error *err)
{
    void *const one = bench_case_at(run, index);
    tarn_status status = TARN_OK;

    if (run->bench->open_in_turn)
        status = open_case(run, one, err);
    if (status == TARN_OK)
        status = run->bench->measure(run, one, round, err);
    if (run->bench->open_in_turn) {
        close_case(run, one);
        if (status == TARN_OK && round + 1 == run->rounds)
            run->bench->report(run, one);
    }
    return status;
}

static bool is_enough(const struct bench_run *run, size_t round, double seconds)
{
    return round >= run->rounds || (run->seconds_enough > 0.0 && round >= run->rounds_least &&
                                    seconds > run->seconds_enough);
}

/* Cases from `first` to before `end` in turns. */
static tarn_status take_turns(struct bench_run *run, size_t first, size_t end, tarn_error *err)
{
    const double begin = stopwatch_seconds();
    struct progress_line line = progress_line_of(begin);
    double measured = -peak_every;
    tarn_status status = TARN_OK;

    for (size_t round = 0;
         status == TARN_OK && !is_enough(run, round, stopwatch_seconds() - begin); round++) {
        status = measure_peak(run, &measured, err);
        for (size_t i = first; i < end && status == TARN_OK; i++) {
            show_progress(&line, run, i, round);
            status = take_turn(run, i, round, err);
            progress_line_erase(&line);
        }
    }
    return status == TARN_OK ? measure_peak(run, &measured, err) : status;
}

/* Those that take turns are open together, unless a case is too large for that. */
static tarn_status run_together(struct bench_run *run, size_t first, size_t end,
                                tarn_error *err)
{
    const bool opens = !run->bench->open_in_turn;
    tarn_status status = TARN_OK;
    size_t open = first;

    for (; opens && open < end && status == TARN_OK; open++)
        status = open_case(run, bench_case_at(run, open), err);
    if (status == TARN_OK)
        status = take_turns(run, first, end, err);
    for (size_t i = first; opens && i < end && status == TARN_OK; i++)
        run->bench->report(run, bench_case_at(run, i));
    for (size_t i = first; opens && i < open; i++)
        close_case(run, bench_case_at(run, i));
    return status;
}

/* ---- All of it ---------------------------------------------------------- */

static int measure_all(struct bench_run *run)
{
    const size_t step = run->together ? run->together : run->count;
    tarn_status status = TARN_OK;
    tarn_error err;

    for (size_t i = 0; i < run->count && status == TARN_OK; i += step)
        status = run_together(run, i, i + step, &err);
    if (status != TARN_OK)
        return command_error(run->command, &err);
    if (run->bench->conclude && !run->options->json)
        run->bench->conclude(run);
    return EXIT_DONE;
}

void bench_report(struct bench_run *run, const struct bench_record *record)
{
    bench_output_put(run->output, record);
}

int bench_run(const struct command *command, void *values)
{
    const struct bench *const bench = command->bench;
    struct bench_options *const options = values;
    struct bench_run run = {
        .command = command,
        .bench = bench,
        .values = values,
        .options = options,
        .rounds = options->repeat ? options->repeat : 1,
        .cpu = options->host.cpu ? options->host.cpu : tarn_cpu_name(0),
        .threads = options->host.threads ? options->host.threads : tarn_threads_default(),
    };
    struct bench_output output = {.run = &run};
    int code;

    run.output = &output;
    hardware_name(run.processor, sizeof run.processor);
    if ((code = bench_output_check(&output)) == ARGS_GO_ON &&
        (code = bench->list(&run)) == ARGS_GO_ON)
        code = bench_output_open(&output) ? measure_all(&run) : EXIT_FAILED;
    if (code == EXIT_DONE)
        code = bench_output_finish(&output);
    bench_output_free(&output);
    if (bench->free)
        bench->free(&run);
    free(run.cases);
    return code;
}
