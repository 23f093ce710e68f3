/* SPDX-License-Identifier: MIT */
/* head.h - what a model's outputs mean: a distribution over symbols, and its loss; or one over
 * sequences of symbols, where a row says so.
 *
 * A head is one file that defines one row, which is listed here and in head.c. */
#ifndef TN_HEAD_H
#define TN_HEAD_H

#include "base/option.h"
#include "layer/rows.h"

struct tn_head_row;

/* A row of the table for a number of symbols. */
struct tn_head {
    const struct tn_head_row *row;
    struct tn_options options;
    size_t symbols;
    size_t outputs; /* floats per position */
};

/* Sums over rows, each times its weight, in a fixed order. */
struct tn_loss {
    double loss;    /* in nats */
    double weight;  /* the mean is loss / weight */
    double correct; /* rows whose most probable symbol, the first of equals, is the target; not
                       a number if the head does not count them */
    double impossible; /* weight of sequences whose targets no outputs could give: they are in
                          neither loss nor weight, and have no gradient */
};

static inline struct tn_loss tn_loss_add(struct tn_loss a, struct tn_loss b)
{
    return (struct tn_loss){
        .loss = a.loss + b.loss,
        .weight = a.weight + b.weight,
        .correct = a.correct + b.correct,
        .impossible = a.impossible + b.impossible,
    };
}

/* What heads of sequences need to know beside rows: `rows` rows are B sequences of rows / B. */
struct tn_head_sequences {
    size_t B;
    const size_t *lengths; /* B: rows that exist; NULL: all */
    const size_t *counts;  /* B: targets of each */
    double *losses;        /* B, for each alone: infinity: impossible; NULL: not wanted */
};

/* One call: r->rows rows of r->width = head->outputs floats. */
struct tn_head_call {
    const struct tn_head *head;
    const struct tn_rows *rows;
    const float *outputs;
    const int32_t *targets; /* one per row; of sequences: one sequence's after the other's */
    const float *weights; /* one per row, or sequence; NULL: all 1. A target of weight 0 is not
                               looked at */
    struct tn_head_sequences sequences; /* looked at by heads of sequences alone */
    float scale;     /* of the gradient: 1 / the sum of weights, for a mean */
    float *doutputs; /* = weight scale dloss/doutputs; NULL: not wanted; may be outputs */
    void *scratch;   /* tn_head_scratch_size() bytes, of any alignment */
};

struct tn_head_row {
    tarn_table_row about;
    size_t least, most; /* symbols, at most INT32_MAX */
    bool sequence;      /* targets are sequences; nothing can be drawn at a position */

    /* Rows that a sequence of targets needs, or it is impossible; heads of sequences only. */
    size_t (*needs)(const int32_t *targets, size_t count);

    /* Floats per position. NULL: one for each symbol. */
    size_t (*outputs)(const struct tn_head *head);

    /* What a call on B sequences works in, laid out; see tn_arena. */
    void (*work)(const struct tn_head *head, const struct tn_rows *r, size_t B,
                 struct tn_arena *arena);

    void (*loss)(const struct tn_head_call *call, struct tn_loss *loss);

    /* Log-probabilities of all symbols, less any constant, from the outputs of one position; r
     * says who works, on one thread. NULL: the outputs are that. */
    void (*logits)(const struct tn_head *head, const struct tn_rows *r, float *logits,
                   const float *outputs, void *scratch);

    /* A symbol as likely as the loss says, in less time than all logits take; any outputs give
     * some symbol. NULL: there is no such way. */
    int32_t (*draw)(const struct tn_head *head, const float *outputs, struct tn_random *random);
};

extern const struct tn_head_row tn_head_categorical, tn_head_logistic, tn_head_ctc;
extern const struct tn_table tn_heads;

/* Reads a spec, such as "categorical", and checks it against the number of symbols. */
tarn_status tn_head_init(struct tn_head *head, const char *spec, size_t symbols,
                         tarn_error *err);

/* Bytes. r->rows is a multiple of B. */
size_t tn_head_scratch_size(const struct tn_head *head, const struct tn_rows *r, size_t B);

/* Fills *loss, and doutputs where they are wanted. */
void tn_head_loss(const struct tn_head_call *call, struct tn_loss *loss);

/* For heads of positions: adds the losses of rows from .. to - 1 to *loss, and writes their
 * gradients. `work` is some floats of the calling thread. */
typedef void tn_head_rows(const struct tn_head_call *call, struct tn_loss *loss, float *work,
                          size_t from, size_t to);

/* Runs `run` on blocks of rows, in parallel, and sums their losses from the first block to the
 * last; `floats` of work for each thread. The size is that of a row's `work`. */
void tn_head_blocks_size(const struct tn_rows *r, size_t floats, struct tn_arena *arena);
void tn_head_blocks_run(const struct tn_head_call *call, struct tn_loss *loss, size_t floats,
                        tn_head_rows *run);

#endif
