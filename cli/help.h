/* SPDX-License-Identifier: MIT */
/* help.h - describes a command from its tables: one walk over them, in the format of a terminal
 * for --help and in that of man(7) for the manual (cmd_manual.c). */
#ifndef HELP_H
#define HELP_H

#include <stdio.h>

#include "command.h"

extern const struct help_item help_of_help; /* --help itself */

enum help_kind { HELP_OPERAND, HELP_OPTION, HELP_ROW, HELP_ROW_OPTION };

/* A name with its description. */
struct help_item {
    enum help_kind kind;
    const char *dashes, *name, *argument; /* argument may be NULL */
    const char *help, *initial;           /* initial: the default, or NULL */
    int width;                            /* of the longest name, for rows */
};

struct help_format {
    const char *options_title; /* above options that are in no groups; NULL: none */

    void (*title)(FILE *out, const char *title); /* NULL: only a break */
    void (*item)(FILE *out, const struct help_item *item);
    void (*indent)(FILE *out,
                   bool deeper); /* around rows, and around their options; NULL: none */
    void (*paragraph)(FILE *out, const char *text);
};

/* Operands, options, tables and notes of a command. */
void help_body(FILE *out, const struct command *command, const struct help_format *format);

/* All of --help, on standard output. */
void help_print(const struct command *command);

#endif
