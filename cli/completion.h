/* SPDX-License-Identifier: MIT */
/* completion.h - what a shell can offer, and one writer of a script per shell. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include <stdio.h>

#include "catalog.h"

enum completion_kind {
    COMPLETION_NOTHING,
    COMPLETION_FILES,
    COMPLETION_FOLDERS,
    COMPLETION_WORDS
};

/* What an option or an operand may be. */
struct completion_values {
    enum completion_kind kind;
    char words[1024]; /* with blanks between them */
};

void completion_values(struct completion_values *values, const struct args_command *command,
                       const struct args_option *option);

/* Calls `put` for every option of a command that is no operand, or for every operand. */
typedef void completion_put(FILE *out, const struct catalog_entry *entry,
                            const struct args_option *option);
void completion_each(FILE *out, const struct catalog_entry *entry, bool operands,
                     completion_put *put);

/* Within single quotes of zsh and fish; what is `special` there gets a backslash. */
void completion_put_quoted(FILE *out, const char *text, const char *special);

void completion_bash(FILE *out, const struct catalog *catalog);
void completion_zsh(FILE *out, const struct catalog *catalog);
void completion_fish(FILE *out, const struct catalog *catalog);

#endif
