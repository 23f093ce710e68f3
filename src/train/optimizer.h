/* SPDX-License-Identifier: MIT */
/* optimizer.h - from gradients to the next weights.
 *
 * An optimizer is one file that defines one row, listed here and in optimizer.c. Its row says
 * which moments it keeps, and it is handed all tensors of a model at once: most work float by
 * float and leave the threads to tn_optimizer_pieces(); one that needs whole matrices finds
 * them by their ranges. */
#ifndef TN_OPTIMIZER_H
#define TN_OPTIMIZER_H

#include "base/option.h"
#include "kernel/host.h"
#include "train/pieces.h"

enum { TN_MOMENTS_MOST = 2 };

/* One update. Weights, gradients and moments are arrays of one layout, in which tensors are
 * ascending ranges; floats that belong to no tensor stay. */
struct tn_optimizer_step {
    const struct tn_options *options;
    double rate;
    uint64_t t; /* number of the update, counted from 1 */
    float *w;
    const float *g;
    float *moments[TN_MOMENTS_MOST]; /* zeros before the first update */
    const struct tn_range *tensors;
    size_t count;        /* tensors */
    const float *scales; /* gradients count scales[i] times in tensor i; NULL: once */
    const struct tn_host *host;
};

struct tn_optimizer_row {
    tarn_table_row about;
    const char *moments; /* a letter for each, by which checkpoints name it */
    void (*update)(const struct tn_optimizer_step *step);
};

struct tn_optimizer {
    const struct tn_optimizer_row *row;
    struct tn_options options;
};

extern const struct tn_optimizer_row tn_optimizer_adam, tn_optimizer_adamw, tn_optimizer_radam,
    tn_optimizer_sgd, tn_optimizer_lion;
extern const struct tn_table tn_optimizers;

/* Reads a spec such as "radam:decay=0". */
tarn_status tn_optimizer_init(struct tn_optimizer *optimizer, const char *spec,
                              tarn_error *err);

size_t tn_optimizer_moments(const struct tn_optimizer *optimizer); /* how many it keeps */

/* step->options are the optimizer's and need not be set. Bits do not depend on the number of
 * threads. */
void tn_optimizer_update(const struct tn_optimizer *optimizer, struct tn_optimizer_step step);

/* ---- For rows ----------------------------------------------------------- */

/* Updates `count` floats from number `from` on, whose gradients count `scale` times; `numbers`
 * are the row's own. */
typedef void tn_optimizer_piece(const struct tn_optimizer_step *step, const void *numbers,
                                float scale, size_t from, size_t count);

/* All pieces of all tensors, from several threads. */
void tn_optimizer_pieces(const struct tn_optimizer_step *step, tn_optimizer_piece *piece,
                         const void *numbers);

/* A moment whose gradient stays zero fades for ever, and processors compute up to a hundred
 * times slower with numbers below the smallest normal float, 1.2e-38. */
static inline float tn_moment_floor(float m)
{
    return m > -1e-36f && m < 1e-36f ? 0.0f : m;
}

#endif
