/* SPDX-License-Identifier: MIT */
/* ctc_decode.h - from CTC's outputs (ctc.h) to labels.
 *
 * Greedy takes the most likely symbol of every frame, the best path, and can do so while frames
 * come in. The beam looks for the most likely labels, the sum over all their paths. */
#ifndef TN_CTC_DECODE_H
#define TN_CTC_DECODE_H

#include "kernel/kernels.h"

struct tn_ctc_symbol {
    int32_t symbol;
    size_t frame;      /* where it begins in the best path that stands for the labels */
    double confidence; /* its greatest probability in the frames that the path gives it */
};

/* ---- ctc_align.c -------------------------------------------------------- */

/* One sequence of up to N frames of S outputs. */
struct tn_ctc_frames {
    const struct tn_kernels *kernels;
    size_t N, S;
};

/* log of the sum of exps of a frame's outputs, so that x_k less it is log y_k. */
double tn_ctc_log_sum(const float *x, size_t S);

/* log of the sum over all paths that stand for the labels, of T <= N frames; -infinity: there
 * are none. `scratch` of any alignment, as below. */
size_t tn_ctc_score_scratch(const struct tn_ctc_frames *frames); /* bytes */
double tn_ctc_score(const struct tn_ctc_frames *frames, const float *x, size_t T,
                    const int32_t *labels, size_t count, void *scratch);

/* The best path that stands for the labels: fills `count` symbols and returns the path's
 * log-probability; -infinity, and frames and confidences 0, if there is none. */
size_t tn_ctc_align_scratch(const struct tn_ctc_frames *frames);
double tn_ctc_align(const struct tn_ctc_frames *frames, struct tn_ctc_symbol *symbols,
                    const float *x, size_t T, const int32_t *labels, size_t count,
                    void *scratch);

/* ---- ctc_beam.c --------------------------------------------------------- */

/* Likely labels, where `width` beginnings of labels, at least 1, are kept from frame to frame;
 * at least as likely as greedy's. Fills up to T symbols, *count says how many, and returns
 * their tn_ctc_score(). */
size_t tn_ctc_beam_scratch(const struct tn_ctc_frames *frames, size_t width);
double tn_ctc_beam(const struct tn_ctc_frames *frames, size_t width,
                   struct tn_ctc_symbol *symbols, size_t *count, const float *x, size_t T,
                   void *scratch);

/* ---- ctc_decode.c ------------------------------------------------------- */

/* A decoder at some frame; plain memory, zeros are the start. */
struct tn_ctc_greedy {
    size_t frame;              /* how many were there */
    struct tn_ctc_symbol open; /* that may continue; 0: a blank */
    double log_probability;    /* of the path so far */
};

/* Writes symbols that ended within the next n frames of S outputs, at most n, and returns how
 * many. A frame without any number counts as a blank. */
size_t tn_ctc_greedy_push(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *symbols,
                          const float *x, size_t n, size_t S);

/* The end: the symbol that is still open, 0 or 1. The path is then over. */
size_t tn_ctc_greedy_end(struct tn_ctc_greedy *greedy, struct tn_ctc_symbol *symbols);

/* A whole sequence by a beam so wide, or greedily if that is 0: up to T symbols, and the
 * log-probability of the labels, or of greedy's path. */
size_t tn_ctc_decode_scratch(const struct tn_ctc_frames *frames, size_t beam);
double tn_ctc_decode(const struct tn_ctc_frames *frames, size_t beam,
                     struct tn_ctc_symbol *symbols, size_t *count, const float *x, size_t T,
                     void *scratch);

#endif
