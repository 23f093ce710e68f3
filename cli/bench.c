/* SPDX-License-Identifier: MIT */
/* bench.c - tarn bench: the table of benchmarks, how one runs, and where its results go. */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "output.h"
#include "plot.h"
#include "progress.h"
#include "ranks.h"

const struct command cmd_bench = {
    .name = "tarn bench",
    .summary = "measure the speed and memory of attention and models",
    .help = "Measure speed and memory, each compared with the limits of this machine. Figures "
            "and tables are those of the paper.",
    .rows = (const struct command *const[]){&bench_peak, &bench_kernels, &bench_attention,
                                            &bench_train, &bench_generate, &bench_prefill,
                                            &bench_image, &bench_speech, &bench_threads,
                                            &bench_serve, &bench_scale, NULL},
    .examples = "tarn bench peak\n"
                "tarn bench attention --demo\n"
                "tarn bench image --preset mnist-paper --method linear,softmax\n",
};

static const double peak_every = 1.0; /* seconds between measurements of the peak */

/* ---- Cases -------------------------------------------------------------- */

void bench_title(struct bench_run *run, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(run->title, sizeof run->title, format, args);
    va_end(args);
}

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

/* ---- Rounds ------------------------------------------------------------- */

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
static void show_progress(const struct bench_run *run, size_t index)
{
    if (!progress_is_due() || !progress_on_terminal())
        return;
    progress_part(0, "case %zu of %zu", index + 1, run->count);
    progress_part(1, "round %zu of %zu", run->round + 1, run->rounds);
    progress_show();
}

static void measure_case(struct bench_run *run, size_t index)
{
    void *const one = bench_case_at(run, index);
    const bool opens = run->bench->open_one;

    show_progress(run, index);
    if (opens)
        open_case(run, index);
    run->bench->measure(run, one);
    if (opens)
        close_case(run, index);
    progress_erase();
    if (opens && run->round + 1 == run->rounds)
        run->bench->report(run, one);
}

static bool is_enough(const struct bench_run *run)
{
    return run->round >= run->rounds ||
           (run->seconds_enough > 0.0 && run->round >= run->rounds_least &&
            progress_seconds() > run->seconds_enough);
}

/* Cases from `first` to before `end`, all in every round. */
static void measure_rounds(struct bench_run *run, size_t first, size_t end)
{
    double measured = -peak_every;

    progress_begin();
    for (run->round = 0; !is_enough(run); run->round++) {
        measure_peak(run, &measured);
        for (size_t i = first; i < end; i++)
            measure_case(run, i);
    }
    measure_peak(run, &measured);
}

/* Those that alternate are open together, unless a case is too large for that. */
static void run_together(struct bench_run *run, size_t first, size_t end)
{
    const bool opens = !run->bench->open_one;

    for (size_t i = first; opens && i < end; i++)
        open_case(run, i);
    measure_rounds(run, first, end);
    for (size_t i = first; opens && i < end; i++)
        run->bench->report(run, bench_case_at(run, i));
    for (size_t i = first; opens && i < end; i++)
        close_case(run, i);
}

/* ---- Results ------------------------------------------------------------ */

enum { PATH = TARN_PATH_SIZE };

/* Standard output gets results as they come; a CSV and a plot when all are there. */
static struct {
    struct bench_record *records;
    size_t count, room, results; /* results: records that were not skipped */
    FILE *csv;                   /* NULL: none */
    char path[PATH];             /* of the CSV */
} output;

/* The numbers of "fig1.svg" go to "fig1.csv". */
static void open_output(const struct bench_run *run)
{
    const char *const csv = run->options->csv, *const plot = run->options->plot;

    if (csv && (!*csv || strlen(csv) >= PATH))
        refuse("--csv is '%.80s'; it must be a file name", csv);
    if (plot && (!plot_name_is_fit(plot) || strlen(plot) >= PATH))
        refuse("--plot is '%.80s'; it must be a file name that ends in .svg or .png", plot);
    if (csv)
        snprintf(output.path, PATH, "%s", csv);
    else if (plot)
        snprintf(output.path, PATH, "%.*s.csv", (int)strlen(plot) - 4, plot);
    if (plot)
        check_writable("--plot", plot);
    if (*output.path)
        output.csv = output_begin(output.path);
}

static void print_head(const struct bench_run *run)
{
    printf("%s, instruction set %s", run->processor, run->cpu);
    if (run->bench->has_peak)
        printf(", %zu thread%s, peak %.1f GFLOP/s", run->threads, plural(run->threads),
               run->fma_gflops);
    printf("\n%s.\n%s%s\n", run->title, run->bench->note ? run->bench->note : "",
           run->bench->note ? "\n" : "");
}

/* For the plot. */
static void keep(const struct bench_record *record)
{
    if (output.count == output.room) {
        output.room = 2 * output.room + 64;
        output.records = realloc(output.records, output.room * sizeof *record);
        if (!output.records)
            fail("not enough memory for the results");
    }
    output.records[output.count++] = *record;
    output.results += !record->skipped;
}

void bench_report(const struct bench_run *run, const struct bench_record *record)
{
    const bool is_first = output.count == 0, json = run->options->json;
    const bool prints = json || !run->quiet;

    keep(record);
    if (is_first && prints && !json) {
        print_head(run);
        bench_table_head(record);
    }
    if (is_first && output.csv)
        bench_csv(output.csv, record, true);
    if (output.csv)
        bench_csv(output.csv, record, false);
    if (prints)
        (json ? bench_json : bench_table_row)(record);
}

static void finish_output(const struct bench_run *run)
{
    const char *const plot = run->options->plot;

    if (output.results == 0)
        fail("everything was skipped; raise the limits or reduce the length");
    if (output.csv)
        output_end(output.csv);
    if (plot)
        bench_plot_write(plot, run, output.records, output.count);
    free(output.records);
}

/* ---- All of it ---------------------------------------------------------- */

/* One process of several reports. */
static void mute(struct bench_options *options)
{
    options->csv = options->plot = NULL;
    if (!freopen("/dev/null", "w", stdout))
        fail("/dev/null: %s", strerror(errno));
}

/* Static: what cases have is in use to the end of the program. */
void bench_run(const struct command *command, void *values)
{
    static struct bench_run run;
    struct bench_options *const options = values;

    if (!ranks_prints())
        mute(options);
    run.bench = command->bench;
    run.values = values;
    run.options = options;
    run.rounds = options->repeat ? options->repeat : 1;
    run.cpu = options->host.cpu ? options->host.cpu : tarn_cpu_name(0);
    run.threads = options->host.threads ? options->host.threads : tarn_threads_default();
    hardware_name(run.processor, sizeof run.processor);
    open_output(&run);
    run.bench->list(&run);
    const size_t step = run.together ? run.together : run.count;

    for (size_t i = 0; i < run.count; i += step)
        run_together(&run, i, i + step);
    if (run.bench->conclude && !options->json)
        run.bench->conclude(&run);
    finish_output(&run);
}
