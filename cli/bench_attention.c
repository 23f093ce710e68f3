/* SPDX-License-Identifier: MIT */
/* bench_attention.c - time and memory of every attention at growing lengths: Figure 1.
 *
 * Each length runs all methods before the next, so that what slows the machine for a while
 * slows all of them; with --rounds, all of it once more, and the best of each row counts. The
 * machine's limits are measured first, in the same process. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench_memory.h"
#include "bench_methods.h"
#include "bench_options.h"
#include "bench_plot.h"
#include "bench_report.h"
#include "command.h"
#include "hardware.h"
#include "plot.h"
#include "progress_line.h"

/* What a method needed at the length before: a guess at the next. */
struct history {
    double seconds, work;
};

/* Results so far, and where they go. */
struct bench {
    const struct bench_options *options;
    struct bench_machine machine;
    struct history history[METHODS_MAX];
    struct bench_row *rows;             /* one per length and method */
    size_t count;                       /* of those reported */
    FILE *csv;                          /* NULL: none */
    char temporary[PATH_MAX_CHARS + 8]; /* that becomes the CSV; "": it is written itself */
};

/* ---- one row ------------------------------------------------------------ */

static struct bench_row make_row(const struct bench *bench, size_t length, size_t method)
{
    const struct bench_options *const o = bench->options;
    const struct bench_method *const m = &o->methods[method];

    return (struct bench_row){
        .label = m->label,
        .desc = {.kind = m->spec,
                 .feature_map = m->has_map ? o->feature_map : NULL,
                 .causal = o->causal,
                 .batch = bench_options_batch(o, length),
                 .heads = o->heads,
                 .queries = length,
                 .keys = length,
                 .query_width = o->head_width,
                 .value_width = o->value_width,
                 .seed = o->seed,
                 .host = {.threads = o->threads, .cpu = o->cpu}},
        .forward_only = o->forward_only,
        .heads_first = o->heads_first,
        .repeat = o->repeat,
        .forward_s = (double)NAN,
        .backward_s = (double)NAN,
    };
}

/* Flops where they are known, else tokens: a hash table's work grows little faster. */
static double work_of(const struct bench_row *row)
{
    return row->flops > 0.0 ? row->flops : (double)row->desc.batch * (double)row->desc.queries;
}

/* Sets `skipped` where the row would ask too much of the machine or of the user's patience. At
 * the first length there is no guess: 0 / 0, which is not above the limit. */
static tarn_status decide(const struct bench *bench, struct bench_row *row,
                          const struct history *before, tarn_error *err)
{
    row->array_bytes = bench_row_array_bytes(row);
    if (row->array_bytes > bench->options->memory_limit) {
        row->skipped = "over --memory-limit";
        return TARN_OK;
    }
    const tarn_status status = bench_row_measure_sizes(row, err);

    if (bench_row_peak_bytes(row) > bench->options->memory_limit)
        row->skipped = "over --memory-limit";
    else if (before->seconds * work_of(row) / before->work > bench->options->time_limit)
        row->skipped = "over --time-limit";
    return status;
}

/* On a terminal a line that the result replaces; in a log, where only results matter, none. */
static void show_progress(struct progress_line *line, const struct bench_row *row)
{
    struct progress_parts parts = {0};

    if (!line->on_terminal)
        return;
    progress_part(&parts, 0, "%s at length %zu ...", row->label, row->desc.queries);
    progress_line_show(line, &parts, 0.0);
}

static void report(struct bench *bench, const struct bench_row *row)
{
    const struct bench_options *const o = bench->options;

    if (o->json)
        report_json_row(&bench->machine, row);
    else if (!o->demo)
        report_table_row(&bench->machine, row, o->label_width);
    else if (bench->count % DEMO_METHODS == 0)
        demo_row(row - (DEMO_METHODS - 1));
    if (bench->csv)
        report_csv_row(bench->csv, &bench->machine, row);
}

/* Row i, which is made in the first round and reported after the last. */
static tarn_status measure(struct bench *bench, size_t i, size_t round, tarn_error *err)
{
    const struct bench_options *const o = bench->options;
    const size_t method = i % o->method_count;
    struct history *const history = &bench->history[method];
    struct bench_row *const row = &bench->rows[i];
    struct progress_line line = progress_line_of(0.0);
    tarn_status status = TARN_OK;

    if (round == 0) {
        *row = make_row(bench, o->lengths[i / o->method_count], method);
        status = decide(bench, row, history, err);
    }
    if (status == TARN_OK && !row->skipped) {
        show_progress(&line, row);
        status = bench_row_run(row, err);
        progress_line_erase(&line);
        *history = (struct history){bench_row_seconds(row), work_of(row)};
    }
    if (status == TARN_OK && round + 1 == o->rounds) {
        bench->count++;
        report(bench, row);
    }
    return status;
}

/* ---- all rows ----------------------------------------------------------- */

static tarn_status measure_machine(struct bench_machine *machine, const struct bench_options *o,
                                   tarn_error *err)
{
    const size_t bytes = (size_t)256 << 20;
    float *const memory = bench_block_new(bytes);
    tarn_status status;

    hardware_name(machine->processor, sizeof machine->processor);
    machine->cpu = o->cpu ? o->cpu : tarn_cpu_name(0);
    machine->threads = o->threads;
    machine->read_gbps = (double)NAN;
    status = tarn_measure_fma_f32(&machine->fma_gflops, o->cpu, o->threads, err);
    if (status == TARN_OK && memory)
        status = tarn_measure_read(&machine->read_gbps, memory, bytes, o->cpu, o->threads, err);
    free(memory);
    return status;
}

static void print_head(const struct bench *bench)
{
    const struct bench_row row = make_row(bench, bench->options->lengths[0], 0);

    if (bench->csv)
        report_csv_head(bench->csv);
    if (bench->options->json)
        return;
    if (bench->options->demo)
        demo_head(&bench->machine, &row);
    else
        report_table_head(&bench->machine, &row, bench->options->label_width);
}

static tarn_status measure_all(struct bench *bench, tarn_error *err)
{
    const struct bench_options *const o = bench->options;
    tarn_status status = measure_machine(&bench->machine, o, err);

    if (status == TARN_OK)
        print_head(bench);
    for (size_t round = 0; round < o->rounds; round++)
        for (size_t i = 0; status == TARN_OK && i < o->length_count * o->method_count; i++)
            status = measure(bench, i, round, err);
    return status;
}

/* Names, options and widths that the library refuses, before anything takes time. */
static bool check_methods(const struct bench *bench)
{
    const struct bench_options *const o = bench->options;
    bool has_map = false;
    tarn_error err;

    for (size_t i = 0; i < o->method_count; i++) {
        struct bench_row row = make_row(bench, 1, i);

        row.desc.batch = 1;
        if (bench_row_measure_sizes(&row, &err) != TARN_OK) {
            fprintf(stderr, "%s: method '%s': %s\n", bench_attention.name, row.label, err.text);
            return false;
        }
        has_map = has_map || o->methods[i].has_map;
    }
    if (o->feature_map && !has_map)
        fprintf(stderr, "%s: --feature-map: none of the methods in --attention uses one\n",
                bench_attention.name);
    return has_map || !o->feature_map;
}

/* ---- files and the command ---------------------------------------------- */

/* Rows go beside the CSV until all are there: those of an earlier run stay until then. A device
 * is written itself. */
static FILE *open_csv(struct bench *bench)
{
    const char *const path = bench->options->csv;
    struct stat about;

    if (stat(path, &about) == 0 && !S_ISREG(about.st_mode))
        return fopen(path, "w");
    snprintf(bench->temporary, sizeof bench->temporary, "%s.tmp", path);
    return fopen(bench->temporary, "w");
}

/* Opens the CSV and tries the picture, so that a wrong folder is known before hours of work. */
static bool open_files(struct bench *bench)
{
    const struct bench_options *const o = bench->options;
    const char *wrong = NULL;

    if (o->csv && !(bench->csv = open_csv(bench)))
        wrong = o->csv;
    else if (o->plot && !plot_is_writable(o->plot))
        wrong = o->plot;
    if (wrong)
        fprintf(stderr, "%s: %s: %s\n", bench_attention.name, wrong, strerror(errno));
    return !wrong;
}

/* With all rows, or as if there had been none. */
static bool close_csv(struct bench *bench, bool whole)
{
    const char *const temporary = bench->temporary;

    if (!bench->csv)
        return true;
    const bool written = !ferror(bench->csv);
    bool good = fclose(bench->csv) == 0 && written;

    bench->csv = NULL;
    if (whole && good && *temporary)
        good = rename(temporary, bench->options->csv) == 0;
    if (!good)
        fprintf(stderr, "%s: cannot write %s\n", bench_attention.name, bench->options->csv);
    if (*temporary && !(whole && good))
        remove(temporary);
    return good;
}

static size_t count_runs(const struct bench *bench)
{
    size_t runs = 0;

    for (size_t i = 0; i < bench->count; i++)
        runs += !bench->rows[i].skipped;
    return runs;
}

/* The files, and whether the whole can be called done. */
static bool finish(struct bench *bench)
{
    const struct bench_options *const o = bench->options;

    if (count_runs(bench) == 0) {
        fprintf(stderr, "%s: everything was skipped; raise the limits or reduce the length\n",
                bench_attention.name);
        return false;
    }
    return close_csv(bench, true) &&
           (!o->plot || plot_write(o->plot, &bench->machine, bench->rows, bench->count));
}

static int measure_and_report(const struct bench_options *options)
{
    struct bench bench = {.options = options};
    tarn_error err;
    int code = EXIT_FAILED;

    if (!check_methods(&bench))
        return EXIT_USAGE;
    bench.rows = calloc(options->length_count * options->method_count, sizeof *bench.rows);
    if (!bench.rows) {
        perror(bench_attention.name);
        return EXIT_FAILED;
    }
    if (open_files(&bench)) {
        if (measure_all(&bench, &err) != TARN_OK)
            bench_options_refused(&err);
        else if (finish(&bench))
            code = EXIT_DONE;
    }
    close_csv(&bench, false); /* unless it is there */
    free(bench.rows);
    return code;
}

static int run(void *given)
{
    const int code = bench_options_read(given);

    return code == ARGS_GO_ON ? measure_and_report(given) : code;
}

const struct command bench_attention = {
    .name = "tarn bench attention",
    .summary = "time and memory of attention against sequence length: Figure 1",
    .help =
        "Measure the forward and backward pass of attention against the sequence length: time, "
        "peak memory, and speed as a fraction of the machine's peak. The defaults are those of "
        "Figure 1 of the paper.",
    .options = bench_option_rows,
    .tables = bench_option_tables,
    .notes = CPU_NOTE,
    .groups = bench_option_groups,
    .examples = "tarn bench attention --demo\n"
                "tarn bench attention --attention 'linear;softmax' --length 4096 --causal\n"
                "tarn bench attention --plot fig1.svg\n",
    .values = sizeof(struct bench_options),
    .run = run,
};
