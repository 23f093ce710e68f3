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

tarn_status bench_model_config(tarn_config *config, const struct bench_model *which,
                               tarn_error *err)
{
    const char *const fields[][2] = {{"attention", which->attention},
                                     {"feature_map", which->feature_map},
                                     {"head", which->head}};
    tarn_status status = start(config, which, err);

    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && status == TARN_OK; i++)
        if (fields[i][1])
            status = tarn_config_set(config, fields[i][0], fields[i][1], err);
    return status;
}

tarn_status bench_model_new(tarn_model **model, const struct bench_model *which,
                            tarn_error *err)
{
    tarn_config config;
    const tarn_status status = bench_model_config(&config, which, err);

    return status == TARN_OK ? tarn_model_create(model, &config, NULL, err) : status;
}
