/* SPDX-License-Identifier: MIT */
/* generate_options.h - the options of tarn generate. */
#ifndef GENERATE_OPTIONS_H
#define GENERATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "args.h"
#include "tarn/tarn.h"

/* Help of the sampling options, which tarn complete has as well. */
#define TEMPERATURE_HELP                                                                       \
    "sampling temperature; below 1, likely symbols become more likely; 0: greedy"
#define TOP_K_HELP "sample only from the K most likely symbols; 0: from all"
#define TOP_P_HELP                                                                             \
    "nucleus sampling: sample only from the most likely symbols whose probabilities add up "   \
    "to P"
#define GREEDY_HELP "always choose the most likely symbol"
#define SEED_HELP "random seed"

struct generate_options {
    const char *model, *prompt, *prompt_file, *method, *precision, *save, *load, *out;
    size_t count, streams, scale, top_k, seed, threads; /* 0: not given */
    double temperature, top_p;
    bool greedy, best, json;
    const char *cpu; /* from TARN_CPU; NULL: best */
};

extern const char generate_name[]; /* "tarn generate" */
extern const struct args_command generate_command;

/* ARGS_GO_ON or an exit code, as args_read(). */
int generate_options_read(struct generate_options *options, int argc, char **argv);

tarn_sampling generate_options_sampling(const struct generate_options *options);

#endif
