/* SPDX-License-Identifier: MIT */
/* slices.h - sequences in equal slices of consecutive positions, which go through the model
 * layer by layer, one after the other: so that processes can share them, and memory for what
 * a layer leaves need be that of one slice. Where sequences are no multiple of a slice, the
 * last slices have positions that do not exist, as in sequences that end earlier.
 *
 * Attention joins slices (slice_states.h). All else is a function of the slice and its place,
 * and what is summed over slices is summed as a binary tree: every bit is the same for any
 * number of processes.
 *
 * The run of whole sequences has their sizes and nothing else; run->slice, of B sequences of a
 * slice's length, has plans and memory, with room for all slices of this process where that is
 * needed. */
#ifndef TN_SLICES_H
#define TN_SLICES_H

#include "model/gradient_sums.h"
#include "model/run.h"
#include "tarn/train.h"

struct tn_slices {
    size_t count, first, own; /* of a sequence; those of this process */
    size_t length;            /* positions of whole sequences */
    const tarn_comm *comm;    /* processes that have the others; NULL: none */

    /* Of the pass under way. */
    const int32_t *symbols; /* B x length */
    const size_t *lengths;  /* B, or NULL */
    tarn_status status;     /* the first failure of an exchange; what follows is no result */
    tarn_error err;

    /* Of the slice under way, by tn_slices_select(). */
    size_t at;                 /* among own */
    int32_t *inputs, *targets; /* B x N of the run */
    float *weights;            /* likewise */
    int32_t *past;             /* as in struct tn_context_place */
    size_t *counts, *there;    /* B: positions before it, and in it */
    struct tn_loss *losses;    /* of own slices, then of processes */
};

/* Forward and loss of whole sequences, by all processes that have slices of them; with sums,
 * gradients of scale times the loss. The batch was checked. Fails if another process does not
 * answer. */
tarn_status tn_slices_run(tarn_run *run, struct tn_loss *loss, const tarn_batch *batch,
                          float scale, struct tn_gradient_sums *sums, tarn_error *err);

/* Processes that share each sequence of a run. */
static inline size_t tn_slices_sharing(const tarn_run *run)
{
    return run->slice ? tn_comm_size(run->slice->slices->comm) : 1;
}

/* ---- For bodies, with run->slice ---------------------------------------- */

/* The number of own slice i among all, and the position of its first symbol. */
static inline size_t tn_slice_number(const tarn_run *run, size_t i)
{
    return run->slices->first + i;
}

static inline size_t tn_slice_from(const tarn_run *run, size_t i)
{
    return tn_slice_number(run, i) * run->N;
}

static inline size_t tn_slice_length(const tarn_run *run, size_t b)
{
    return run->slices->lengths ? run->slices->lengths[b] : run->slices->length;
}

/* Whether sequences may end within or before a slice. */
static inline bool tn_slices_end(const tarn_run *run)
{
    return run->slices->lengths || run->slices->length < run->slices->count * run->N;
}

/* Own slice i is under way: counts, there and run->lengths are its. */
void tn_slices_select(tarn_run *run, size_t i);

/* What a process has told, which may be that another is gone. */
void tn_slices_keep(tarn_run *run, tarn_status status, const tarn_error *err);

/* ---- Planning ----------------------------------------------------------- */

/* Refuses sequences or processes that cannot be cut so; where a slice is, given a desc of its
 * length; and what a run needs, laid out. */
tarn_status tn_slices_check(const tarn_model *model, const struct tn_run_desc *desc,
                            tarn_error *err);
void tn_slices_init(struct tn_slices *slices, const struct tn_run_desc *desc);
void tn_slices_lay_out(tarn_run *run, struct tn_arena *arena);

#endif
