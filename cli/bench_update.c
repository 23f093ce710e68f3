/* SPDX-License-Identifier: MIT */
#include "bench_update.h"

#include <math.h>
#include <stdlib.h>

#include "stopwatch.h"

tarn_status bench_update_open(struct bench_update *u, const tarn_config *config,
                              const tarn_trainer_desc *desc, tarn_error *err)
{
    *u = (struct bench_update){.seconds = (double)INFINITY, .cpu_seconds = (double)INFINITY};
    const tarn_status status = tarn_model_create(&u->model, config, NULL, err);

    return status == TARN_OK ? tarn_trainer_create(&u->trainer, u->model, desc, err) : status;
}

void bench_update_close(struct bench_update *u)
{
    tarn_trainer_free(u->trainer);
    tarn_model_free(u->model);
    *u = (struct bench_update){0};
}

tarn_status bench_update_run(struct bench_update *u, const tarn_batch *batch, bool counts,
                             tarn_error *err)
{
    const double start = stopwatch_seconds(), cpu_start = stopwatch_cpu_seconds();
    tarn_report report;
    const tarn_status status = tarn_trainer_update(u->trainer, &report, batch, 1, err);

    if (counts) {
        u->seconds = fmin(u->seconds, stopwatch_seconds() - start);
        u->cpu_seconds = fmin(u->cpu_seconds, stopwatch_cpu_seconds() - cpu_start);
    }
    return status;
}

double bench_draw(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / (double)(1 << 24);
}

int32_t *bench_symbols(const tarn_model *model, size_t count)
{
    const double known = (double)tarn_model_config(model)->symbols;
    int32_t *const symbols = malloc(count * sizeof *symbols);
    uint32_t state = 1;

    for (size_t i = 0; symbols && i < count; i++)
        symbols[i] = (int32_t)(known * bench_draw(&state));
    return symbols;
}
