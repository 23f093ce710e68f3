/* SPDX-License-Identifier: MIT */
/* head_ctc.c - sequences of labels without saying where they stand (ctc.h): one output per
 * symbol, of which 0 is the blank and the others are labels.
 *
 * The loss of a sequence is in nats for all of its labels together. Sequences are summed in
 * order. */
#include <math.h>

#include "layer/ctc.h"
#include "layer/head.h"

struct work {
    float *dloss;
    double *losses;
    void *scratch;
};

static struct tn_ctc ctc_of(const struct tn_head *head, const struct tn_rows *r, size_t B)
{
    return (struct tn_ctc){r->kernels, r->threads, B, r->rows / B, head->outputs};
}

static struct work lay_out(const struct tn_ctc *ctc, struct tn_arena *arena)
{
    struct work work;

    work.dloss = tn_arena_floats(arena, ctc->B);
    work.losses = tn_arena_alloc(arena, ctc->B, sizeof *work.losses);
    work.scratch = tn_arena_alloc(arena, 1, tn_ctc_scratch_size(ctc));
    return work;
}

static void work_size(const struct tn_head *head, const struct tn_rows *r, size_t B,
                      struct tn_arena *arena)
{
    const struct tn_ctc ctc = ctc_of(head, r, B);

    lay_out(&ctc, arena);
}

static float weight_at(const struct tn_head_call *call, size_t b)
{
    return call->weights ? call->weights[b] : 1.0f;
}

static void add_sequence(struct tn_loss *sums, double loss, double weight)
{
    if (loss == (double)INFINITY) {
        sums->impossible += weight;
    } else {
        sums->loss += weight * loss;
        sums->weight += weight;
    }
}

static void loss_of(const struct tn_head_call *call, struct tn_loss *loss)
{
    const struct tn_head_sequences *const sequences = &call->sequences;
    const struct tn_ctc ctc = ctc_of(call->head, call->rows, sequences->B);
    struct tn_arena arena = tn_arena_over(call->scratch);
    const struct work work = lay_out(&ctc, &arena);

    for (size_t b = 0; b < ctc.B; b++)
        work.dloss[b] = weight_at(call, b) * (call->doutputs ? call->scale : 1.0f);
    tn_ctc_loss(&(struct tn_ctc_call){
        .ctc = &ctc,
        .losses = work.losses,
        .dx = call->doutputs,
        .x = call->outputs,
        .frames = sequences->lengths,
        .labels = call->targets,
        .counts = sequences->counts,
        .dloss = work.dloss,
        .scratch = work.scratch,
    });
    *loss = (struct tn_loss){.correct = (double)NAN};
    for (size_t b = 0; b < ctc.B; b++) {
        add_sequence(loss, work.losses[b], (double)weight_at(call, b));
        if (sequences->losses)
            sequences->losses[b] = work.losses[b];
    }
}

const struct tn_head_row tn_head_ctc = {
    .about = {"ctc", "CTC: symbol sequences without alignment; symbol 0 is the blank",
              tn_no_options},
    .least = 2,
    .most = INT32_MAX,
    .sequence = true,
    .needs = tn_ctc_needs,
    .work = work_size,
    .loss = loss_of,
};
