/* SPDX-License-Identifier: MIT */
/* bench_model.h - what the benchmarks of whole models share: models with random weights,
 * updates that are timed, and random data. */
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

#include "bench.h"

/* Which model, as options say. */
struct bench_model {
    const char *preset;
    const char *like;                           /* a file: the model in it instead */
    const char *attention, *feature_map, *head; /* NULL: the model's own */
};

/* Rows of options for one that is called `model`; `listed`: where the presets are. */
#define BENCH_MODEL(initial, listed)                                                           \
    ARGS_ROW("preset", "NAME", ARGS_TEXT, initial, AT(model.preset), 0, 0,                     \
             "model preset, " listed "; its weights are random"),                              \
        ARGS_ROW("attention", "SPEC", ARGS_TEXT, "linear", AT(model.attention), 0, 0,          \
                 "kind of attention, with options as in tarn train")
#define BENCH_FEATURE_MAP                                                                      \
    ARGS_ROW("feature-map", "SPEC", ARGS_TEXT, NULL, AT(model.feature_map), 0, 0,              \
             "feature map of the attention [the default of its kind]")

tarn_config bench_model_config(const struct bench_model *which);
tarn_model *bench_model_new(const struct bench_model *which);

/* A model, its trainer and a batch. The first member of cases that are timed as they are. */
struct bench_update {
    tarn_model *model;
    tarn_trainer *trainer;
    tarn_batch batch;            /* for the caller to set */
    double seconds, cpu_seconds; /* of the best update, by the clock and by the processors */
};

struct bench_update bench_update_open(const tarn_config *config, const tarn_trainer_desc *desc);
void bench_update_close(struct bench_update *update);

/* One update. */
void bench_update_run(struct bench_update *update);

/* For benchmarks: an update, of which that of the first round is to warm up. */
void bench_update_measure(struct bench_run *run, void *update);

/* Random numbers below 1: what they are does not matter, that they vary does. */
double bench_draw(uint32_t *state);

/* `count` random symbols of a model. To be freed with free(). */
int32_t *bench_symbols(const tarn_model *model, size_t count);

#endif
