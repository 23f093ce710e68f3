/* SPDX-License-Identifier: MIT */
/* main.c - tarn COMMAND: the table of commands. Exit code 0: success, 1: failure, 2: wrong
 * usage. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

enum { WORDS_MOST = 8 };

static void run_help(void *values)
{
    static char name[] = "tarn", help[] = "--help";
    const struct args_words *const commands = values;
    char *words[WORDS_MOST + 3] = {name};
    size_t count = 1;

    for (size_t i = 0; i < commands->count && i < WORDS_MOST; i++)
        words[count++] = commands->words[i];
    words[count++] = help;
    command_run(&program, (int)count, words);
}

static const struct command cmd_help = {
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

static void run_version(void *values)
{
    (void)values;
    printf("tarn %s\n", tarn_version());
}

static const struct command cmd_version = {
    .name = "tarn version",
    .summary = "print the version",
    .help = "Print the version: the same as tarn --version.",
    .options = (const struct args_option[]){{0}},
    .examples = "tarn version\n",
    .run = run_version,
};

const struct command program = {
    .name = "tarn",
    .summary = "train and run transformers with linear attention on CPUs",
    .help = "Train and run transformers with linear attention on CPUs. Time and memory grow "
            "linearly with the sequence length, and a trained model generates as a recurrent "
            "network with a state of constant size.",
    .rows = (const struct command *const[]){&cmd_train, &cmd_eval, &cmd_generate, &cmd_complete,
                                            &cmd_transcribe, &cmd_serve, &cmd_plot,
                                            &cmd_inspect, &cmd_import, &cmd_export, &cmd_data,
                                            &cmd_bench, &cmd_manual, &cmd_completion, &cmd_help,
                                            &cmd_version, NULL},
    .examples = "tarn data fetch mnist\n"
                "tarn train image --data data/mnist --out runs/digits --minutes 5\n"
                "tarn generate runs/digits -n 16 -o digits.png\n",
};

/* jansson leaves out of an object what it has no memory for, and nobody would notice. */
static void *allocate_json(size_t bytes)
{
    return allocate(1, bytes, "a JSON value");
}

int main(int argc, char **argv)
{
    static char version[] = "version";

    json_set_alloc_funcs(allocate_json, free);

    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    command_run(&program, argc, argv);
    leave(EXIT_DONE);
}
