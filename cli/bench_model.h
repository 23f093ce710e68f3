/* SPDX-License-Identifier: MIT */
/* bench_model.h - what the benches of whole models share. */
#ifndef BENCH_MODEL_H
#define BENCH_MODEL_H

#include "tarn/model.h"

/* Which model, as options say. */
struct bench_model {
    const char *preset;
    const char *like;                           /* a file: the model in it instead */
    const char *attention, *feature_map, *head; /* NULL: the model's own */
};

tarn_status bench_model_config(tarn_config *config, const struct bench_model *which,
                               tarn_error *err);

/* With random weights. */
tarn_status bench_model_new(tarn_model **model, const struct bench_model *which,
                            tarn_error *err);

#endif
