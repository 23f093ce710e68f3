/* SPDX-License-Identifier: MIT */
/* completion.h - the completions of options and operands, and a script writer per shell. */
#ifndef COMPLETION_H
#define COMPLETION_H

#include <stdio.h>

#include "command.h"

enum completion_kind {
    COMPLETION_NOTHING,
    COMPLETION_FILES,
    COMPLETION_FOLDERS,
    COMPLETION_WORDS
};

/* The completions of an option or operand. */
struct completion_values {
    enum completion_kind kind;
    char words[1024]; /* separated by blanks */
};

void completion_values(struct completion_values *values, const struct command *command,
                       const struct args_option *option);

/* Calls `put` for every operand of a command, or for every option that is not an operand. */
typedef void completion_put(FILE *out, const struct command *command,
                            const struct args_option *option);
void completion_each(FILE *out, const struct command *command, bool operands,
                     completion_put *put);

/* Text for single quotes in zsh and fish; `special` characters get a backslash. */
void completion_put_quoted(FILE *out, const char *text, const char *special);

void completion_bash(FILE *out);
void completion_zsh(FILE *out);
void completion_fish(FILE *out);

#endif
