/* SPDX-License-Identifier: MIT */
/* train_options.h - the options of tarn train. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "model_open.h"
#include "tarn/tarn.h"

enum { TRAIN_PROGRAM_SIZE = 16 + TARN_NAME_SIZE };

struct train_options {
    char program[TRAIN_PROGRAM_SIZE]; /* "tarn train copy", for messages */
    tarn_config config;
    tarn_settings settings;
    const char *folder, *cpu;
    char first[MODEL_PATH]; /* model file to start from; "": random weights */
    size_t threads;
    double minutes; /* that a run is fitted to, or with steps stops after; 0: no limit */
    double epochs;  /* instead of settings.steps; 0: not given */
    bool resume, json;
    /* On the command line; --epochs counts as steps. */
    bool steps_given, validations_given;
};

/* argv[0] is the task, with its options. ARGS_GO_ON or an exit code, as args_read(). */
int train_options_read(struct train_options *options, int argc, char **argv);

/* For the catalog: TASK and the options that all tasks have. */
int train_options_describe(void);

/* A short description: "linear attention, 1 layer, 4 heads of width 16, feed-forward 256". */
enum { TRAIN_MODEL_SIZE = 2 * TARN_NAME_SIZE };
void train_options_model(char text[TRAIN_MODEL_SIZE], const tarn_config *config);

/* Prints an error of the library and returns the exit code. */
int train_refused(const char *program, const tarn_error *err);

#endif
