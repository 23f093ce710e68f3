/* SPDX-License-Identifier: MIT */
/* main.c - tarn COMMAND. Exit code 0: success, 1: failure, 2: wrong usage. */
#include <stdio.h>
#include <string.h>

#include "command.h"

const struct command program = {
    .name = "tarn",
    .summary = "train and run transformers with linear attention on CPUs",
    .help = "Train and run transformers with linear attention on CPUs. Time and memory grow "
            "linearly with the sequence length, and a trained model generates as a recurrent "
            "network with a state of constant size.",
    .rows =
        (const struct command *const[]){&cmd_train, &cmd_eval, &cmd_generate, &cmd_complete,
                                        &cmd_transcribe, &cmd_plot, &cmd_inspect, &cmd_import,
                                        &cmd_export, &cmd_data, &cmd_bench, &cmd_manual,
                                        &cmd_completion, &cmd_help, &cmd_version, NULL},
    .examples = "tarn data fetch mnist\n"
                "tarn train image --data data/mnist --out runs/digits --minutes 5\n"
                "tarn generate runs/digits -n 16 -o digits.png\n",
};

int main(int argc, char **argv)
{
    static char version[] = "version";

    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    const int code = command_run(&program, argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tarn: standard output");
        return EXIT_FAILED;
    }
    return code;
}
