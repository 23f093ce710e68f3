/* SPDX-License-Identifier: MIT */
/* cmd_help.c - tarn help [COMMAND...] is tarn [COMMAND...] --help, tarn version is --version.
 */
#include <stdio.h>

#include "command.h"

enum { WORDS_MOST = 8 };

static int run_help(void *values)
{
    static char name[] = "tarn", help[] = "--help";
    const struct args_words *const commands = values;
    char *words[WORDS_MOST + 3] = {name};
    size_t count = 1;

    for (size_t i = 0; i < commands->count && i < WORDS_MOST; i++)
        words[count++] = commands->words[i];
    words[count++] = help;
    return command_run(&program, (int)count, words);
}

const struct command cmd_help = {
    .name = "tarn help",
    .summary = "list the commands, or describe one of them",
    .help = "List the commands, or describe one of them: the same as tarn COMMAND --help.",
    .options =
        (const struct args_option[]){
            {"COMMAND", NULL, ARGS_OPERANDS, NULL, 0, 0, 0,
             "command to describe, such as train or bench peak"},
            {0},
        },
    .examples = "tarn help\n"
                "tarn help bench peak\n",
    .values = sizeof(struct args_words),
    .run = run_help,
};

static int run_version(void *values)
{
    (void)values;
    printf("tarn %s\n", tarn_version());
    return EXIT_DONE;
}

const struct command cmd_version = {
    .name = "tarn version",
    .summary = "print the version",
    .help = "Print the version: the same as tarn --version.",
    .options = (const struct args_option[]){{0}},
    .examples = "tarn version\n",
    .run = run_version,
};
