/* SPDX-License-Identifier: MIT */
/* command.h - the commands as a tree of tables.
 *
 * The file of a command defines one row. --help, the manual, completion and docs/reference are
 * made from the rows, and so is the reading of arguments. */
#ifndef COMMAND_H
#define COMMAND_H

#include <stdio.h>

#include "args.h"

struct command {
    const char *name;     /* "tarn bench peak" */
    const char *summary;  /* one line, for lists of commands */
    const char *help;     /* what it does, a sentence or two */
    const char *examples; /* command lines, each ended by a newline */

    const struct command *const *rows; /* its commands, ended by NULL; NULL: it is none of a
                                          group, and the rest describes it */
    const struct args_option *options; /* ended by a NULL name */
    const struct args_table *tables;   /* ended by a NULL row; NULL: none */
    const char *notes;                 /* a paragraph below all that; NULL: none */
    const struct args_group *groups;   /* ended by a NULL title; NULL: one list of options.
                                          Options in no group come last */

    size_t values;             /* bytes of the struct that the options fill */
    int (*run)(void *values);  /* returns the exit code */
    const struct bench *bench; /* instead, of a benchmark: see bench.h */

    /* Instead, for a command whose table is made at run time: reads its own arguments, and
     * describes itself. */
    int (*run_words)(int argc, char **argv);
    const struct command *(*describe)(void);
};

extern const struct command program;
extern const struct command cmd_train, cmd_eval, cmd_generate, cmd_complete, cmd_transcribe,
    cmd_plot, cmd_inspect, cmd_import, cmd_export, cmd_data, cmd_bench, cmd_manual,
    cmd_completion, cmd_help, cmd_version;
extern const struct command bench_peak, bench_kernels, bench_attention, bench_train,
    bench_generate, bench_image, bench_speech, bench_threads;

/* Runs a command; argv[0] is its name. The exit code. */
int command_run(const struct command *command, int argc, char **argv);

/* The word that names it: "peak". */
const char *command_word(const struct command *command);

/* Calls `put` for a command and then for all below it, with their tables. */
typedef void command_put(FILE *out, const struct command *command);
void command_walk(FILE *out, const struct command *command, command_put *put);

/* The command with its table, where that is made at run time. */
const struct command *command_table(const struct command *command);

/* ---- Messages ----------------------------------------------------------- */

/* "tarn bench peak: ..." on standard error. The exit code: wrong usage, failure, or the one of
 * the library's error. */
int command_refuse(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int command_fail(const struct command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int command_error(const struct command *command, const tarn_error *err);

#endif
