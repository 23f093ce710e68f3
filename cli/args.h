/* SPDX-License-Identifier: MIT */
/* args.h - the options of a command: one table parses them, checks them and is their --help.
 *
 *     struct values { const char *model; size_t threads; bool json; };
 *     static const struct args_option options[] = {
 *         {"MODEL", NULL, ARGS_OPERAND, NULL, offsetof(struct values, model), 1, 0, "a file"},
 *         {"threads", "N", ARGS_COUNT, "0", offsetof(struct values, threads), 0, 1024,
 *          "threads; 0: all"},
 *         {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0, "..."},
 *         {0},
 *     };
 */
#ifndef ARGS_H
#define ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "tarn/tarn.h"

enum args_type {
    ARGS_FLAG,    /* bool */
    ARGS_COUNT,   /* size_t: a whole number from minimum to maximum */
    ARGS_BYTES,   /* size_t: likewise, with K, M, G or T for powers of 1024 */
    ARGS_SECONDS, /* double: above 0 */
    ARGS_NUMBER,  /* double: finite, from minimum to maximum */
    ARGS_TEXT,    /* const char *: not copied; NULL where not given */
    ARGS_OPERAND, /* likewise, a word without dashes, in the order of the table; must be given
                     if minimum is 1 */
    ARGS_OPERANDS /* struct args_words: all such words from there on, `minimum` at least */
};

/* In argv. */
struct args_words {
    char **words;
    size_t count;
};

struct args_option {
    const char *name;     /* without the dashes: two, or one before a single letter */
    const char *argument; /* what --help calls it; NULL for a flag */
    enum args_type type;
    const char *initial; /* as a user would write it; NULL: a count is 0, a text NULL */
    size_t offset;       /* of the value in the caller's struct */
    size_t minimum, maximum;
    const char *help;
};

/* A table of the library's, for --help, the manual and completion. */
struct args_table {
    const char *title; /* above its rows; NULL: it is listed elsewhere */
    const tarn_table_row *(*row)(size_t index);
    const char *option; /* whose values are names of rows; NULL: none's */
};

struct args_command {
    const char *name;                  /* "tarn bench peak" */
    const char *help;                  /* what it does, a sentence or two */
    const struct args_option *options; /* ended by a NULL name */
    const struct args_table *tables;   /* ended by a NULL row; NULL: none */
    const char *notes;                 /* lines below all that; NULL: nothing */
};

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, ARGS_GO_ON = -1 };

/* Fills *values from argv[1] on. ARGS_GO_ON, or the code to exit with: --help was answered, or
 * the reason why not was printed. */
int args_read(const struct args_command *command, void *values, int argc, char **argv);

bool args_is_operand(const struct args_option *option);    /* or all of them from there on */
const char *args_dashes(const struct args_option *option); /* "", "-" or "--" */

/* The table whose rows an option's values are; NULL: there is none. */
const struct args_table *args_table_of(const struct args_command *command, const char *option);

#endif
