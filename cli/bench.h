/* SPDX-License-Identifier: MIT */
/* bench.h - what all benchmarks share: cases that alternate in one process, beside the limits
 * of the machine, and a report as a table, JSON, CSV and a plot.
 *
 * A benchmark is one file of cases: it lists them, runs one for a while when asked, and writes
 * down what came out. */
#ifndef BENCH_H
#define BENCH_H

#include <stdio.h>

#include "command.h"
#include "hardware.h"

/* ---- Options ------------------------------------------------------------ */

/* The first member of a benchmark's values. */
struct bench_options {
    tarn_host host;
    size_t repeat;
    bool json;
    const char *csv, *plot;
};

/* Rows for these. `object`: what one JSON object is printed for. */
#define BENCH_AT(field) offsetof(struct bench_options, field)
#define BENCH_REPEAT(initial, least, most, help)                                               \
    ARGS_ROW("repeat", "N", ARGS_COUNT, initial, BENCH_AT(repeat), least, most, help)
#define BENCH_THREADS(help)                                                                    \
    ARGS_ROW("threads", "N", ARGS_HOST, "0", BENCH_AT(host), 0, 1024, help)
#define BENCH_JSON(object)                                                                     \
    ARGS_ROW("json", NULL, ARGS_FLAG, NULL, BENCH_AT(json), 0, 0,                              \
             "print one JSON object per " object)
#define BENCH_FILES                                                                            \
    ARGS_ROW("csv", "FILE", ARGS_TEXT, NULL, BENCH_AT(csv), 0, 0, "write the table as CSV"),   \
        ARGS_ROW(                                                                              \
            "plot", "FILE", ARGS_TEXT, NULL, BENCH_AT(plot), 0, 0,                             \
            "draw the results with gnuplot as .svg or .png, and write them to --csv, or to a " \
            ".csv file of the same name")

/* ---- Runs --------------------------------------------------------------- */

struct bench_run {
    const struct bench *bench;
    void *values;                  /* of the command's options */
    struct bench_options *options; /* their first member */
    void *cases;
    size_t count; /* of cases */
    size_t round; /* of measurements, from 0 */
    void *shared; /* the benchmark's own, for all cases */

    /* Set by list(): how many rounds, [options->repeat]; fewer, but at least
     * `rounds_least`, are enough after some seconds, if these are set. */
    size_t rounds, rounds_least;
    double seconds_enough;
    bool quiet;      /* set by list(): the benchmark prints its own table */
    size_t together; /* consecutive cases that alternate and are open together; 0: all */

    char title[256]; /* set by list(), see bench_title() */
    char processor[128];
    const char *cpu;   /* instruction set */
    size_t threads;    /* options->host.threads, or all */
    double fma_gflops; /* the peak, the best of measurements between rounds */
};

/* Results against a number, one line per method, as in Figure 1 of the paper. */
enum { BENCH_PANELS = 2 };

struct bench_plot {
    const char *x, *x_label; /* key of a number */
    const char *series;      /* key of a text: one line for each */
    struct {
        const char *key, *label;
        double scale;       /* of the axis: label units per unit of the cell */
    } panels[BENCH_PANELS]; /* side by side; a NULL key ends them */
};

struct bench {
    size_t case_size;
    const char *note; /* a line below the title; NULL: none */
    struct bench_plot plot;
    bool has_peak; /* the multiply-add peak is measured */
    bool open_one; /* a case is open only while it is measured: all would be too large */

    void (*list)(struct bench_run *run); /* makes run->cases by bench_cases() */

    /* Those that are not needed may be NULL. */
    void (*open)(struct bench_run *run, void *one);
    void (*measure)(struct bench_run *run, void *one);
    void (*close)(void *one); /* not at the end of the program, which frees all */

    /* Writes the results down and hands them to bench_report(), when a case and all that it
     * alternates with have been measured. */
    void (*report)(const struct bench_run *run, const void *one);

    void (*conclude)(const struct bench_run *run); /* prints what is below the table */
};

/* The whole benchmark. */
void bench_run(const struct command *command, void *values);

/* Says what is measured: a sentence without its full stop. */
void bench_title(struct bench_run *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Memory for the cases, zeroed. */
void *bench_cases(struct bench_run *run, size_t count);
void *bench_case_at(const struct bench_run *run, size_t index);
size_t bench_case_index(const struct bench_run *run, const void *one);

/* ---- Results ------------------------------------------------------------ */

enum bench_kind { BENCH_TEXT, BENCH_COUNT, BENCH_NUMBER, BENCH_BYTES, BENCH_BOOL };

/* One row of results: written down once, printed as a row of a table, a JSON object or a line
 * of CSV. */
struct bench_cell {
    const char *key;   /* in JSON and CSV; NULL: not there */
    const char *title; /* in the table; NULL: not there */
    enum bench_kind kind;
    const char *text;
    double number;
};

enum { BENCH_CELLS = 40 };

struct bench_record {
    struct bench_cell cells[BENCH_CELLS];
    size_t count;
    const char *skipped; /* why there are no results; NULL: there are */
};

/* Appends a cell. Texts are not copied; NULL is null in JSON. Numbers that are not finite are
 * null in JSON, empty in CSV and "-" in the table. */
void bench_text(struct bench_record *record, const char *key, const char *title,
                const char *text);
void bench_count(struct bench_record *record, const char *key, const char *title, size_t count);
void bench_number(struct bench_record *record, const char *key, const char *title,
                  double number);
void bench_bytes(struct bench_record *record, const char *key, const char *title, double bytes);
void bench_bool(struct bench_record *record, const char *key, bool truth);

/* A number that the table shows in another unit, `scale` times as large. */
void bench_scaled(struct bench_record *record, const char *key, double number,
                  const char *title, double scale);

/* The last cell, "skipped". If there is a reason, the table shows it instead of results. */
void bench_skipped(struct bench_record *record, const char *reason);

/* NULL: there is no such cell. */
const struct bench_cell *bench_cell(const struct bench_record *record, const char *key);

void bench_table_head(const struct bench_record *record);
void bench_table_row(const struct bench_record *record);
void bench_json(const struct bench_record *record);
void bench_csv(FILE *csv, const struct bench_record *record, bool head);

/* A row of results: to standard output at once, to files when all are there. */
void bench_report(const struct bench_run *run, const struct bench_record *record);

/* The picture. Without gnuplot a warning: the numbers are in the CSV. Skipped records are left
 * out; one at least is not. */
void bench_plot_write(const char *path, const struct bench_run *run,
                      const struct bench_record *records, size_t count);

#endif
