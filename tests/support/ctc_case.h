/* SPDX-License-Identifier: MIT */
/* ctc_case.h - a call of CTC with its arrays. */
#ifndef CTC_CASE_H
#define CTC_CASE_H

#include "layer/ctc.h"
#include "support/layer_case.h"

struct ctc_case {
    struct tn_ctc ctc;
    struct floats x, dx, dloss;
    size_t *frames, *counts;
    int32_t *labels;
    double *losses;
    void *scratch;
};

/* Room for `most` labels in each of the sequences. */
struct ctc_case ctc_open(struct tn_ctc ctc, size_t most, double spread,
                         struct tn_random *random);
void ctc_close(struct ctc_case *c);

/* Labels of every second sequence repeat often. */
void ctc_draw(struct ctc_case *c, size_t most, struct tn_random *random);

/* Losses, and gradients unless dx is NULL. */
void ctc_run(struct ctc_case *c, float *dx);

#endif
