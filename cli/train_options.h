/* SPDX-License-Identifier: MIT */
/* train_options.h - the options of tarn train. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "model_open.h"
#include "tarn/tarn.h"

enum { TRAIN_NAME_SIZE = 16 + TARN_NAME_SIZE };

struct train_options {
    char name[TRAIN_NAME_SIZE]; /* "tarn train copy" */
    struct command command;     /* of that name */
    tarn_config config;
    tarn_settings settings;
    const char *folder;
    char first[MODEL_PATH]; /* model file to start from; "": random weights */
    tarn_host host;
    double minutes; /* that a run is fitted to, or with steps stops after; 0: no limit */
    double epochs;  /* instead of settings.steps; 0: not given */
    bool resume, json;
    /* On the command line; --epochs counts as steps. */
    bool steps_given, validations_given;
};

/* argv[0] is the task, with its options. ARGS_GO_ON or an exit code, as args_read(). */
int train_options_read(struct train_options *options, int argc, char **argv);

/* For the manual: TASK and the options that all tasks have. */
const struct command *train_options_describe(void);

/* A short description: "linear attention, 1 layer, 4 heads of width 16, feed-forward 256". */
enum { TRAIN_MODEL_SIZE = 2 * TARN_NAME_SIZE };
void train_options_model(char text[TRAIN_MODEL_SIZE], const tarn_config *config);

#endif
