/* SPDX-License-Identifier: MIT */
/* slice_states.h - how the positions of a slice attend to those of slices before it, and how
 * the gradient of these comes back from those behind. What travels between processes is decided
 * by the kind of attention:
 *
 *   slice_sums.c  states that are sums over positions: of fixed size
 *   slice_ring.c  states that are all keys and values: these, and their gradients */
#ifndef TN_SLICE_STATES_H
#define TN_SLICE_STATES_H

#include "comm/tree_scan.h"
#include "layer/attention_kind.h"
#include "model/run.h"

/* Rows are B x H x N, of own slices one after the other where nothing else is said. */
struct tn_slice_ring {
    size_t rows;         /* of a slice, all heads together */
    size_t keys, values; /* floats of these rows */
    size_t pair, piece;  /* of both; and of all own slices */
    float *queries, *dqueries, *dy;
    float *pieces[2]; /* keys and values of the slices of a process, then their gradients: own,
                         and those that visit; one is received while the other is sent */
    float *home;      /* causal: gradients of own keys and values from all processes */
    float *sums;      /* what queries have seen, of every layer */
    struct tn_part_kept *kept;
    float *y, *saved, *dq, *dpair; /* of the slices that meet */
    size_t *lengths;               /* B: of their keys */
    double worked;                 /* seconds of the last turn */
};

struct tn_slice_states {
    const struct tn_slice_way *way;
    tarn_run *run;
    void *work; /* attention's */

    char *states;             /* before own slices, of every layer */
    float *totals;            /* not causal: sums of all keys, of every layer */
    struct tn_tree_scan scan; /* sums: B of them */
    float *sums, *dstates;    /* B */

    struct tn_slice_ring ring;
};

/* Own slice i of a layer. */
struct tn_slice_call {
    const tarn_attention *attention;
    size_t layer, i;
    tarn_attention_arrays arrays;
    void *saved, *work;
};

/* Of a layer: first `note` for all own slices, when their inputs are there, `exchange`, then
 * `forward`. Back: `note_back` for all, from the last to the first, when dy is there,
 * `exchange_back`, then `backward`. The slice is selected. */
struct tn_slice_way {
    bool keeps_outputs; /* and gradients: forward and backward copy them; else they need the
                           inputs, and backward dy, of the slice once more */
    void (*lay_out)(struct tn_slice_states *states, const tarn_attention *attention,
                    struct tn_arena *arena);
    void (*note)(struct tn_slice_states *states, const struct tn_slice_call *call);
    void (*exchange)(struct tn_slice_states *states, const tarn_attention *attention,
                     size_t layer);
    void (*forward)(struct tn_slice_states *states, const struct tn_slice_call *call);
    void (*note_back)(struct tn_slice_states *states, const struct tn_slice_call *call);
    void (*exchange_back)(struct tn_slice_states *states, const tarn_attention *attention,
                          size_t layer);
    void (*backward)(struct tn_slice_states *states, const struct tn_slice_call *call);
};

extern const struct tn_slice_way tn_slice_sums, tn_slice_ring;

/* NULL: this kind has no states that can be joined. */
const struct tn_slice_way *tn_slice_way_of(const tarn_attention *attention);

#endif
