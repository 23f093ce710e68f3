/* SPDX-License-Identifier: MIT */
/* main.c - tarn COMMAND. Exit code 0: success, 1: failure, 2: wrong usage. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "command.h"

static const struct command commands[] = {
    {"train", "train a model on text, images, speech or the copy task", cmd_train},
    {"eval", "compute the loss and accuracy of a model on validation data", cmd_eval},
    {"generate", "generate text or images with a trained model", cmd_generate},
    {"complete", "complete partially shown images", cmd_complete},
    {"transcribe", "transcribe speech from audio files or a live stream", cmd_transcribe},
    {"plot", "draw the loss curves of training runs in one picture", cmd_plot},
    {"inspect", "show the configuration, size and tensors of a model file", cmd_inspect},
    {"import", "import a model from PyTorch, NumPy or safetensors", cmd_import},
    {"export", "export a model to safetensors or NumPy", cmd_export},
    {"data", "list, download and verify data sets", cmd_data},
    {"bench", "measure the speed and memory of attention and models", cmd_bench},
    {"manual", "write the manual pages", cmd_manual},
    {"completion", "print a completion script for bash, zsh or fish", cmd_completion},
    {"help", "list the commands, or describe one of them", cmd_help},
    {"version", "print the version", cmd_version},
    {0},
};

static const struct command_group program = {
    .path = "tarn",
    .about = "Train and run transformers with linear attention on CPUs. Time and memory grow "
             "linearly with the sequence length, and a trained model generates as a recurrent "
             "network with a state of constant size.",
    .rows = commands,
    .examples = "tarn data fetch mnist\n"
                "tarn train image --data data/mnist --out runs/digits --minutes 5\n"
                "tarn generate runs/digits -n 16 -o digits.png\n",
};

int program_run(int argc, char **argv)
{
    return command_run(&program, argc, argv);
}

int main(int argc, char **argv)
{
    static char version[] = "version";

    if (argc > 1 && strcmp(argv[1], "--version") == 0)
        argv[1] = version;
    const int code = program_run(argc, argv);

    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("tarn: standard output");
        return EXIT_FAILED;
    }
    return code;
}
