/* SPDX-License-Identifier: MIT */
/* args.h - the options of a command: one table parses them, checks them and is their --help.
 *
 *     struct options { const char *model; size_t batch; bool json; };
 *     static const struct args_option rows[] = {
 *         {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, "a file"},
 *         {"batch", "B", ARGS_COUNT, "1", AT(batch), 1, 1024, "..."},
 *         {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0, "..."},
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
    ARGS_COUNTS,  /* struct args_counts: some of these, separated by commas */
    ARGS_SPAN,    /* struct args_counts: "LO..HI", or one number */
    ARGS_BYTES,   /* size_t: likewise, with K, M, G or T for powers of 1024 */
    ARGS_HOST,    /* tarn_host: a number of threads; the instruction set is that of TARN_CPU */
    ARGS_SECONDS, /* double: above 0 */
    ARGS_NUMBER,  /* double: finite, from minimum to maximum */
    ARGS_TEXT,    /* const char *: not copied; NULL if not given; required if minimum is 1 */
    ARGS_FIELD,   /* likewise, "true" for one without an argument; the default is only shown */
    ARGS_OPERAND, /* likewise, a word without dashes, in the order of the table */
    ARGS_OPERANDS /* struct args_words: all remaining such words, at least `minimum` */
};

enum { ARGS_COUNTS_MOST = 16 };

struct args_counts {
    size_t numbers[ARGS_COUNTS_MOST];
    size_t count;
};

/* In argv. */
struct args_words {
    char **words;
    size_t count;
};

/* Where a value is: commands call their struct `options`. */
#define AT(field) offsetof(struct options, field)

struct args_option {
    const char *name;     /* without the dashes: two, or one before a single letter */
    const char *argument; /* placeholder of its value in --help; NULL for a flag */
    enum args_type type;
    const char
        *initial;  /* default, as a user would write it; NULL: a count is 0, a text NULL */
    size_t offset; /* of the value in the caller's struct */
    size_t minimum, maximum;
    const char *help;
};

/* A row, for macros of rows. */
#define ARGS_ROW(...)                                                                          \
    {                                                                                          \
        __VA_ARGS__                                                                            \
    }

/* Named choices with a description each, for --help, the manual and completion. */
struct args_table {
    const char *title; /* above its rows; NULL: not printed here */
    const tarn_table_row *(*row)(size_t index);
    const char *option; /* the option that takes the name of a row; NULL: none */
};

/* Options that --help and the manual list together, below a title. */
struct args_group {
    const char *title;
    const char *options; /* their names, separated by blanks */
};

struct command;

/* Fills *values from argv[1] on. Prints the help and ends the program if it is asked for, and
 * refuses arguments that are wrong. */
void args_read(const struct command *command, void *values, int argc, char **argv);

/* Calls `set` for the options of type ARGS_FIELD that were given, with the name of the field:
 * "eval_batches". */
typedef void args_set(void *context, const char *field, const char *text);
void args_set_fields(const struct args_option *options, const void *values, args_set *set,
                     void *context);

bool args_is_help(const char *word); /* "--help" or "-h" */

bool args_is_operand(const struct args_option *option);
bool args_is_required(const struct args_option *option);
const char *args_dashes(const struct args_option *option); /* "", "-" or "--" */

#endif
