/* SPDX-License-Identifier: MIT */
#include "train/optimizer.h"
#include "tarn/train.h"

#include <assert.h>
#include <string.h>

#define TN_OPTIMIZER(name) extern const struct tn_optimizer_row tn_optim_##name;
#include "train/optimizers.def"
#undef TN_OPTIMIZER

#define TN_OPTIMIZER(name) &tn_optim_##name.about,
const tarn_table_row *const tn_optimizer_rows[] = {
#include "train/optimizers.def"
    NULL,
};
#undef TN_OPTIMIZER

const tarn_table_row *tarn_optimizer(size_t index)
{
    return tn_row_at(tn_optimizer_rows, index);
}

tarn_status tn_optimizer_init(struct tn_optimizer *optimizer, const char *spec, tarn_error *err)
{
    const tarn_table_row *about = NULL;

    *optimizer = (struct tn_optimizer){0};
    const tarn_status status = tn_option_choose(&about, &optimizer->options, tn_optimizer_rows,
                                                "optimizer", spec, err);

    optimizer->row = (const struct tn_optimizer_row *)about; /* its first member */
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
