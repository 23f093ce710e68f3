/* SPDX-License-Identifier: MIT */
/* lstm_sweep_onednn.c - oneDNN's LSTM, version 2 or 3: its gates are in PyTorch's order, its
 * weights (in, gate, unit) where PyTorch's are (gate, unit, in), and it adds to the gradients
 * of weights. The state before the first frame is handed over, though it is zeros: without it
 * version 2.6 takes the h of a frame for that of the frame before in the gradient of U. */
#include <string.h>

#include "kernel/lstm_sweep.h"
#include "kernel/onednn.h"

/* What is described to oneDNN. */
enum { X, STATE, W, U, BIAS, Y, DX, DW, DU, DBIAS, DY, DESCRIBED };

/* ---- what differs between version 2 and 3 ------------------------------- */

#if DNNL_VERSION_MAJOR >= 3

static dnnl_status_t plan_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  dnnl_prop_kind_t kind, dnnl_memory_desc_t *md,
                                  dnnl_primitive_attr_t attr)
{
    return dnnl_lstm_forward_primitive_desc_create(
        pd, engine, kind, dnnl_unidirectional_left2right, md[X], md[STATE], md[STATE], md[W],
        md[U], NULL, NULL, md[BIAS], md[Y], NULL, NULL, dnnl_rnn_flags_undef, attr);
}

static dnnl_status_t plan_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                   dnnl_memory_desc_t *md, dnnl_primitive_desc_t forward,
                                   dnnl_primitive_attr_t attr)
{
    return dnnl_lstm_backward_primitive_desc_create(
        pd, engine, dnnl_backward, dnnl_unidirectional_left2right, md[X], md[STATE], md[STATE],
        md[W], md[U], NULL, NULL, md[BIAS], md[Y], NULL, NULL, md[DX], md[STATE], md[STATE],
        md[DW], md[DU], NULL, NULL, md[DBIAS], md[DY], NULL, NULL, dnnl_rnn_flags_undef,
        forward, attr);
}

#else

static dnnl_status_t plan_forward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  dnnl_prop_kind_t kind, dnnl_memory_desc_t *md,
                                  dnnl_primitive_attr_t attr)
{
    dnnl_rnn_desc_t desc;
    const dnnl_status_t status = dnnl_lstm_forward_desc_init(
        &desc, kind, dnnl_unidirectional_left2right, &md[X], &md[STATE], &md[STATE], &md[W],
        &md[U], &md[BIAS], &md[Y], NULL, NULL, dnnl_rnn_flags_undef);

    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, NULL)
                                  : status;
}

static dnnl_status_t plan_backward(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                   dnnl_memory_desc_t *md, dnnl_primitive_desc_t forward,
                                   dnnl_primitive_attr_t attr)
{
    dnnl_rnn_desc_t desc;
    const dnnl_status_t status = dnnl_lstm_backward_desc_init(
        &desc, dnnl_backward, dnnl_unidirectional_left2right, &md[X], &md[STATE], &md[STATE],
        &md[W], &md[U], &md[BIAS], &md[Y], NULL, NULL, &md[DX], &md[STATE], &md[STATE], &md[DW],
        &md[DU], &md[DBIAS], &md[DY], NULL, NULL, dnnl_rnn_flags_undef);

    return status == dnnl_success ? dnnl_primitive_desc_create(pd, &desc, attr, engine, forward)
                                  : status;
}

#endif

/* ---- planning ----------------------------------------------------------- */

/* One way, forth or back, and what brings PyTorch's W and U into its order. */
struct way {
    dnnl_primitive_t primitive, hold_in, hold_hidden;
};

struct tn_lstm_sweep {
    struct tn_lstm_sweep_desc desc;
    tarn_allocator allocator_copy;
    dnnl_engine_t engine;
    struct way forth, back; /* back: zeros unless it trains */
    size_t scratchpad;      /* bytes, of any of them */
};

/* (T, R, width). */
static dnnl_status_t describe_frames(dnnl_memory_desc_t *md, const struct tn_lstm_sweep_desc *d,
                                     size_t width)
{
    const dnnl_dim_t rows = (dnnl_dim_t)d->R, wide = (dnnl_dim_t)width;

    return tn_onednn_describe(md, 3, (dnnl_dim_t[]){(dnnl_dim_t)d->T, rows, wide}, dnnl_f32,
                              (dnnl_dim_t[]){rows * wide, wide, 1});
}

/* h or c of all sequences. */
static dnnl_status_t describe_state(dnnl_memory_desc_t *md, const struct tn_lstm_sweep_desc *d)
{
    const dnnl_dim_t rows = (dnnl_dim_t)d->R, H = (dnnl_dim_t)d->units;

    return tn_onednn_describe(md, 4, (dnnl_dim_t[]){1, 1, rows, H}, dnnl_f32,
                              (dnnl_dim_t[]){rows * H, rows * H, H, 1});
}

enum order { PYTORCHS, TRANSPOSED, LIKED };

/* Weights that read `from` floats. */
static dnnl_status_t describe_weights(dnnl_memory_desc_t *md, size_t from, size_t units,
                                      enum order order)
{
    const dnnl_dim_t in = (dnnl_dim_t)from, H = (dnnl_dim_t)units, all = 4 * H * in;
    const dnnl_dim_t sizes[] = {1, 1, in, 4, H};
    const dnnl_dim_t pytorchs[] = {all, all, 1, H * in, in}, turned[] = {all, all, 4 * H, H, 1};

    return tn_onednn_describe(md, 5, sizes, dnnl_f32,
                              order == PYTORCHS     ? pytorchs
                              : order == TRANSPOSED ? turned
                                                    : NULL);
}

static dnnl_status_t describe_bias(dnnl_memory_desc_t *md, size_t units)
{
    const dnnl_dim_t H = (dnnl_dim_t)units;

    return tn_onednn_describe(md, 4, (dnnl_dim_t[]){1, 1, 4, H}, dnnl_f32,
                              (dnnl_dim_t[]){4 * H, 4 * H, H, 1});
}

static dnnl_status_t describe_all(dnnl_memory_desc_t *md, const struct tn_lstm_sweep_desc *d)
{
    const dnnl_status_t each[] = {
        describe_frames(&md[X], d, d->in),
        describe_state(&md[STATE], d),
        describe_frames(&md[Y], d, d->units),
        describe_frames(&md[DX], d, d->in),
        describe_frames(&md[DY], d, d->units),
        describe_weights(&md[W], d->in, d->units, LIKED),
        describe_weights(&md[U], d->units, d->units, LIKED),
        describe_weights(&md[DW], d->in, d->units, TRANSPOSED),
        describe_weights(&md[DU], d->units, d->units, TRANSPOSED),
        describe_bias(&md[BIAS], d->units),
        describe_bias(&md[DBIAS], d->units),
    };

    for (size_t i = 0; i < sizeof each / sizeof each[0]; i++)
        if (each[i] != dnnl_success)
            return each[i];
    return dnnl_success;
}

static dnnl_status_t make_hold(dnnl_primitive_t *hold, struct tn_lstm_sweep *sweep,
                               dnnl_primitive_t user, int argument, size_t from,
                               dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t pytorchs;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status = describe_weights(&pytorchs, from, sweep->desc.units, PYTORCHS);

    if (status != dnnl_success)
        return status;
    status = dnnl_reorder_primitive_desc_create(&pd, tn_onednn_layout(&pytorchs), sweep->engine,
                                                tn_onednn_layout_of(user, argument),
                                                sweep->engine, attr);
    tn_onednn_forget(&pytorchs, 1);
    return status == dnnl_success ? tn_onednn_create(hold, pd) : status;
}

static dnnl_status_t make_way(struct way *way, struct tn_lstm_sweep *sweep,
                              dnnl_primitive_desc_t pd, dnnl_primitive_attr_t attr)
{
    const struct tn_lstm_sweep_desc *const d = &sweep->desc;
    dnnl_status_t status = dnnl_primitive_create(&way->primitive, pd);

    if (status == dnnl_success)
        status = make_hold(&way->hold_in, sweep, way->primitive, DNNL_ARG_WEIGHTS_LAYER, d->in,
                           attr);
    if (status == dnnl_success)
        status = make_hold(&way->hold_hidden, sweep, way->primitive, DNNL_ARG_WEIGHTS_ITER,
                           d->units, attr);
    return status;
}

static dnnl_status_t make_ways(struct tn_lstm_sweep *sweep, dnnl_memory_desc_t *md,
                               dnnl_primitive_attr_t attr)
{
    const dnnl_prop_kind_t kind =
        sweep->desc.trains ? dnnl_forward_training : dnnl_forward_inference;
    dnnl_primitive_desc_t forth = NULL, back = NULL;
    dnnl_status_t status = plan_forward(&forth, sweep->engine, kind, md, attr);

    if (status == dnnl_success)
        status = make_way(&sweep->forth, sweep, forth, attr);
    if (status == dnnl_success && sweep->desc.trains) {
        status = plan_backward(&back, sweep->engine, md, forth, attr);
        if (status == dnnl_success)
            status = make_way(&sweep->back, sweep, back, attr);
    }
    dnnl_primitive_desc_destroy(forth);
    dnnl_primitive_desc_destroy(back);
    return status;
}

static size_t scratchpad_of(const struct way *way)
{
    return tn_max(tn_onednn_bytes_of(way->primitive, DNNL_ARG_SCRATCHPAD),
                  tn_max(tn_onednn_bytes_of(way->hold_in, DNNL_ARG_SCRATCHPAD),
                         tn_onednn_bytes_of(way->hold_hidden, DNNL_ARG_SCRATCHPAD)));
}

static dnnl_status_t plan(struct tn_lstm_sweep *sweep)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_memory_desc_t md[DESCRIBED] = {0};
    dnnl_status_t status = dnnl_engine_create(&sweep->engine, dnnl_cpu, 0);

    if (status == dnnl_success)
        status = tn_onednn_attributes(&attr);
    if (status == dnnl_success)
        status = describe_all(md, &sweep->desc);
    if (status == dnnl_success)
        status = make_ways(sweep, md, attr);
    if (status == dnnl_success)
        sweep->scratchpad = tn_max(scratchpad_of(&sweep->forth),
                                   sweep->desc.trains ? scratchpad_of(&sweep->back) : 0);
    tn_onednn_forget(md, DESCRIBED);
    dnnl_primitive_attr_destroy(attr);
    return status;
}

tarn_status tn_lstm_sweep_create(struct tn_lstm_sweep **sweep,
                                 const struct tn_lstm_sweep_desc *desc, tarn_error *err)
{
    struct tn_lstm_sweep *const made = tn_allocate(desc->allocator, sizeof *made);

    *sweep = NULL;
    if (!made)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for an LSTM plan");
    *made = (struct tn_lstm_sweep){.desc = *desc};
    if (desc->allocator)
        made->allocator_copy = *desc->allocator;

    const int before = tn_onednn_alone_begin();
    const dnnl_status_t status = plan(made);

    tn_onednn_alone_end(before);
    if (status != dnnl_success) {
        tn_lstm_sweep_free(made);
        return tn_fail(err, status == dnnl_out_of_memory ? TARN_ENOMEM : TARN_EMACHINE,
                       "backend: oneDNN does not support an LSTM of this size here");
    }
    *sweep = made;
    return TARN_OK;
}

static void way_clear(struct way *way)
{
    dnnl_primitive_destroy(way->primitive);
    dnnl_primitive_destroy(way->hold_in);
    dnnl_primitive_destroy(way->hold_hidden);
}

void tn_lstm_sweep_free(struct tn_lstm_sweep *sweep)
{
    if (!sweep)
        return;
    const tarn_allocator allocator = sweep->allocator_copy;

    way_clear(&sweep->forth);
    way_clear(&sweep->back);
    dnnl_engine_destroy(sweep->engine);
    tn_release(sweep->desc.allocator ? &allocator : NULL, sweep);
}

/* ---- memory ------------------------------------------------------------- */

/* What lies behind oneDNN's scratchpad: the state before the first frame, and its gradient. */
struct states {
    float *zeros, *dh, *dc;
};

static struct states take_states(const struct tn_lstm_sweep *sweep, struct tn_arena *arena)
{
    const size_t floats = sweep->desc.R * sweep->desc.units;
    struct states states = {.zeros = tn_arena_floats(arena, floats)};

    states.dh = tn_arena_floats(arena, floats);
    states.dc = tn_arena_floats(arena, floats);
    return states;
}

static struct states states_in(const struct tn_lstm_sweep *sweep, void *scratch)
{
    struct tn_arena arena = tn_arena_over((char *)scratch + sweep->scratchpad);
    const struct states states = take_states(sweep, &arena);

    memset(states.zeros, 0, sweep->desc.R * sweep->desc.units * sizeof(float));
    return states;
}

/* Of weights, held in either way. */
static size_t held_size(const struct tn_lstm_sweep *sweep, int argument)
{
    return tn_max(tn_onednn_bytes_of(sweep->forth.primitive, argument),
                  sweep->desc.trains ? tn_onednn_bytes_of(sweep->back.primitive, argument) : 0);
}

struct tn_lstm_sweep_sizes tn_lstm_sweep_sizes(const struct tn_lstm_sweep *sweep)
{
    struct tn_arena arena = tn_arena_over(NULL);

    take_states(sweep, &arena);
    return (struct tn_lstm_sweep_sizes){
        .in = held_size(sweep, DNNL_ARG_WEIGHTS_LAYER),
        .hidden = held_size(sweep, DNNL_ARG_WEIGHTS_ITER),
        .tape = tn_onednn_bytes_of(sweep->forth.primitive, DNNL_ARG_WORKSPACE),
        .scratch = sweep->scratchpad + tn_round_up(tn_arena_bytes(&arena), TN_ALIGN),
    };
}

/* ---- running ------------------------------------------------------------ */

static bool hold_one(const struct tn_lstm_sweep *sweep, dnnl_primitive_t hold, void *held,
                     const float *weights, void *scratch)
{
    const struct tn_onednn_array of[] = {
        {DNNL_ARG_FROM, weights},
        {DNNL_ARG_TO, held},
        {DNNL_ARG_SCRATCHPAD, scratch},
    };

    return tn_onednn_run(hold, sweep->engine, of, sizeof of / sizeof of[0]) == dnnl_success;
}

bool tn_lstm_sweep_hold(const struct tn_lstm_sweep *sweep, void *in, void *hidden,
                        const float *weights_in, const float *weights_hidden, bool back,
                        void *scratch)
{
    const struct way *const way = back ? &sweep->back : &sweep->forth;

    return hold_one(sweep, way->hold_in, in, weights_in, scratch) &&
           hold_one(sweep, way->hold_hidden, hidden, weights_hidden, scratch);
}

/* Forth there are no gradients. */
static bool run_way(const struct tn_lstm_sweep *sweep, const struct tn_lstm_sweep_arrays *a,
                    bool back)
{
    const struct states states = states_in(sweep, a->scratch);
    const struct tn_onednn_array of[] = {
        {DNNL_ARG_SRC_LAYER, a->x},
        {DNNL_ARG_SRC_ITER, states.zeros},
        {DNNL_ARG_SRC_ITER_C, states.zeros},
        {DNNL_ARG_WEIGHTS_LAYER, a->in},
        {DNNL_ARG_WEIGHTS_ITER, a->hidden},
        {DNNL_ARG_BIAS, a->bias},
        {DNNL_ARG_DST_LAYER, a->y},
        {DNNL_ARG_WORKSPACE, sweep->desc.trains ? a->tape : NULL},
        {DNNL_ARG_DIFF_DST_LAYER, back ? a->dy : NULL},
        {DNNL_ARG_DIFF_SRC_LAYER, back ? a->dx : NULL},
        {DNNL_ARG_DIFF_SRC_ITER, back ? states.dh : NULL},
        {DNNL_ARG_DIFF_SRC_ITER_C, back ? states.dc : NULL},
        {DNNL_ARG_DIFF_WEIGHTS_LAYER, back ? a->din : NULL},
        {DNNL_ARG_DIFF_WEIGHTS_ITER, back ? a->dhidden : NULL},
        {DNNL_ARG_DIFF_BIAS, back ? a->dbias : NULL},
        {DNNL_ARG_SCRATCHPAD, a->scratch},
    };
    const struct way *const way = back ? &sweep->back : &sweep->forth;

    return tn_onednn_run(way->primitive, sweep->engine, of, sizeof of / sizeof of[0]) ==
           dnnl_success;
}

bool tn_lstm_sweep_forward(const struct tn_lstm_sweep *sweep,
                           const struct tn_lstm_sweep_arrays *arrays)
{
    return run_way(sweep, arrays, false);
}

bool tn_lstm_sweep_backward(const struct tn_lstm_sweep *sweep,
                            const struct tn_lstm_sweep_arrays *arrays)
{
    const size_t H = sweep->desc.units;

    memset(arrays->din, 0, 4 * H * sweep->desc.in * sizeof(float));
    memset(arrays->dhidden, 0, 4 * H * H * sizeof(float));
    memset(arrays->dbias, 0, 4 * H * sizeof(float));
    return run_way(sweep, arrays, true);
}
