/* SPDX-License-Identifier: MIT */
/* generate_options.h - the options of tarn generate. */
#ifndef GENERATE_OPTIONS_H
#define GENERATE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "command.h"

/* Help of the sampling options, which tarn complete has as well. */
#define TEMPERATURE_HELP                                                                       \
    "sampling temperature; below 1, likely symbols become more likely; 0: greedy"
#define TOP_K_HELP "sample only from the K most likely symbols; 0: from all"
#define TOP_P_HELP                                                                             \
    "nucleus sampling: sample only from the most likely symbols whose probabilities add up "   \
    "to P"
#define GREEDY_HELP "always choose the most likely symbol"
#define SEED_HELP "random seed"

#define TOP_P_IS_0 "--top-p is 0; it must be above 0 and at most 1"

struct generate_options {
    const char *model, *prompt, *prompt_file, *method, *precision, *save, *load, *out;
    size_t count, streams, scale, top_k, seed; /* 0: not given */
    tarn_host host;
    double temperature, top_p;
    bool greedy, best, json;
};

extern const struct args_option generate_rows[];
extern const struct args_group generate_groups[];

/* ARGS_GO_ON, or an exit code after a message. */
int generate_options_check(const struct generate_options *options);

tarn_sampling generate_options_sampling(const struct generate_options *options);

#endif
