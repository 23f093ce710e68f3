/* SPDX-License-Identifier: MIT */
/* run.h - sequences through the model: whole ones, forwards and backwards, or the next
 * positions of streams. `tarn_run` is this.
 *
 * Everything is planned when the run is made: products, attentions and one block of memory
 * whose layout depends on the sizes alone. Training keeps what backward needs of every layer;
 * with `recompute` it keeps the layers' inputs only and forms the rest again, one layer at a
 * time.
 *
 * Of streams, the rows of a step are the next position of each, or the next positions of one.
 * Packed weights give a row the same bits in any company, which makes a prompt and the same
 * symbols one by one the same, and a stream among others the same as alone. */
#ifndef TN_RUN_H
#define TN_RUN_H

#include "comm/transfer.h"
#include "layer/head.h"
#include "layer/dense.h"
#include "model/model_data.h"

/* Sequences that continue from one pass to the next: all of them have read `position` symbols
 * before this pass. A block of tn_run_states_size() bytes has the body's states of all
 * sequences, then their last symbols, as far as the context reaches; zeros are the start. */
struct tn_run_states {
    uint64_t position;
    const void *from; /* read by forward and backward */
    void *to;         /* written by forward; another block */
};

struct tn_run_desc {
    size_t B, N; /* N: of symbols or frames */
    bool trains, recompute;
    enum tn_element elements; /* of the dense products */
    bool varies;              /* batches differ in length: there are shorter runs, too */
    bool packed;              /* weights, once for all runs; not with `trains` */

    size_t
        slices; /* sequences are cut into so many (slices.h), a power of two; 0: they are not.
                   With comm, processes have an equal share of them; NULL: one has all */
    const tarn_comm *comm;

    bool steps;     /* for tn_run_step() alone: of at most B streams, or N positions of one;
                       with packed weights */
    size_t longest; /* positions of such a stream; 0: no limit */
};

/* A stream at its next position. Its state is tn_run_stream_size() bytes, without pointers: the
 * last symbols, as far as the context reaches, then the body's part. Zeros are the start. */
struct tn_run_stream {
    void *state;
    uint64_t position;
};

/* The next positions of the first of run->streams. Symbols are in run->symbols, (streams,
 * length); or there are frames. */
struct tn_step {
    size_t streams, length; /* several positions of one stream only */
    const float *frames;    /* (streams, floats of a stack), length 1; NULL: symbols */
    float *outputs;         /* of the last positions, (streams, O); NULL: not wanted */
};

/* Runs for shorter sequences lie in the same memory, each for a sixteenth less than the one
 * before it: what is padded costs as much as what is there. One of them is used at a time. */
enum { TN_RUN_LENGTHS = 40 }; /* the shortest has a twelfth of the longest */

struct tarn_run {
    const tarn_model *model;
    const struct tn_weights *weights; /* the model's, or packed */
    struct tn_packed_weights *packed; /* shared with other runs; NULL: they are not packed */
    tarn_run *shorter;                /* the next; NULL: none */
    tarn_run *slice;                  /* of one slice of the sequences, which does everything;
                                         NULL: they are not cut */
    struct tn_slices *slices;         /* such a run's: where it is; else NULL */
    struct tn_host host;
    size_t B, N, R; /* N positions; R = B N rows, of steps the greater of both */
    size_t T;       /* symbols or frames of a sequence, at most */
    bool trains, recompute, steps;
    struct tn_rows rows; /* R x F */
    struct tn_dense predictor;
    struct tn_dense projection; /* of frames; zeros: inputs are symbols */
    void *body;                 /* the body's part; see body.h */

    /* Memory, laid out once. */
    float *x, *y;            /* R x F: into the body and out of it, in its memory */
    float *d;                /* R x F, the gradient on its way back through it */
    float *outputs;          /* R x outputs */
    float *positions;        /* a sequence's sinusoid, */
    uint64_t positions_from; /* of the positions from here on */
    int32_t *context;        /* rows of its tables */
    float *stacked;          /* R x floats of a stack of frames */
    size_t *given, *rounded; /* B lengths, of symbols or frames and of positions */
    void *scratch;

    /* Of a step, for the caller to fill: B, R. */
    struct tn_run_stream *streams;
    int32_t *symbols;

    /* Of the forward under way. */
    size_t given_T;        /* frames from one sequence to the next; by tn_run_sizes() */
    const size_t *lengths; /* B of them, in positions, or NULL; likewise */
    const struct tn_run_states *states; /* NULL: sequences begin and end with the pass */
    double dropout;                     /* 0 outside of training */
    uint64_t dropout_seed;              /* of this update */

    /* Called by backward, unless NULL, when the gradients from *from on, in the order of the
     * tensors, are complete. */
    void (*complete)(void *arg, const float *from);
    void *complete_arg;

    size_t bytes; /* of the longest and all that lie in its memory */
    void *memory, *plans;
};

tarn_status tn_run_create(tarn_run **run, const tarn_model *model,
                          const struct tn_run_desc *desc, const struct tn_host *host,
                          tarn_error *err);

/* The shortest that takes T symbols or frames; the longest if none does. */
tarn_run *tn_run_for(tarn_run *run, size_t T);

/* Bytes of a block of states; 0: the body, with its attention, has no states of constant size.
 */
size_t tn_run_states_size(const tarn_run *run);

/* Whether a block, which may come from a file, can be what streams of this run left at a
 * position. */
bool tn_run_states_fit(const tarn_run *run, const void *states, uint64_t position);

/* Bytes of a stream's state; SIZE_MAX: they do not fit in memory. And where in it the body's
 * part begins. */
size_t tn_run_stream_size(const tarn_run *run);
size_t tn_run_past_size(const tarn_run *run);

/* Symbols were checked, and that streams are different and have room. Allocates nothing. */
void tn_run_step(tarn_run *run, const struct tn_step *step);

/* Symbols or frames of each sequence, from now on; NULL: all are whole. T is the run's, or less
 * for frames (B, T, ...). */
void tn_run_sizes(tarn_run *run, size_t T, const size_t *lengths);

/* Symbols were checked. Outputs are in run->outputs. */
void tn_run_forward(tarn_run *run, const int32_t *symbols);

/* The same for (B, given_T, frames) floats, which need not be kept for backward. */
void tn_run_forward_frames(tarn_run *run, const float *frames);

/* Loss over the outputs. With a scale above 0 they become the gradient for backward. For a head
 * of sequences: targets one after the other, counts[b] of each, weights NULL or B of them;
 * losses NULL or B of them, as in struct tn_head_sequences. Others look at neither counts nor
 * losses. */
void tn_run_loss(tarn_run *run, struct tn_loss *loss, double *losses, const int32_t *targets,
                 const size_t *counts, const float *weights, float scale);

/* After a loss with a scale: adds to the gradients, carved like the weights. Symbols are not
 * looked at where inputs are frames. */
void tn_run_backward(tarn_run *run, const struct tn_weights *gradients, const int32_t *symbols);

/* Forward, and backward, but for the body. */
void tn_run_embed(tarn_run *run, const int32_t *symbols);
void tn_run_predict(tarn_run *run);
void tn_run_predict_backward(tarn_run *run, const struct tn_weights *gradients);
void tn_run_embed_backward(const tarn_run *run, const struct tn_weights *gradients,
                           const int32_t *symbols);

static inline size_t tn_run_layers(const tarn_run *run)
{
    return run->model->arch.config.layers;
}

/* For bodies: tells run->complete. */
static inline void tn_run_complete(const tarn_run *run, const float *from)
{
    if (run->complete)
        run->complete(run->complete_arg, from);
}

/* ---- run_pack.c --------------------------------------------------------- */

/* The model's matrices as the run's products with packed weights take them. All runs of a model
 * with the same precision and instruction set share one copy, in memory of the model's
 * allocator, as long as one of them exists. */
tarn_status tn_run_pack(tarn_run *run, tarn_error *err);
void tn_run_unpack(tarn_run *run);               /* accepts one that is not packed */
size_t tn_run_packed_bytes(const tarn_run *run); /* of the copy */

/* ---- Checks ------------------------------------------------------------- */

/* Refuses the first float of frames (B, T, ...) within lengths (NULL: all) that is not
 * finite. */
tarn_status tn_frames_check(const tarn_run *run, const float *frames, size_t T,
                            const size_t *lengths, tarn_error *err);
tarn_status tn_lengths_check(const tarn_run *run, size_t T, const size_t *lengths,
                             tarn_error *err);

/* Refuses the first symbol that the model does not know. */
tarn_status tn_symbols_check(const tarn_model *model, const int32_t *symbols, size_t count,
                             const char *what, tarn_error *err);

#endif
