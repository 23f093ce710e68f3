/* SPDX-License-Identifier: MIT */
/* train.h - from gradients to better weights, and back to where training stopped.
 *
 *     tarn_trainer *trainer;
 *     tarn_trainer_create(&trainer, model, &(tarn_trainer_desc){.batch = 16, .length = 128},
 *                         &err);
 *     for (size_t i = 0; i < 1000; i++)
 *         tarn_trainer_update(trainer, &report, &batch, 1, &err);
 *     tarn_model_save(model, "model.safetensors", &err);
 *
 * tarn_train() below does the whole of `tarn train`: data, logs, checkpoints, validation. */
#ifndef TARN_TRAIN_H
#define TARN_TRAIN_H

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types -------------------------------------------------------------- */

/* Gradients, an optimizer's moments and the memory of a run. One thread at a time. Results are
 * the same to the last bit for any number of threads. */
typedef struct tarn_trainer tarn_trainer;

/* Zero is a valid default for every field but the sizes. */
typedef struct tarn_trainer_desc {
    size_t batch, length;  /* B, N of one forward and backward */
    const char *optimizer; /* a row of tarn_optimizer(), with options; NULL: "radam" */
    const char *schedule;  /* a row of tarn_schedule(), with options; NULL: "constant" */
    const char *clip;      /* a row of tarn_clip(), with options; NULL: "tensor:norm=1" */
    double rate;           /* learning rate that the schedule starts from; 0: 1e-3 */
    const char *precision; /* of the dense products: "f32" or "bf16"; NULL: f32 */
    bool recompute;        /* keep the layers' inputs only: less memory, a third more time */
    bool skip;       /* leave out updates whose numbers are not finite, instead of failing */
    uint64_t seed;   /* of dropout */
    size_t threads;  /* 0: all */
    const char *cpu; /* instruction set, as tarn_cpu_name() lists; NULL: best */
    const tarn_allocator *allocator;
} tarn_trainer_desc;

/* B sequences of N: inputs, targets (B, N); weights (B, N), how much a position counts, or
 * NULL: once. */
typedef struct tarn_batch {
    const int32_t *inputs, *targets;
    const float *weights;
} tarn_batch;

/* What one update did. */
typedef struct tarn_report {
    uint64_t update; /* its number, counted from 1 */
    double loss;     /* mean over the positions that count, in nats, before the update */
    double accuracy; /* fraction of them whose most probable symbol was right */
    double rate;     /* learning rate */
    double norm;     /* of all gradients together, before clipping */
    bool skipped;    /* not finite, and left out */
} tarn_report;

/* Sums over positions; a mean is a quotient of two. */
typedef struct tarn_score {
    double loss, correct, weight;
} tarn_score;

/* ---- Life --------------------------------------------------------------- */

/* The model is the caller's, and its weights change. */
TARN_API tarn_status tarn_trainer_create(tarn_trainer **trainer, tarn_model *model,
                                         const tarn_trainer_desc *desc, tarn_error *err);
TARN_API void tarn_trainer_free(tarn_trainer *trainer); /* accepts NULL */

/* ---- Use ---------------------------------------------------------------- */

/* One update from `count` batches, whose gradients are accumulated: the mean is over the
 * positions of all. TARN_ENUMBER: the loss or a gradient is not finite; nothing changed. */
TARN_API tarn_status tarn_trainer_update(tarn_trainer *trainer, tarn_report *report,
                                         const tarn_batch *batches, size_t count,
                                         tarn_error *err);

/* Adds what the model makes of a batch; nothing is learned. */
TARN_API tarn_status tarn_trainer_score(tarn_trainer *trainer, tarn_score *score,
                                        const tarn_batch *batch, tarn_error *err);

/* Tells the schedule the loss of a validation. */
TARN_API void tarn_trainer_observe(tarn_trainer *trainer, double loss);

/* Everything that the next update depends on, in one file that is also a model's: weights,
 * moments, the schedule's state and the number of updates. `note` comes back when it is loaded;
 * NULL: none. Updates after loading are those that would have come without. */
TARN_API tarn_status tarn_trainer_save(const tarn_trainer *trainer, const char *path,
                                       const char *note, tarn_error *err);
TARN_API tarn_status tarn_trainer_load(tarn_trainer *trainer, const char *path,
                                       tarn_error *err);

/* ---- Questions ---------------------------------------------------------- */

TARN_API uint64_t tarn_trainer_updates(const tarn_trainer *trainer);

/* All that it holds besides the model, as planned before it was allocated. */
TARN_API size_t tarn_trainer_bytes(const tarn_trainer *trainer);

/* Multiply-adds of one forward and backward, times two: 6 per parameter and position, and
 * attention's. Recomputed activations do not count. */
TARN_API double tarn_trainer_flops(const tarn_trainer *trainer);

/* The tables behind the names; NULL past the last. */
TARN_API const tarn_table_row *tarn_optimizer(size_t index);
TARN_API const tarn_table_row *tarn_schedule(size_t index);
TARN_API const tarn_table_row *tarn_clip(size_t index);

#ifdef __cplusplus
}
#endif
#endif
