/* SPDX-License-Identifier: MIT */
#include "bench_model.h"

static tarn_status start(tarn_config *config, const struct bench_model *which, tarn_error *err)
{
    tarn_model *model;
    tarn_status status;

    if (!which->like)
        return tarn_config_preset(config, which->preset, err);
    if ((status = tarn_model_load(&model, which->like, NULL, err)) == TARN_OK) {
        *config = *tarn_model_config(model);
        tarn_model_free(model);
    }
    return status;
}

tarn_status bench_model_new(tarn_model **model, const struct bench_model *which,
                            tarn_error *err)
{
    tarn_config config;
    tarn_status status;

    if ((status = start(&config, which, err)) != TARN_OK ||
        (status = tarn_config_set(&config, "attention", which->attention, err)) != TARN_OK ||
        (which->feature_map &&
         (status = tarn_config_set(&config, "feature_map", which->feature_map, err)) !=
             TARN_OK) ||
        (which->head &&
         (status = tarn_config_set(&config, "head", which->head, err)) != TARN_OK))
        return status;
    return tarn_model_create(model, &config, NULL, err);
}
