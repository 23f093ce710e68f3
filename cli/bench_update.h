/* SPDX-License-Identifier: MIT */
/* bench_update.h - a model and its trainer, whose updates are timed. */
#ifndef BENCH_UPDATE_H
#define BENCH_UPDATE_H

#include "tarn/tarn.h"

struct bench_update {
    tarn_model *model;
    tarn_trainer *trainer;
    double seconds, cpu_seconds; /* of the best update, by the clock and by the processors */
};

/* With random weights. The update is for bench_update_close() even if this fails. */
tarn_status bench_update_open(struct bench_update *update, const tarn_config *config,
                              const tarn_trainer_desc *desc, tarn_error *err);
void bench_update_close(struct bench_update *update);

/* One update; `counts`: it is not one to warm up. */
tarn_status bench_update_run(struct bench_update *update, const tarn_batch *batch, bool counts,
                             tarn_error *err);

/* Random numbers below 1: what they are does not matter, that they vary does. */
double bench_draw(uint32_t *state);

/* `count` random symbols of a model; NULL: not enough memory. To be freed with free(). */
int32_t *bench_symbols(const tarn_model *model, size_t count);

#endif
