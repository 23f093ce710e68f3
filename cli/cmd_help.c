/* SPDX-License-Identifier: MIT */
/* cmd_help.c - tarn help [COMMAND...] is tarn [COMMAND...] --help, tarn version is --version.
 */
#include <stdio.h>

#include "args.h"
#include "command.h"
#include "tarn/tarn.h"

enum { WORDS_MOST = 8 };

struct options {
    struct args_words commands;
};

static const struct args_option rows[] = {
    {"COMMAND", NULL, ARGS_OPERANDS, NULL, offsetof(struct options, commands), 0, 0,
     "command to describe, such as train or bench peak"},
    {0},
};

static const struct args_command command = {
    .name = "tarn help",
    .help = "List the commands, or describe one of them: the same as tarn COMMAND --help.",
    .options = rows,
    .examples = "tarn help\n"
                "tarn help bench peak\n",
};

int cmd_help(int argc, char **argv)
{
    static char program[] = "tarn", help[] = "--help";
    char *words[WORDS_MOST + 3] = {program};
    struct options o = {0};
    const int code = args_read(&command, &o, argc, argv);
    size_t count = 1;

    if (code != ARGS_GO_ON)
        return code;
    for (size_t i = 0; i < o.commands.count && i < WORDS_MOST; i++)
        words[count++] = o.commands.words[i];
    words[count++] = help;
    return program_run((int)count, words);
}

/* ---- version ------------------------------------------------------------ */

static const struct args_option no_rows[] = {{0}};

static const struct args_command version_command = {
    .name = "tarn version",
    .help = "Print the version: the same as tarn --version.",
    .options = no_rows,
    .examples = "tarn version\n",
};

int cmd_version(int argc, char **argv)
{
    const int code = args_read(&version_command, NULL, argc, argv);

    if (code == ARGS_GO_ON)
        printf("tarn %s\n", tarn_version());
    return code == ARGS_GO_ON ? EXIT_DONE : code;
}
