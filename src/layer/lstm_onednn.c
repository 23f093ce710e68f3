/* SPDX-License-Identifier: MIT */
/* lstm_onednn.c - the LSTM by oneDNN's, which knows one length for all sequences and splits
 * its sums by its number of threads.
 *
 * So sequences go in chunks, cut by the shape alone, each in each direction on one thread,
 * from copies that hold frame after frame, in the second direction from a sequence's own last
 * frame to its first. Behind its end are zeros, and no gradient: what oneDNN computes there
 * touches nothing. Gradients of weights are summed over chunks in their order.
 *
 * If oneDNN finds no memory for its small objects, results are NaN, at which training stops. */
#include <math.h>
#include <string.h>

#include "kernel/lstm_sweep.h"
#include "layer/lstm.h"

enum {
    CHUNK_LEAST = 8, /* sequences: fewer leave a step's product to reading weights */
    CHUNKS_MOST = 8  /* each has gradients of weights of its own */
};

/* ---- life --------------------------------------------------------------- */

struct onednn {
    struct tn_lstm_sweep *sweep;
    struct tn_lstm_sweep_sizes sizes;
    size_t chunk;  /* sequences that go together; what the last chunk lacks is zeros */
    size_t chunks; /* how many such */
};

static tarn_status create(struct tn_lstm *lstm, tarn_error *err)
{
    const struct tn_lstm_desc *const d = &lstm->desc;
    const size_t wanted = tn_min(CHUNKS_MOST, tn_max(1, d->B / CHUNK_LEAST));
    struct onednn *const own = lstm->own;

    own->chunk = tn_blocks(d->B, wanted);
    own->chunks = tn_blocks(d->B, own->chunk);
    const struct tn_lstm_sweep_desc sweep = {.T = d->N,
                                             .R = own->chunk,
                                             .in = d->in,
                                             .units = d->units,
                                             .trains = d->trains,
                                             .allocator = &lstm->host->allocator};
    const tarn_status status = tn_lstm_sweep_create(&own->sweep, &sweep, err);

    if (status == TARN_OK)
        own->sizes = tn_lstm_sweep_sizes(own->sweep);
    return status;
}

static void clear(struct tn_lstm *lstm)
{
    struct onednn *const own = lstm->own;

    tn_lstm_sweep_free(own->sweep);
}

/* ---- memory ------------------------------------------------------------- */

/* Of a direction: its weights as oneDNN holds them, and a gradient on its way to PyTorch's. */
struct held {
    void *in, *hidden;
    float *bias, *turned;
    bool fine;
};

/* Of a chunk in a direction: what is summed over chunks or directions. */
struct lane {
    float *dx, *din, *dhidden, *dbias;
    bool fine;
};

/* Of a thread. */
struct seat {
    float *x, *y, *dy; /* (N, chunk, ...) */
    void *scratch;
};

struct work {
    struct held held[TN_LSTM_WAYS];
    struct lane *lanes; /* ways x chunks */
    struct seat *seats;
};

static size_t lane_count(const struct tn_lstm *lstm)
{
    const struct onednn *const own = lstm->own;

    return lstm->ways * own->chunks;
}

static size_t seat_count(const struct tn_lstm *lstm)
{
    return tn_min(lstm->host->threads, lane_count(lstm));
}

static struct held take_held(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const struct onednn *const own = lstm->own;
    const size_t H = lstm->desc.units;
    struct held held = {.in = tn_arena_take(arena, own->sizes.in, 1)};

    held.hidden = tn_arena_take(arena, own->sizes.hidden, 1);
    held.bias = tn_arena_floats(arena, 4 * H);
    if (lstm->desc.trains)
        held.turned = tn_arena_floats(arena, 4 * H * tn_max(lstm->desc.in, H));
    return held;
}

static struct lane take_lane(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const struct onednn *const own = lstm->own;
    const size_t H = lstm->desc.units, in = lstm->desc.in;
    struct lane lane = {0};

    if (lstm->desc.trains) {
        lane.dx = tn_arena_floats(arena, lstm->desc.N * own->chunk * in);
        lane.din = tn_arena_floats(arena, 4 * H * in);
        lane.dhidden = tn_arena_floats(arena, 4 * H * H);
        lane.dbias = tn_arena_floats(arena, 4 * H);
    }
    return lane;
}

static struct seat take_seat(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const struct onednn *const own = lstm->own;
    const size_t rows = lstm->desc.N * own->chunk, H = lstm->desc.units;
    struct seat seat = {.x = tn_arena_floats(arena, rows * lstm->desc.in)};

    seat.y = tn_arena_floats(arena, rows * H);
    if (lstm->desc.trains)
        seat.dy = tn_arena_floats(arena, rows * H);
    seat.scratch = tn_arena_take(arena, own->sizes.scratch, 1);
    return seat;
}

static struct work lay_out(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    struct work work = {0};

    work.lanes = tn_arena_take(arena, lane_count(lstm), sizeof *work.lanes);
    work.seats = tn_arena_take(arena, seat_count(lstm), sizeof *work.seats);
    for (size_t way = 0; way < lstm->ways; way++)
        work.held[way] = take_held(lstm, arena);
    for (size_t i = 0; i < lane_count(lstm); i++) {
        const struct lane lane = take_lane(lstm, arena);

        if (work.lanes)
            work.lanes[i] = lane;
    }
    for (size_t i = 0; i < seat_count(lstm); i++) {
        const struct seat seat = take_seat(lstm, arena);

        if (work.seats)
            work.seats[i] = seat;
    }
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
    const struct onednn *const own = lstm->own;

    return lane_count(lstm) * own->sizes.tape;
}

/* ---- copies ------------------------------------------------------------- */

struct call {
    const struct tn_lstm *lstm;
    const struct tn_lstm_weights *weights, *dweights;
    struct work *work;
    char *tape;
    const float *x, *y, *dy;
    float *out; /* y forward, dx backward */
    const size_t *lengths;
};

/* Sequence `from + r` is row r of a frame. */
struct part {
    size_t way, from;
};

static struct part part_of(const struct tn_lstm *lstm, size_t index)
{
    const struct onednn *const own = lstm->own;

    return (struct part){index / own->chunks, index % own->chunks * own->chunk};
}

/* 0 for rows that only fill a chunk. */
static size_t length_of(const struct call *call, size_t b)
{
    return b < call->lstm->desc.B ? tn_lstm_length(call->lstm, call->lengths, b) : 0;
}

/* to (N, chunk, width) from `width` floats of rows that are ld apart. */
static void gather(float *to, const struct call *call, struct part part, const float *from,
                   size_t ld, size_t width)
{
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;

    for (size_t step = 0; step < lstm->desc.N; step++)
        for (size_t r = 0; r < own->chunk; r++, to += width) {
            const size_t b = part.from + r;

            if (step < length_of(call, b))
                memcpy(to, from + tn_lstm_row(lstm, call->lengths, part.way, b, step) * ld,
                       width * sizeof *to);
            else
                memset(to, 0, width * sizeof *to);
        }
}

/* h of one direction into y, zeros beyond lengths. */
static void scatter(const struct call *call, struct part part, const float *h)
{
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const size_t H = lstm->desc.units, N = lstm->desc.N, ld = lstm->ways * H;
    float *const y = call->out + part.way * H;

    for (size_t r = 0; r < tn_min(own->chunk, lstm->desc.B - part.from); r++) {
        const size_t b = part.from + r, length = length_of(call, b);

        for (size_t step = 0; step < length; step++)
            memcpy(y + tn_lstm_row(lstm, call->lengths, part.way, b, step) * ld,
                   h + (step * own->chunk + r) * H, H * sizeof *y);
        for (size_t t = length; t < N; t++)
            memset(y + (b * N + t) * ld, 0, H * sizeof *y);
    }
}

/* dx of sequence b, of both directions. */
static void join_inputs(void *arg, size_t b, size_t thread)
{
    const struct call *const call = arg;
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const struct lane *const lanes = call->work->lanes + b / own->chunk;
    const size_t in = lstm->desc.in, length = length_of(call, b);
    float *const dx = call->out + b * lstm->desc.N * in;

    (void)thread;
    for (size_t t = 0; t < length; t++) {
        const size_t row = t * own->chunk + b % own->chunk;
        const size_t reversed = (length - 1 - t) * own->chunk + b % own->chunk;

        if (lstm->ways == 1)
            memcpy(dx + t * in, lanes->dx + row * in, in * sizeof *dx);
        else
            lstm->host->kernels->add(dx + t * in, lanes->dx + row * in,
                                     lanes[own->chunks].dx + reversed * in, in);
    }
    memset(dx + length * in, 0, (lstm->desc.N - length) * in * sizeof *dx);
}

/* sum (n x 4H, PyTorch's its transpose) over the chunks of a direction is added to dw. */
static void join_weights(const struct call *call, size_t way, float *dw, size_t n)
{
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const struct lane *const lanes = call->work->lanes + way * own->chunks;
    const size_t H = lstm->desc.units;
    const bool hidden = dw == call->dweights[way].hidden;
    float *const sum = hidden ? lanes->dhidden : lanes->din;
    float *const turned = call->work->held[way].turned;

    for (size_t c = 1; c < own->chunks; c++)
        lstm->host->kernels->add(sum, sum, hidden ? lanes[c].dhidden : lanes[c].din, 4 * H * n);
    lstm->host->kernels->transpose(turned, (ptrdiff_t)n, sum, (ptrdiff_t)(4 * H), n, 4 * H);
    lstm->host->kernels->add(dw, dw, turned, 4 * H * n);
}

static void join_direction(void *arg, size_t way, size_t thread)
{
    const struct call *const call = arg;
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const struct lane *const lanes = call->work->lanes + way * own->chunks;
    const struct tn_lstm_weights *const dw = &call->dweights[way];
    const size_t H = lstm->desc.units;

    (void)thread;
    join_weights(call, way, dw->in, lstm->desc.in);
    join_weights(call, way, dw->hidden, H);
    for (size_t c = 1; c < own->chunks; c++)
        lstm->host->kernels->add(lanes->dbias, lanes->dbias, lanes[c].dbias, 4 * H);
    lstm->host->kernels->add(dw->in_bias, dw->in_bias, lanes->dbias, 4 * H);
    lstm->host->kernels->add(dw->hidden_bias, dw->hidden_bias, lanes->dbias, 4 * H);
}

/* ---- forth and back ----------------------------------------------------- */

static void hold_direction(const struct call *call, size_t way, bool back, size_t thread)
{
    const struct onednn *const own = call->lstm->own;
    const struct tn_lstm_weights *const w = &call->weights[way];
    struct held *const held = &call->work->held[way];

    call->lstm->host->kernels->add(held->bias, w->in_bias, w->hidden_bias,
                                   4 * call->lstm->desc.units);
    held->fine = tn_lstm_sweep_hold(own->sweep, held->in, held->hidden, w->in, w->hidden, back,
                                    call->work->seats[thread].scratch);
}

static void hold_forth(void *arg, size_t way, size_t thread)
{
    hold_direction(arg, way, false, thread);
}

static void hold_back(void *arg, size_t way, size_t thread)
{
    hold_direction(arg, way, true, thread);
}

static struct tn_lstm_sweep_arrays arrays_of(const struct call *call, size_t index,
                                             size_t thread)
{
    const struct onednn *const own = call->lstm->own;
    const struct held *const held = &call->work->held[index / own->chunks];
    const struct lane *const lane = &call->work->lanes[index];
    const struct seat *const seat = &call->work->seats[thread];

    return (struct tn_lstm_sweep_arrays){
        .in = held->in,
        .hidden = held->hidden,
        .bias = held->bias,
        .x = seat->x,
        .y = seat->y,
        .tape = call->tape ? call->tape + index * own->sizes.tape : NULL,
        .dy = seat->dy,
        .dx = lane->dx,
        .din = lane->din,
        .dhidden = lane->dhidden,
        .dbias = lane->dbias,
        .scratch = seat->scratch,
    };
}

static void forward_lane(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const struct part part = part_of(lstm, index);
    const struct seat *const seat = &call->work->seats[thread];
    const struct tn_lstm_sweep_arrays arrays = arrays_of(call, index, thread);

    gather(seat->x, call, part, call->x, lstm->desc.in, lstm->desc.in);
    call->work->lanes[index].fine = tn_lstm_sweep_forward(own->sweep, &arrays);
    scatter(call, part, seat->y);
}

static void backward_lane(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct tn_lstm *const lstm = call->lstm;
    const struct onednn *const own = lstm->own;
    const struct part part = part_of(lstm, index);
    const struct seat *const seat = &call->work->seats[thread];
    const struct tn_lstm_sweep_arrays arrays = arrays_of(call, index, thread);
    const size_t H = lstm->desc.units, ld = lstm->ways * H;

    gather(seat->x, call, part, call->x, lstm->desc.in, lstm->desc.in);
    gather(seat->y, call, part, call->y + part.way * H, ld, H);
    gather(seat->dy, call, part, call->dy + part.way * H, ld, H);
    call->work->lanes[index].fine = tn_lstm_sweep_backward(own->sweep, &arrays);
}

static bool is_fine(const struct call *call)
{
    bool fine = true;

    for (size_t way = 0; way < call->lstm->ways; way++)
        fine = fine && call->work->held[way].fine;
    for (size_t i = 0; i < lane_count(call->lstm); i++)
        fine = fine && call->work->lanes[i].fine;
    return fine;
}

static void spoil(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = NAN;
}

static void forward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *y,
                    const float *x, const struct tn_lstm_weights *weights,
                    const size_t *lengths, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct work work = lay_out(lstm, &arena);
    struct call call = {.lstm = lstm,
                        .weights = weights,
                        .work = &work,
                        .tape = tape->at,
                        .x = x,
                        .out = y,
                        .lengths = lengths};
    const size_t threads = seat_count(lstm);

    tn_parallel(threads, lstm->ways, hold_forth, &call);
    tn_parallel(threads, lane_count(lstm), forward_lane, &call);
    if (!is_fine(&call))
        spoil(y, lstm->desc.B * lstm->desc.N * lstm->ways * lstm->desc.units);
}

static void backward(const struct tn_lstm *lstm, const struct tn_lstm_tape *tape, float *dx,
                     const struct tn_lstm_weights *dweights, const float *dy, const float *y,
                     const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct work work = lay_out(lstm, &arena);
    struct call call = {.lstm = lstm,
                        .weights = weights,
                        .dweights = dweights,
                        .work = &work,
                        .tape = tape->at,
                        .x = x,
                        .y = y,
                        .dy = dy,
                        .out = dx,
                        .lengths = lengths};
    const size_t threads = seat_count(lstm);

    tn_parallel(threads, lstm->ways, hold_back, &call);
    tn_parallel(threads, lane_count(lstm), backward_lane, &call);
    tn_parallel(threads, lstm->ways, join_direction, &call);
    if (dx)
        tn_parallel(lstm->host->threads, lstm->desc.B, join_inputs, &call);
    if (!is_fine(&call)) {
        spoil(dweights->in, 1);
        spoil(dx, dx ? lstm->desc.B * lstm->desc.N * lstm->desc.in : 0);
    }
}

extern const struct tn_lstm_backend tn_lstm_onednn;
const struct tn_lstm_backend tn_lstm_onednn = {
    .name = "onednn",
    .own_size = sizeof(struct onednn),
    .create = create,
    .clear = clear,
    .scratch_size = scratch_size,
    .tape_size = tape_size,
    .forward = forward,
    .backward = backward,
};
