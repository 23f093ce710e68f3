/* SPDX-License-Identifier: MIT */
/* attention_piece.h - a part of a run's positions, from a state to a state. */
#ifndef TN_TEST_ATTENTION_PIECE_H
#define TN_TEST_ATTENTION_PIECE_H

#include "support/attention_case.h"

/* Positions from .. from + n of a run, with a plan and memory of its own. */
struct piece {
    const struct attention_run *of;
    tarn_attention *plan;
    size_t from, n;
    struct block saved, work;
};

/* All pieces of a run go into one cache. */
struct piece piece_open(const struct attention_run *of, size_t from, size_t n, size_t threads);
void piece_close(struct piece *piece);

tarn_attention_arrays piece_arrays(const struct piece *piece);

/* Both fail the test if something outside of what the piece may write has changed. */
void piece_forward(struct piece *piece, const void *state0, void *state1,
                   const size_t *lengths);
void piece_backward(struct piece *piece, const void *state0, const float *dstate1,
                    float *dstate0);

/* A causal one without lengths. */
struct attention_case piece_case(const struct variant *variant, double budget,
                                 struct tn_random *random);

/* States after as many positions, bit for bit. */
void piece_check_state(const struct attention_run *run, const struct block *want,
                       const struct block *got, size_t position);

#endif
