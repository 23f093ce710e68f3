/* SPDX-License-Identifier: MIT */
/* cmd_train.h - the parts of tarn train: its options and its progress. */
#ifndef CMD_TRAIN_H
#define CMD_TRAIN_H

#include "files.h"

/* ---- Options ------------------------------------------------------------ */

enum { TRAIN_NAME_SIZE = 16 + TARN_NAME_SIZE, TRAIN_FIELDS = 64 };

struct train_options {
    char name[TRAIN_NAME_SIZE]; /* "tarn train copy" */
    struct command command;     /* of that name */
    tarn_config config;
    tarn_settings settings;
    char first[MODEL_PATH]; /* model file to start from; "": random weights */

    /* As given on the command line. */
    const char *folder, *preset, *start, *head_width;
    tarn_host host;
    double minutes; /* that a run is fitted to, or with steps stops after; 0: no limit */
    double epochs;  /* instead of settings.steps; 0: not given */
    bool resume, any, json;
    const char *given[TRAIN_FIELDS]; /* fields of config and settings; NULL: not given */
    bool steps_given, validations_given, position_given; /* --epochs counts as steps */
};

/* argv[0] is the task, with its options. */
void train_options_read(struct train_options *options, int argc, char **argv);

/* For the manual: TASK and the options that all tasks have. */
const struct command *train_options_describe(void);

/* A short description: "linear attention, 1 layer, 4 heads of width 16, feed-forward 256". */
enum { TRAIN_MODEL_SIZE = 2 * TARN_NAME_SIZE };
void train_options_model(char text[TRAIN_MODEL_SIZE], const tarn_config *config);

/* ---- Progress: for people on standard error, as JSON on standard output - */

struct train_progress {
    const struct train_options *options;
    tarn_settings settings; /* of the options, completed from the data */
    bool started, validated;
    bool fitted;         /* to a time: the settings have the updates planned last */
    bool validating;     /* and the open line says so */
    uint64_t from;       /* updates before this run */
    size_t bytes;        /* planned */
    double mark;         /* seconds: when the last event was */
    double in_updates;   /* seconds, without validations and files */
    double tokens;       /* read in that time */
    double loss, weight; /* moving average, and the sum of its weights */
    tarn_report report;  /* the last */
    tarn_validation validation;
};

/* All but `stop`; the context is the progress. */
tarn_events train_progress_events(struct train_progress *progress);

/* Whether --minutes are over, of a run that is not fitted to them. */
bool train_progress_is_over(const struct train_progress *progress);

/* Means over the last updates, and over this run; NAN before there is one. */
double train_progress_loss(const struct train_progress *progress);
double train_progress_speed(const struct train_progress *progress);

/* ---- Curve -------------------------------------------------------------- */

/* Refuses a new run in a folder that has a loss.csv or loss.svg. */
void train_curve_check(const struct train_options *options);

/* Writes DIR/loss.csv and, with gnuplot, DIR/loss.svg. False after a warning. */
bool train_curve_write(const struct train_options *options);

#endif
