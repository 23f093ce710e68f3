/* SPDX-License-Identifier: MIT */
/* clip.h - gradient clipping.
 *
 * Nothing is written to gradients: a factor for each tensor comes out, which the optimizer
 * applies as it reads (tn_optimizer_update). */
#ifndef TN_CLIP_H
#define TN_CLIP_H

#include "base/option.h"
#include "kernel/host.h"
#include "train/pieces.h"

enum tn_clip_kind {
    TN_CLIP_NONE,
    TN_CLIP_TENSOR, /* each tensor to a norm of its own, as the paper's authors do */
    TN_CLIP_GLOBAL  /* all together */
};

struct tn_clip {
    enum tn_clip_kind kind;
    double norm;
};

struct tn_clip_result {
    double norm;  /* of all gradients together, before clipping */
    size_t wrong; /* the first tensor whose norm is not finite; the number of tensors: none */
};

extern const struct tn_table tn_clips;

/* Reads "none", "tensor:norm=1" or "global:norm=1". */
tarn_status tn_clip_init(struct tn_clip *clip, const char *spec, tarn_error *err);

/* scales[i] = min(1, c / norm) of tensor i, or of all. Scratch is tn_pieces_count() doubles. If
 * a norm is not finite (a gradient is not, or from some 1e17 on its square in float), all
 * scales are 0 and the update must be left out: zero times such a gradient is not a number
 * either. Bits do not depend on the number of threads. */
struct tn_clip_result tn_clip_scales(const struct tn_clip *clip, float *scales, double *scratch,
                                     const float *g, const struct tn_range *tensors,
                                     size_t count, const struct tn_host *host);

#endif
