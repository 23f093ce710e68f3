/* SPDX-License-Identifier: MIT */
/* body.h - what is between the inputs of a model and its predictor: layers that turn R rows of
 * F floats into as many others.
 *
 * A body is one file that defines one row, listed here and in config.c. The rest of a run
 * (run.h), embedding, positions, predictor and head, is the same for all. */
#ifndef TN_BODY_H
#define TN_BODY_H

#include "model/run.h"

struct tn_gradient_sums;

/* Of sequences in slices (slices.h). */
struct tn_body_slices {
    /* Refuses attentions that cannot be cut. The run is planned, but has no memory. */
    tarn_status (*check)(const tarn_run *run, tarn_error *err);

    /* run->x and run->d are those of own slice i. */
    void (*select)(tarn_run *run, size_t i);

    /* All layers of all slices, and back; and what is behind the layers, of the selected slice
     * alone: run->y, and run->d from the gradient of y on. */
    void (*forward)(tarn_run *run);
    void (*backward)(tarn_run *run, struct tn_gradient_sums *sums);
    void (*finish)(tarn_run *run);
    void (*finish_backward)(tarn_run *run, const struct tn_weights *gradients);
};

struct tn_body {
    tarn_table_row about;
    bool takes_frames;     /* frames go in as they are, without a projection to the width */
    bool takes_bf16;       /* its products can have elements TN_BF16 */
    bool row_per_position; /* in all products; else in some a row for each sequence only */

    /* Refuses what it cannot be beyond the ranges of the fields. NULL: nothing more. */
    tarn_status (*check)(const struct tn_arch *arch, tarn_error *err);

    /* Visits the tensors of weights->blocks, and others that are the body's own. */
    void (*tensors)(struct tn_tensor_walk *walk, struct tn_weights *weights,
                    const struct tn_arch *arch);

    /* Its part of a run, run->body, zeros: laid out, twice; see tn_arena. */
    void *(*take)(const struct tn_arch *arch, struct tn_arena *arena);
    tarn_status (*plan)(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err);
    void (*clear)(tarn_run *run); /* accepts what plan() left when it failed */

    /* Activations, run->x and run->y among them, laid out likewise; and bytes of scratch. */
    void (*lay_out)(tarn_run *run, struct tn_arena *arena);
    size_t (*scratch)(const tarn_run *run);

    /* From run->x, or run->stacked where frames go in as they are, to run->y; and run->d from
     * the gradient of y to that of x. Gradients of the weights are added. */
    void (*forward)(tarn_run *run);
    void (*backward)(tarn_run *run, const struct tn_weights *gradients);

    /* The recurrent form, for runs that step; all are NULL in a body without. From run->x, rows
     * of a step, to the rows of its last positions in run->y. A stream's part of the state:
     * bytes, SIZE_MAX: too many; layer after layer it is the state of an attention. And the
     * matrices of all layers, packed: blocks is NULL while the arena measures. */
    void (*step)(tarn_run *run, const struct tn_step *step);
    size_t (*stream)(const tarn_run *run);
    void *(*layer_state)(const tarn_run *run, void *state, size_t layer);
    const tarn_attention *(*attention)(const tarn_run *run, size_t layer);
    void (*pack)(const tarn_run *run, struct tn_block_weights *blocks, struct tn_arena *arena);

    /* Bytes of the states of all sequences of a run, run->states; 0: these attentions have none
     * of constant size. NULL: never any. Whether they can be those after `position` symbols;
     * and makes them so, of attentions that have seen nothing. */
    size_t (*states)(const tarn_run *run);
    bool (*states_fit)(const tarn_run *run, const void *states, uint64_t position);
    void (*clear_states)(const tarn_run *run, void *states, uint64_t position);

    const struct tn_body_slices *slices; /* NULL: sequences cannot be cut */

    /* Operations of both, beside 6 for each parameter and position. NULL: none. */
    double (*flops)(const tarn_run *run);
};

extern const struct tn_body tn_body_transformer, tn_body_lstm;
extern const struct tn_table tn_bodies;

#endif
