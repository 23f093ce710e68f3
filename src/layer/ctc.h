/* SPDX-License-Identifier: MIT */
/* ctc.h - connectionist temporal classification (Graves et al. 2006): how likely a sequence of
 * labels is, whatever the frames at which they begin.
 *
 * Every frame has S outputs x, whose softmax y is a distribution over a blank, symbol 0, and
 * labels 1 .. S - 1. A path of one symbol per frame stands for the labels that are left when
 * equal neighbours are merged and then blanks are dropped; the probability of a path is the
 * product of its y, and
 *
 *     loss = -log (sum over all paths that stand for the labels of their probabilities)
 *     dx   = dloss (y - q),     q_k at a frame: the share of paths that have symbol k there
 *
 * Sums and products carry a float beside an exponent (kernel_body_ctc.h), so that neither the
 * number of frames nor the size of outputs is limited by what a float holds. */
#ifndef TN_CTC_H
#define TN_CTC_H

#include "kernel/kernels.h"

/* B sequences of N rows of S outputs, and who works on them. */
struct tn_ctc {
    const struct tn_kernels *kernels;
    size_t threads; /* at least 1 */
    size_t B, N, S;
};

struct tn_ctc_call {
    const struct tn_ctc *ctc;
    double *losses;        /* B: -log probability; infinity: no path stands for the labels */
    float *dx;             /* (B, N, S), 0 beyond lengths and where a loss is not finite;
                             NULL: not wanted; may be x */
    const float *x;        /* (B, N, S); not looked at beyond lengths */
    const size_t *frames;  /* B lengths; NULL: all are N */
    const int32_t *labels; /* 1 .. S - 1, of all sequences one after the other; not looked at in
                              sequences of dloss 0 */
    const size_t *counts;  /* B: labels of each */
    const float *dloss;    /* B: factors of the gradients; 0: left out, loss 0. NULL: all 1 */
    void *scratch;         /* tn_ctc_scratch_size() bytes, of any alignment */
};

size_t tn_ctc_scratch_size(const struct tn_ctc *ctc); /* SIZE_MAX: too many */

/* Results are the same to the last bit for any number of threads. */
void tn_ctc_loss(const struct tn_ctc_call *call);

/* Of N frames every K-th is kept, and those between two of them are computed again: about
 * 2 sqrt(N) frames in memory for half as much work again. */
size_t tn_ctc_kept_apart(size_t N);

/* Frames that the labels need: equal neighbours have a blank between them. */
size_t tn_ctc_needs(const int32_t *labels, size_t count);

#endif
