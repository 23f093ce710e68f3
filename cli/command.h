/* SPDX-License-Identifier: MIT */
/* command.h - the commands as a tree of tables, and how they end.
 *
 * The file of a command defines one row. --help, the manual, completion and docs/reference are
 * made from the rows, and so is the reading of arguments. */
#ifndef COMMAND_H
#define COMMAND_H

#include "args.h"
#include "words.h"

struct command {
    const char *name;     /* "tarn bench peak" */
    const char *summary;  /* one line, for lists of commands */
    const char *help;     /* what it does, a sentence or two */
    const char *examples; /* command lines, each ended by a newline */

    const struct command *const *rows; /* of a group: its commands, ended by NULL; the rest
                                          describes a command */
    const struct args_option *options; /* ended by a NULL name */
    const struct args_table *tables;   /* ended by a NULL row; NULL: none */
    const char *notes;                 /* a paragraph below all that; NULL: none */
    const struct args_group *groups;   /* ended by a NULL title; NULL: one list of options.
                                          Options in no group come last */

    size_t values;             /* bytes of the struct that the options fill */
    void (*run)(void *values); /* returns if it succeeds */
    const struct bench *bench; /* instead, of a benchmark: see bench.h */

    /* Instead, for a command whose table is made at run time: reads its own arguments, and
     * describes itself. */
    void (*run_words)(int argc, char **argv);
    const struct command *(*describe)(void);
};

extern const struct command program;
extern const struct command cmd_train, cmd_eval, cmd_generate, cmd_complete, cmd_transcribe,
    cmd_serve, cmd_plot, cmd_inspect, cmd_import, cmd_export, cmd_data, cmd_bench, cmd_manual,
    cmd_completion;
extern const struct command bench_peak, bench_kernels, bench_attention, bench_train,
    bench_generate, bench_prefill, bench_image, bench_speech, bench_threads, bench_serve,
    bench_scale;

/* Runs a command; argv[0] is its name. */
void command_run(const struct command *command, int argc, char **argv);

/* Messages are from this command, which must stay. */
void command_name(const struct command *command);

/* The word that names it: "peak". */
const char *command_word(const struct command *command);

/* The command with its table, where that is made at run time. */
const struct command *command_table(const struct command *command);

/* ---- The end ------------------------------------------------------------ */

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

/* Ends the program; it has failed if standard output could not be written. */
_Noreturn void leave(int code);

/* "tarn bench peak: ..." on standard error, by the name of the command that runs; refuse() and
 * fail() then end the program: wrong usage, failure. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Ends the program if a call of the library failed:
 *
 *     must(tarn_model_load(&model, path, NULL, &failure)); */
extern tarn_error failure;
void must(tarn_status status);

/* "unknown loop 'elu2'; did you mean 'elu1'?", or all names if none is near. */
_Noreturn void refuse_name(const char *what, const char *word, words_name *names);

/* Zeroed memory; "not enough memory for ..." ends the program. To be freed with free(). */
void *allocate(size_t count, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
