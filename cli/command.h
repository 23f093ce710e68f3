/* SPDX-License-Identifier: MIT */
/* command.h - a table of commands, each with its own options or its own table. */
#ifndef COMMAND_H
#define COMMAND_H

struct command {
    const char *name;
    const char *help; /* one line */
    int (*run)(int argc,
               char **argv); /* argv[0] is the command's name; returns the exit code */
};

struct command_group {
    const char *path;           /* the words before the command, "tarn bench" */
    const char *about;          /* a sentence or two */
    const struct command *rows; /* ended by a NULL name */
    const char *examples;       /* command lines, each ended by a newline; NULL: none */
};

/* Runs the command that argv[1] names; answers --help and unknown names. */
int command_run(const struct command_group *group, int argc, char **argv);

/* The whole program. */
int program_run(int argc, char **argv);

int cmd_train(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_complete(int argc, char **argv);
int cmd_transcribe(int argc, char **argv);
int cmd_plot(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_manual(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_help(int argc, char **argv);
int cmd_version(int argc, char **argv);
int bench_peak(int argc, char **argv);
int bench_kernels(int argc, char **argv);
int bench_attention(int argc, char **argv);
int bench_train(int argc, char **argv);
int bench_generate(int argc, char **argv);
int bench_image(int argc, char **argv);
int bench_speech(int argc, char **argv);
int bench_threads(int argc, char **argv);

#endif
