/* SPDX-License-Identifier: MIT */
#include "bench_model.h"

#include <math.h>

/* ---- Models ------------------------------------------------------------- */

tarn_config bench_model_config(const struct bench_model *which)
{
    const char *const fields[][2] = {{"attention", which->attention},
                                     {"feature_map", which->feature_map},
                                     {"head", which->head}};
    tarn_config config;

    if (which->like) {
        tarn_model *model;

        must(tarn_model_load(&model, which->like, NULL, &failure));
        config = *tarn_model_config(model);
        tarn_model_free(model);
    } else {
        must(tarn_config_preset(&config, which->preset, &failure));
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i][1])
            must(tarn_config_set(&config, fields[i][0], fields[i][1], &failure));
    return config;
}

tarn_model *bench_model_new(const struct bench_model *which)
{
    const tarn_config config = bench_model_config(which);
    tarn_model *model;

    must(tarn_model_create(&model, &config, NULL, &failure));
    return model;
}

/* ---- Updates ------------------------------------------------------------ */

struct bench_update bench_update_open(const tarn_config *config, const tarn_trainer_desc *desc)
{
    struct bench_update u = {.seconds = (double)INFINITY, .cpu_seconds = (double)INFINITY};

    must(tarn_model_create(&u.model, config, NULL, &failure));
    must(tarn_trainer_create(&u.trainer, u.model, desc, &failure));
    return u;
}

void bench_update_close(struct bench_update *u)
{
    tarn_trainer_free(u->trainer);
    tarn_model_free(u->model);
}

void bench_update_run(struct bench_update *u)
{
    tarn_report report;

    must(tarn_trainer_update(u->trainer, &report, &u->batch, 1, &failure));
}

void bench_update_measure(struct bench_run *run, void *update)
{
    struct bench_update *const u = update;
    const double start = seconds_now(), cpu_start = cpu_seconds_now();

    bench_update_run(u);
    if (run->round == 0)
        return;
    u->seconds = fmin(u->seconds, seconds_now() - start);
    u->cpu_seconds = fmin(u->cpu_seconds, cpu_seconds_now() - cpu_start);
}

/* ---- Data --------------------------------------------------------------- */

double bench_draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1 << 24);
}

int32_t *bench_symbols(const tarn_model *model, size_t count)
{
    const double known = (double)tarn_model_config(model)->symbols;
    int32_t *const symbols = allocate(count, sizeof *symbols, "the random symbols");
    uint32_t state = 1;

    for (size_t i = 0; i < count; i++)
        symbols[i] = (int32_t)(known * bench_draw(&state));
    return symbols;
}
