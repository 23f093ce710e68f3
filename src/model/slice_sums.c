/* SPDX-License-Identifier: MIT */
/* slice_sums.c - a slice starts from the sum of those before it (tree_scan.h); the gradient of
 * what it adds to it is the sum of those behind. Not causal, both are the sums of all. */
#include "model/slice_states.h"

#include <string.h>

#include "model/slices.h"

const struct tn_slice_way *tn_slice_way_of(const tarn_attention *attention)
{
    return attention->kind->sums    ? &tn_slice_sums
           : attention->kind->parts ? &tn_slice_ring
                                    : NULL;
}

static size_t states_bytes(const struct tn_slice_states *s, const tarn_attention *attention)
{
    return tn_round_up(s->run->B * tarn_attention_state_size(attention), TN_ALIGN);
}

static char *state_of(const struct tn_slice_states *s, const tarn_attention *attention,
                      size_t layer, size_t i)
{
    return s->states + (layer * s->run->slices->own + i) * states_bytes(s, attention);
}

static void lay_out(struct tn_slice_states *s, const tarn_attention *attention,
                    struct tn_arena *arena)
{
    const tarn_run *const run = s->run;
    const size_t floats = run->B * attention->kind->sums->floats(attention);

    if (attention->causal)
        s->states = tn_arena_alloc(arena, tn_run_layers(run) * run->slices->own,
                                   states_bytes(s, attention));
    s->totals = tn_arena_floats(arena, attention->causal ? 0 : tn_run_layers(run) * floats);
    s->sums = tn_arena_floats(arena, floats);
    s->dstates = tn_arena_alloc(arena, states_bytes(s, attention), 1);
    s->scan = (struct tn_tree_scan){.comm = run->slices->comm,
                                    .host = &run->host,
                                    .own = run->slices->own,
                                    .floats = floats};
    tn_tree_scan_lay_out(&s->scan, arena);
}

static void note(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    tn_attention_sum(call->attention, &call->arrays, NULL, tn_tree_scan_leaf(&s->scan, call->i),
                     call->work);
}

/* What was summed for own slice i. */
static const float *sum_for(const struct tn_slice_states *s, size_t i)
{
    memset(s->sums, 0, s->scan.floats * sizeof *s->sums);
    tn_tree_scan_add(&s->scan, s->sums, i);
    return s->sums;
}

static void make_states(const struct tn_slice_states *s, const tarn_attention *attention,
                        size_t layer, size_t i)
{
    const struct tn_attention_sums *const kind = attention->kind->sums;
    const size_t bytes = tarn_attention_state_size(attention);
    const float *const sums = sum_for(s, i);
    char *const states = state_of(s, attention, layer, i);

    for (size_t b = 0; b < s->run->B; b++) {
        const size_t count = s->run->slices->counts[b];

        kind->to_state(attention, tn_state_floats(states + b * bytes),
                       sums + b * kind->floats(attention), count);
        tn_state_set(attention, states + b * bytes, count);
    }
}

static void exchange_sums(struct tn_slice_states *s, bool behind)
{
    tarn_error err;

    s->scan.behind = behind;
    if (s->run->slices->status == TARN_OK)
        tn_slices_keep(s->run, tn_tree_scan_exchange(&s->scan, &err), &err);
}

static float *total_of(const struct tn_slice_states *s, size_t layer)
{
    return s->totals + layer * s->scan.floats;
}

static void exchange(struct tn_slice_states *s, const tarn_attention *attention, size_t layer)
{
    exchange_sums(s, false);
    if (!attention->causal)
        memcpy(total_of(s, layer), tn_tree_scan_total(&s->scan),
               s->scan.floats * sizeof(float));
    for (size_t i = 0; attention->causal && i < s->run->slices->own; i++) {
        tn_slices_select(s->run, i);
        make_states(s, attention, layer, i);
    }
}

static void forward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    tarn_attention_arrays arrays = call->arrays;

    if (!call->attention->causal) {
        tn_attention_forward_slice(call->attention, &arrays, call->saved,
                                   total_of(s, call->layer), call->work);
        return;
    }
    arrays.state0 = state_of(s, call->attention, call->layer, call->i);
    tn_attention_forward(call->attention, &arrays, call->saved, call->work);
}

static void note_back(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    tn_attention_sum(call->attention, &call->arrays, call->saved,
                     tn_tree_scan_leaf(&s->scan, call->i), call->work);
}

static void exchange_back(struct tn_slice_states *s, const tarn_attention *attention,
                          size_t layer)
{
    (void)attention;
    (void)layer;
    exchange_sums(s, true);
}

static void backward_causal(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    const struct tn_attention_sums *const kind = call->attention->kind->sums;
    const size_t bytes = tarn_attention_state_size(call->attention);
    const float *const sums = sum_for(s, call->i);
    tarn_attention_arrays arrays = call->arrays;

    for (size_t b = 0; b < s->run->B; b++)
        kind->to_gradient(call->attention, tn_state_floats((char *)s->dstates + b * bytes),
                          sums + b * kind->floats(call->attention));
    arrays.state0 = state_of(s, call->attention, call->layer, call->i);
    arrays.dstate1 = s->dstates;
    tn_attention_backward(call->attention, &arrays, call->saved, call->work);
}

static void backward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    if (call->attention->causal)
        backward_causal(s, call);
    else
        tn_attention_backward_slice(call->attention, &call->arrays, call->saved,
                                    total_of(s, call->layer), tn_tree_scan_total(&s->scan),
                                    call->work);
}

const struct tn_slice_way tn_slice_sums = {
    .lay_out = lay_out,
    .note = note,
    .exchange = exchange,
    .forward = forward,
    .note_back = note_back,
    .exchange_back = exchange_back,
    .backward = backward,
};
