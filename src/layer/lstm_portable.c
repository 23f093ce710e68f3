/* SPDX-License-Identifier: MIT */
/* lstm_portable.c - the LSTM by our own loops. x W^T of all frames is one product; the rest
 * goes frame by frame, since a frame needs the h of the one before. Directions and chunks of
 * sequences go side by side, on one thread each, with U packed once for all frames. A row of
 * a packed product is the same to the last bit whatever rows are beside it, so that the cut
 * into chunks may follow the number of threads.
 *
 * Backward, with dh the gradient of h from the output and from the frame after,
 *
 *     dz by the gates (kernel_body_lstm.h)      dh of the frame before = dz U
 *     dU = sum of dz h^T,  dW = sum of dz x^T,  db = db' = sum of dz,  dx = dz W
 *
 * where the second line is again products of all frames at once. */
#include "layer/lstm.h"

#include <string.h>

/* ---- life --------------------------------------------------------------- */

struct portable {
    size_t chunk, chunks; /* sequences that go together, at most; how many such */
    struct tn_dense project[TN_LSTM_WAYS]; /* x W^T + b of all frames */
    struct tn_matmul *hidden; /* dU = dz^T h, of all frames; NULL unless it trains */
};

static tarn_status plan_project(struct tn_lstm *lstm, tarn_error *err)
{
    const struct tn_lstm_desc *const d = &lstm->desc;
    struct portable *const own = lstm->own;
    tarn_status status = TARN_OK;

    for (size_t way = 0; way < lstm->ways && status == TARN_OK; way++)
        status = tn_dense_init(&own->project[way],
                               &(struct tn_dense_desc){.rows = d->B * d->N,
                                                       .in = d->in,
                                                       .out = 4 * d->units,
                                                       .bias = true,
                                                       .trains = d->trains,
                                                       .add_dx = way > 0},
                               lstm->host, err);
    return status;
}

static tarn_status plan_products(struct tn_lstm *lstm, tarn_error *err)
{
    const struct tn_lstm_desc *const d = &lstm->desc;
    const size_t H = d->units;
    const struct tn_matmul_desc hidden = {
        .m = 4 * H, .n = H, .k = d->B * d->N, .transpose_a = true, .add = true};
    struct portable *const own = lstm->own;
    tarn_status status = plan_project(lstm, err);

    if (status == TARN_OK && d->trains)
        status = tn_matmul_create(&own->hidden, &hidden, lstm->host, err);
    return status;
}

static tarn_status create(struct tn_lstm *lstm, tarn_error *err)
{
    struct portable *const own = lstm->own;
    const size_t B = lstm->desc.B;

    own->chunk = tn_blocks(B, tn_blocks(lstm->host->threads, lstm->ways));
    own->chunks = tn_blocks(B, own->chunk);
    return plan_products(lstm, err);
}

static void clear(struct tn_lstm *lstm)
{
    struct portable *const own = lstm->own;

    for (size_t way = 0; way < TN_LSTM_WAYS; way++)
        tn_dense_clear(&own->project[way]);
    tn_matmul_free(own->hidden);
}

/* ---- memory ------------------------------------------------------------- */

/* Of a chunk in a direction. */
struct lane {
    float *h, *more; /* chunk x H, x 4H; backwards dh, dz */
    float *c;        /* chunk x H: backwards dc */
    float *packed;   /* h, or dz, for a product */
};

/* Of all frames, what backward reads: the tape, or scratch in a plan that does not train. */
struct history {
    float *gates[TN_LSTM_WAYS]; /* B N x 4H */
    float *cells[TN_LSTM_WAYS]; /* B N x H */
};

struct work {
    struct history history;
    struct lane *lanes;     /* ways x chunks */
    float *bias, *zeros;    /* 4H: the sum of both; H */
    float *U[TN_LSTM_WAYS]; /* packed, or its transpose */
    float *before;          /* B N x H: h that a frame began with */
    void *scratch;          /* of the products of all frames */
};

static size_t shared_scratch(const struct tn_lstm *lstm)
{
    const struct portable *const own = lstm->own;
    size_t most = own->hidden ? tn_matmul_scratch_size(own->hidden) : 0;

    for (size_t way = 0; way < lstm->ways; way++)
        most = tn_max(most, tn_dense_scratch_size(&own->project[way]));
    return most;
}

static size_t panel_floats(const struct tn_lstm *lstm, bool of_b, size_t items, size_t k)
{
    return tn_panels(lstm->host->kernels, of_b, items) *
           tn_panel_width(lstm->host->kernels, of_b) * k;
}

static struct lane take_lane(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const struct portable *const own = lstm->own;
    const size_t H = lstm->desc.units, rows = own->chunk;
    struct lane lane;

    lane.h = tn_arena_floats(arena, rows * H);
    lane.c = tn_arena_floats(arena, rows * H);
    lane.more = tn_arena_floats(arena, rows * 4 * H);
    lane.packed =
        tn_arena_floats(arena, panel_floats(lstm, false, rows, lstm->desc.trains ? 4 * H : H));
    return lane;
}

static struct history take_history(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const size_t rows = lstm->desc.B * lstm->desc.N, H = lstm->desc.units;
    struct history history = {0};

    for (size_t way = 0; way < lstm->ways; way++) {
        history.gates[way] = tn_arena_floats(arena, rows * 4 * H);
        history.cells[way] = tn_arena_floats(arena, rows * H);
    }
    return history;
}

static struct work lay_out(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const struct portable *const own = lstm->own;
    const size_t H = lstm->desc.units, lanes = lstm->ways * own->chunks;
    struct work work = {.lanes = tn_arena_take(arena, lanes, sizeof *work.lanes)};

    for (size_t i = 0; i < lanes; i++) {
        const struct lane lane = take_lane(lstm, arena);

        if (work.lanes)
            work.lanes[i] = lane;
    }
    work.bias = tn_arena_floats(arena, 4 * H);
    work.zeros = tn_arena_floats(arena, H);
    for (size_t way = 0; way < lstm->ways; way++)
        work.U[way] = tn_arena_floats(arena, tn_max(panel_floats(lstm, true, 4 * H, H),
                                                    panel_floats(lstm, true, H, 4 * H)));
    if (lstm->desc.trains)
        work.before = tn_arena_floats(arena, lstm->desc.B * lstm->desc.N * H);
    else
        work.history = take_history(lstm, arena);
    work.scratch = tn_arena_take(arena, shared_scratch(lstm), 1);
    return work;
}

static struct work work_open(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape,
                             void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct work work = lay_out(lstm, &arena);

    if (lstm->desc.trains) {
        arena = tn_arena_over(tape->at);
        work.history = take_history(lstm, &arena);
    }
    memset(work.zeros, 0, lstm->desc.units * sizeof(float));
    return work;
}

static size_t scratch_size(const struct tn_lstm *lstm)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(lstm, &arena);
    return tn_arena_bytes(&arena);
}

static size_t tape_size(const struct tn_lstm *lstm)
{
    struct tn_arena arena = tn_arena_over(NULL);

    take_history(lstm, &arena);
    return tn_arena_bytes(&arena);
}

/* ---- frame by frame ----------------------------------------------------- */

struct call {
    const struct tn_lstm *lstm;
    const struct tn_lstm_weights *weights;
    const struct work *work;
    float *y;        /* forward */
    const float *dy; /* backward */
    const size_t *lengths;
};

/* Sequences of one chunk, in one direction. */
struct run {
    const struct call *call;
    const struct lane *lane;
    size_t way, from, to, longest;
};

static size_t length_of(const struct call *call, size_t b)
{
    return tn_lstm_length(call->lstm, call->lengths, b);
}

static struct run run_of(const struct call *call, size_t index)
{
    const struct portable *const own = call->lstm->own;
    struct run run = {.call = call,
                      .lane = &call->work->lanes[index],
                      .way = index / own->chunks,
                      .from = index % own->chunks * own->chunk};

    run.to = tn_min(call->lstm->desc.B, run.from + own->chunk);
    for (size_t b = run.from; b < run.to; b++)
        run.longest = tn_max(run.longest, length_of(call, b));
    return run;
}

/* The row of sequence b that is number `step` in the run's direction. */
static size_t row_at(const struct run *run, size_t b, size_t step)
{
    return tn_lstm_row(run->call->lstm, run->call->lengths, run->way, b, step);
}

/* c before a step. */
static const float *cell_before(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;

    return step == 0 ? call->work->zeros
                     : call->work->history.cells[run->way] +
                           row_at(run, b, step - 1) * call->lstm->desc.units;
}

static void clear_lane(const struct run *run)
{
    const size_t floats = (run->to - run->from) * run->call->lstm->desc.units;

    memset(run->lane->h, 0, floats * sizeof(float));
    memset(run->lane->c, 0, floats * sizeof(float));
}

/* c = a U^T, or a U: rows of n floats from rows of k. */
static void multiply(const struct run *run, float *c, const float *a, size_t n, size_t k)
{
    const struct tn_kernels *const kernels = run->call->lstm->host->kernels;
    const size_t rows = run->to - run->from;

    kernels->pack(run->lane->packed, false, a, (ptrdiff_t)k, false, rows, k);
    kernels->product_packed(&(struct tn_panels){.c = c,
                                                .a = run->lane->packed,
                                                .b = run->call->work->U[run->way],
                                                .ldc = (ptrdiff_t)n,
                                                .m = rows,
                                                .n = n,
                                                .k = k,
                                                .ahead = &(struct tn_ahead){0}});
}

static void forward_row(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;
    const size_t H = call->lstm->desc.units, row = row_at(run, b, step);
    float *const h = run->lane->h + (b - run->from) * H;

    call->lstm->host->kernels->lstm(call->work->history.gates[run->way] + row * 4 * H,
                                    call->work->history.cells[run->way] + row * H, h,
                                    run->lane->more + (b - run->from) * 4 * H,
                                    cell_before(run, b, step), H);
    memcpy(call->y + (row * call->lstm->ways + run->way) * H, h, H * sizeof *h);
}

static void forward_run(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct run run = run_of(call, index);
    const size_t H = call->lstm->desc.units, N = call->lstm->desc.N;

    (void)thread;
    clear_lane(&run);
    for (size_t step = 0; step < run.longest; step++) {
        multiply(&run, run.lane->more, run.lane->h, 4 * H, H);
        for (size_t b = run.from; b < run.to; b++)
            if (step < length_of(call, b))
                forward_row(&run, b, step);
    }
    for (size_t b = run.from; b < run.to; b++)
        for (size_t t = length_of(call, b); t < N; t++)
            memset(call->y + ((b * N + t) * call->lstm->ways + run.way) * H, 0,
                   H * sizeof(float));
}

static void forward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *y,
                    const float *x, const struct tn_lstm_weights *weights,
                    const size_t *lengths, void *scratch)
{
    const size_t H = lstm->desc.units;
    const struct portable *const own = lstm->own;
    const struct work work = work_open(lstm, tape, scratch);
    struct call call = {
        .lstm = lstm, .weights = weights, .work = &work, .y = y, .lengths = lengths};

    for (size_t way = 0; way < lstm->ways; way++) {
        const struct tn_lstm_weights *const w = &weights[way];

        lstm->host->kernels->add(work.bias, w->in_bias, w->hidden_bias, 4 * H);
        tn_dense_forward(&own->project[way], work.history.gates[way], x, w->in, work.bias,
                         work.scratch);
        lstm->host->kernels->pack(work.U[way], true, w->hidden, (ptrdiff_t)H, false, 4 * H, H);
    }
    tn_parallel(lstm->host->threads, lstm->ways * own->chunks, forward_run, &call);
}

/* ---- backward ----------------------------------------------------------- */

/* dz takes the place of the gates. */
static void backward_row(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;
    const struct tn_kernels *const kernels = call->lstm->host->kernels;
    const size_t H = call->lstm->desc.units, row = row_at(run, b, step), i = b - run->from;
    float *const gates = call->work->history.gates[run->way] + row * 4 * H;
    float *const dh = run->lane->h + i * H, *const dz = run->lane->more + i * 4 * H;

    kernels->add(dh, dh, call->dy + (row * call->lstm->ways + run->way) * H, H);
    kernels->lstm_slope(gates, run->lane->c + i * H, dh, gates,
                        call->work->history.cells[run->way] + row * H,
                        cell_before(run, b, step), H);
    memcpy(dz, gates, 4 * H * sizeof *dz);
}

static void backward_run(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct run run = run_of(call, index);
    const size_t H = call->lstm->desc.units, N = call->lstm->desc.N;

    (void)thread;
    clear_lane(&run);
    memset(run.lane->more, 0, (run.to - run.from) * 4 * H * sizeof(float));
    for (size_t step = run.longest; step-- > 0;) {
        for (size_t b = run.from; b < run.to; b++)
            if (step < length_of(call, b))
                backward_row(&run, b, step);
        multiply(&run, run.lane->h, run.lane->more, H, 4 * H);
    }
    for (size_t b = run.from; b < run.to; b++) {
        const size_t length = length_of(call, b);

        memset(call->work->history.gates[run.way] + (b * N + length) * 4 * H, 0,
               (N - length) * 4 * H * sizeof(float));
    }
}

/* ---- of all frames ------------------------------------------------------ */

struct shift {
    const struct call *call;
    const float *y;
    size_t way;
};

/* h that every frame of sequence b began with: 0 in its first, and beyond its length. */
static void shift_sequence(void *arg, size_t b, size_t thread)
{
    const struct shift *const shift = arg;
    const struct call *const call = shift->call;
    const size_t H = call->lstm->desc.units, N = call->lstm->desc.N, ways = call->lstm->ways;
    const size_t length = length_of(call, b);

    (void)thread;
    for (size_t t = 0; t < N; t++) {
        const bool first = shift->way ? t + 1 >= length : t == 0 || t >= length;
        const size_t before = b * N + (shift->way ? t + 1 : t - 1);
        float *const to = call->work->before + (b * N + t) * H;

        if (first)
            memset(to, 0, H * sizeof *to);
        else
            memcpy(to, shift->y + (before * ways + shift->way) * H, H * sizeof *to);
    }
}

static void weight_gradients(const struct call *call, float *dx,
                             const struct tn_lstm_weights *dweights, const float *y,
                             const float *x, size_t way)
{
    const struct tn_lstm *const lstm = call->lstm;
    const struct portable *const own = lstm->own;
    const struct tn_lstm_weights *const dw = &dweights[way];
    const float *const dz = call->work->history.gates[way];
    const size_t H = lstm->desc.units;
    float *const db = call->work->bias;

    tn_parallel(lstm->host->threads, lstm->desc.B, shift_sequence,
                &(struct shift){call, y, way});
    tn_matmul_run(own->hidden, dw->hidden, dz, call->work->before, NULL, call->work->scratch);
    memset(db, 0, 4 * H * sizeof *db);
    tn_dense_backward(&own->project[way], dx, dw->in, db, dz, x, call->weights[way].in,
                      call->work->scratch);
    lstm->host->kernels->add(dw->in_bias, dw->in_bias, db, 4 * H);
    lstm->host->kernels->add(dw->hidden_bias, dw->hidden_bias, db, 4 * H);
}

static void backward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *dx,
                     const struct tn_lstm_weights *dweights, const float *dy, const float *y,
                     const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch)
{
    const size_t H = lstm->desc.units;
    const struct portable *const own = lstm->own;
    const struct work work = work_open(lstm, tape, scratch);
    struct call call = {
        .lstm = lstm, .weights = weights, .work = &work, .dy = dy, .lengths = lengths};

    for (size_t way = 0; way < lstm->ways; way++)
        lstm->host->kernels->pack(work.U[way], true, weights[way].hidden, (ptrdiff_t)H, true, H,
                                  4 * H);
    tn_parallel(lstm->host->threads, lstm->ways * own->chunks, backward_run, &call);
    for (size_t way = 0; way < lstm->ways; way++)
        weight_gradients(&call, dx, dweights, y, x, way);
}

extern const struct tn_lstm_backend tn_lstm_portable;
const struct tn_lstm_backend tn_lstm_portable = {
    .name = "portable",
    .own_size = sizeof(struct portable),
    .create = create,
    .clear = clear,
    .scratch_size = scratch_size,
    .tape_size = tape_size,
    .forward = forward,
    .backward = backward,
};
