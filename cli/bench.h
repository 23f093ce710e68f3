/* SPDX-License-Identifier: MIT */
/* bench.h - what all benchmarks share: cases that take turns in one process, beside the limits
 * of the machine, and a report as a table, JSON, CSV and a plot.
 *
 * A benchmark is one file of cases: it lists them, runs one for a while when asked, and writes
 * down what came out. */
#ifndef BENCH_H
#define BENCH_H

#include "bench_plot.h"
#include "bench_record.h"
#include "command.h"
#include "hardware.h"

/* The first member of a benchmark's values. */
struct bench_options {
    tarn_host host;
    size_t repeat;
    bool json;
    const char *csv, *plot;
};

/* Rows for these. `object`: what one JSON object is printed for. */
#define BENCH_AT(type, field) offsetof(type, common.field)
#define BENCH_REPEAT(type, initial, least, most, help)                                         \
    {                                                                                          \
        "repeat", "N", ARGS_COUNT, initial, BENCH_AT(type, repeat), least, most, help          \
    }
#define BENCH_THREADS(type, help)                                                              \
    {                                                                                          \
        "threads", "N", ARGS_HOST, "0", BENCH_AT(type, host), 0, 1024, help                    \
    }
#define BENCH_JSON(type, object)                                                               \
    {                                                                                          \
        "json", NULL, ARGS_FLAG, NULL, BENCH_AT(type, json), 0, 0,                             \
            "print one JSON object per " object                                                \
    }
#define BENCH_CSV(type)                                                                        \
    {                                                                                          \
        "csv", "FILE", ARGS_TEXT, NULL, BENCH_AT(type, csv), 0, 0, "write the table as CSV"    \
    }
#define BENCH_PLOT(type)                                                                       \
    {                                                                                          \
        "plot", "FILE", ARGS_TEXT, NULL, BENCH_AT(type, plot), 0, 0,                           \
            "draw the results with gnuplot as .svg or .png, and write them to --csv, or to a " \
            ".csv file of the same name"                                                       \
    }

struct bench_run {
    const struct command *command;
    const struct bench *bench;
    void *values;                  /* of the command's options */
    struct bench_options *options; /* their first member */
    void *cases;
    size_t count; /* of cases */
    void *shared; /* the benchmark's own, for all cases */

    /* Set by list(): how often cases take turns, [options->repeat]; fewer turns, but at least
     * `rounds_least`, are enough after some seconds, if these are set. */
    size_t rounds, rounds_least;
    double seconds_enough;
    bool quiet;      /* set by list(): the benchmark prints its own table */
    size_t together; /* consecutive cases that take turns and are open at a time; 0: all */

    char title[256]; /* set by list(): what is measured, a sentence without its full stop */
    char processor[128];
    const char *cpu;   /* instruction set */
    size_t threads;    /* options->host.threads, or all */
    double fma_gflops; /* the peak, the best of measurements between rounds */

    struct bench_output *output;
};

struct bench {
    size_t case_size;
    const char *note; /* a line below the title; NULL: none */
    struct bench_plot plot;
    bool has_peak; /* the multiply-add peak is measured */
    bool
        open_in_turn; /* a case is open only during its turn: all together would be too large */

    /* Makes run->cases by bench_cases(). Returns ARGS_GO_ON, or the exit code after a message.
     */
    int (*list)(struct bench_run *run);

    /* Those that are not needed may be NULL. */
    tarn_status (*open)(struct bench_run *run, void *one, tarn_error *err);
    tarn_status (*measure)(struct bench_run *run, void *one, size_t round, tarn_error *err);
    void (*close)(struct bench_run *run, void *one); /* also if open() failed */

    /* Writes the results down and hands them to bench_report(), when a case and all that it
     * takes turns with have been measured. */
    void (*report)(struct bench_run *run, const void *one);

    void (*conclude)(const struct bench_run *run); /* prints what is below the table */
    void (*free)(struct bench_run *run);
};

/* The whole benchmark; the exit code. */
int bench_run(const struct command *command, void *values);

/* Memory for the cases, zeroed; NULL after a message. */
void *bench_cases(struct bench_run *run, size_t count);
void *bench_case_at(const struct bench_run *run, size_t index);
size_t bench_case_index(const struct bench_run *run, const void *one);

void bench_report(struct bench_run *run, const struct bench_record *record);

#endif
