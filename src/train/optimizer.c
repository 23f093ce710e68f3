/* SPDX-License-Identifier: MIT */
#include "train/optimizer.h"
#include "tarn/train.h"

#include <assert.h>
#include <math.h>

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
    return status;
}

double tn_moment_share(double beta, uint64_t t)
{
    return -expm1((double)t * log(beta)); /* log 0 = -inf: 1 */
}

struct tn_update tn_adam_numbers(const struct tn_options *options, double rate, uint64_t t)
{
    const double beta1 = options->value[TN_BETA1], beta2 = options->value[TN_BETA2];

    return (struct tn_update){
        .gain1 = (float)(1.0 - beta1),
        .gain2 = (float)(1.0 - beta2),
        .step = (float)(rate / tn_moment_share(beta1, t)),
        .root = (float)(1.0 / sqrt(tn_moment_share(beta2, t))),
        .eps = (float)options->value[TN_EPS],
    };
}

struct job {
    const struct tn_parameters *p;
    const float *scales;
    const struct tn_kernels *kernels;
    struct tn_update by;
};

static void update_piece(void *arg, struct tn_piece piece)
{
    const struct job *const job = arg;
    const struct tn_parameters *const p = job->p;

    job->kernels->update(p->w + piece.from, p->m + piece.from, p->v + piece.from,
                         p->g + piece.from, job->scales ? job->scales[piece.tensor] : 1.0f,
                         &job->by, piece.count);
}

void tn_optimizer_update(const struct tn_optimizer *optimizer, const struct tn_parameters *p,
                         const float *scales, const struct tn_range *tensors, size_t count,
                         double rate, uint64_t t, const struct tn_kernels *kernels,
                         size_t threads)
{
    struct job job = {p, scales, kernels,
                      optimizer->row->numbers(&optimizer->options, rate, t)};

    assert(t > 0);
    assert(tn_ranges_check(tensors, count, p->n, NULL) == TARN_OK);
    tn_pieces_parallel(tensors, count, update_piece, &job, threads);
}
