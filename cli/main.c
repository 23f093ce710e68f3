/* SPDX-License-Identifier: MIT */
/* main.c - tarn COMMAND: exit 0 done, 1 failed, 2 wrong usage. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "command.h"

static const struct command commands[] = {
    {"train", "train a model and keep it in a folder", cmd_train},
    {"eval", "loss and metric of a model on validation data", cmd_eval},
    {"generate", "text, images, or whatever a model's symbols stand for, symbol by symbol",
     cmd_generate},
    {"complete", "the rest of images of which a model is shown the beginning", cmd_complete},
    {"transcribe", "what was said in recordings, or in sound as it arrives", cmd_transcribe},
    {"plot", "draw the loss curves of training runs in one picture", cmd_plot},
    {"inspect", "what a file of a model, a checkpoint or a state holds", cmd_inspect},
    {"import", "make a model of a file of PyTorch's, NumPy's or safetensors", cmd_import},
    {"export", "write a model as safetensors or for NumPy", cmd_export},
    {"data", "fetch and verify the data sets that are known", cmd_data},
    {"bench", "measure this machine and the attentions on it", cmd_bench},
    {"manual", "write the manual pages", cmd_manual},
    {"completion", "let a shell complete commands, options and names", cmd_completion},
    {"help", "list the commands, or describe one of them", cmd_help},
    {"version", "print the version", cmd_version},
    {0},
};

int program_run(int argc, char **argv)
{
    return command_run("tarn",
                       "Transformers whose attention is linear in the sequence length, on "
                       "CPUs.",
                       commands, argc, argv);
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
