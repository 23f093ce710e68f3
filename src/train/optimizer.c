/* SPDX-License-Identifier: MIT */
#include "train/optimizer.h"
#include "tarn/train.h"

#include <assert.h>
#include <string.h>

static const struct tn_optimizer_row *const rows[] = {
    &tn_optimizer_radam, &tn_optimizer_adam, &tn_optimizer_adamw,
    &tn_optimizer_sgd,   &tn_optimizer_lion,
};

const struct tn_table tn_optimizers = {"optimizer", tarn_optimizer};

const tarn_table_row *tarn_optimizer(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

tarn_status tn_optimizer_init(struct tn_optimizer *optimizer, const char *spec, tarn_error *err)
{
    tarn_status status;

    *optimizer = (struct tn_optimizer){0};
    optimizer->row = tn_table_find(&tn_optimizers, &optimizer->options, spec, &status, err);
    assert(status != TARN_OK || tn_optimizer_moments(optimizer) <= TN_MOMENTS_MOST);
    return status;
}

size_t tn_optimizer_moments(const struct tn_optimizer *optimizer)
{
    return strlen(optimizer->row->moments);
}

void tn_optimizer_update(const struct tn_optimizer *optimizer, struct tn_optimizer_step step)
{
    assert(step.t > 0);
    step.options = &optimizer->options;
    optimizer->row->update(&step);
}

/* ---- For rows ----------------------------------------------------------- */

struct job {
    const struct tn_optimizer_step *step;
    tn_optimizer_piece *piece;
    const void *numbers;
};

static void update_piece(void *arg, struct tn_piece piece)
{
    const struct job *const job = arg;
    const float *const scales = job->step->scales;

    job->piece(job->step, job->numbers, scales ? scales[piece.tensor] : 1.0f, piece.from,
               piece.count);
}

void tn_optimizer_pieces(const struct tn_optimizer_step *step, tn_optimizer_piece *piece,
                         const void *numbers)
{
    struct job job = {step, piece, numbers};

    tn_pieces_parallel(step->tensors, step->count, update_piece, &job, step->host->threads);
}
