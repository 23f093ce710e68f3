/* SPDX-License-Identifier: MIT */
/* help.h - describes a command from its tables: one walk over them, in the format of a terminal
 * for --help and in that of man(7) for the manual (cmd_manual.c). */
#ifndef HELP_H
#define HELP_H

#include <stdio.h>

#include "command.h"

extern const char help_of_help[]; /* what --help does */

struct help_format {
    const char *options_title; /* above options that are in no groups; NULL: none */

    void (*title)(FILE *out, const char *title); /* NULL: only a break */
    void (*option)(FILE *out, const struct args_option *option);
    void (*help_option)(FILE *out);         /* --help itself */
    void (*indent)(FILE *out, bool deeper); /* around rows, and around their options */
    void (*row)(FILE *out, const tarn_table_row *row, int width); /* of the longest name */
    void (*row_option)(FILE *out, const char *range, const char *help);
    void (*paragraph)(FILE *out, const char *text);
};

/* Operands, options, tables and notes of a command. */
void help_body(FILE *out, const struct command *command, const struct help_format *format);

/* All of --help, on standard output. */
void help_print(const struct command *command);

#endif
