/* SPDX-License-Identifier: MIT */
/* lstm.c - x W^T of all frames is one product; the rest is computed frame by frame, since a
 * frame needs the h of the one before. Directions and chunks of sequences run in parallel, each
 * on one thread, with U packed once for all frames. A row of such a product has the same bits
 * whatever rows are beside it, so that the number of chunks may follow the number of threads.
 *
 * Backward, with dh the gradient of h from the output and from the next frame,
 *
 *     dz from the gates (kernel_body_lstm.h)    dh of the frame before = dz U
 *     dU = sum of dz h^T,  dW = sum of dz x^T,  db = db' = sum of dz,  dx = dz W
 *
 * where the second line is again products of all frames at once. */
#include "layer/lstm.h"

#include <string.h>

/* ---- life --------------------------------------------------------------- */

static tarn_status check(struct tn_lstm *lstm, tarn_error *err)
{
    const struct tn_lstm_desc *const d = &lstm->desc;
    size_t floats;

    if (d->B == 0 || d->N == 0 || d->in == 0 || d->units == 0 ||
        !tn_size_product(&floats, (size_t[]){d->B, d->N, tn_max(d->units, d->in), 64}, 4))
        return tn_fail(err, TARN_EINVAL,
                       "batch, length, in, units are %zu, %zu, %zu, %zu; each must be at least "
                       "1, and all must fit in memory",
                       d->B, d->N, d->in, d->units);
    lstm->chunks = tn_min(d->B, tn_blocks(lstm->host->threads, lstm->ways));
    return TARN_OK;
}

static size_t chunk_rows(const struct tn_lstm *lstm)
{
    return tn_blocks(lstm->desc.B, lstm->chunks);
}

static tarn_status plan_project(struct tn_lstm *lstm, tarn_error *err)
{
    const struct tn_lstm_desc *const d = &lstm->desc;
    tarn_status status = TARN_OK;

    for (size_t way = 0; way < lstm->ways && status == TARN_OK; way++)
        status = tn_dense_init(&lstm->project[way],
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
    struct tn_matmul_desc desc = {
        .m = chunk_rows(lstm), .n = 4 * H, .k = H, .transpose_b = true, .packed = true};
    tarn_status status = tn_matmul_create(&lstm->forward, &desc, lstm->host, err);

    desc.n = H;
    desc.k = 4 * H;
    desc.transpose_b = false;
    if (status == TARN_OK && d->trains)
        status = tn_matmul_create(&lstm->backward, &desc, lstm->host, err);
    desc.m = 4 * H;
    desc.k = d->B * d->N;
    desc.packed = false;
    desc.transpose_a = desc.add = true;
    if (status == TARN_OK && d->trains)
        status = tn_matmul_create(&lstm->weights, &desc, lstm->host, err);
    return status;
}

tarn_status tn_lstm_init(struct tn_lstm *lstm, const struct tn_lstm_desc *desc,
                         const struct tn_host *host, tarn_error *err)
{
    *lstm =
        (struct tn_lstm){.desc = *desc, .host = host, .ways = desc->one_way ? 1 : TN_LSTM_WAYS};
    tarn_status status = check(lstm, err);

    if (status == TARN_OK)
        status = plan_project(lstm, err);
    if (status == TARN_OK)
        status = plan_products(lstm, err);
    if (status != TARN_OK)
        tn_lstm_clear(lstm);
    return status;
}

void tn_lstm_clear(struct tn_lstm *lstm)
{
    for (size_t way = 0; way < TN_LSTM_WAYS; way++)
        tn_dense_clear(&lstm->project[way]);
    tn_matmul_free(lstm->forward);
    tn_matmul_free(lstm->backward);
    tn_matmul_free(lstm->weights);
    *lstm = (struct tn_lstm){0};
}

/* ---- memory ------------------------------------------------------------- */

/* Of one chunk in one direction. */
struct chunk {
    float *h, *z;  /* rows x H, x 4H; backward: dh, dz */
    float *c;      /* rows x H; backward: dc */
    void *scratch; /* of the product with U */
};

struct work {
    struct tn_lstm_activations
        acts;              /* the caller's, or scratch in a plan that does not train */
    struct chunk *chunks;  /* ways x chunks */
    float *bias, *zeros;   /* 4H: the sum of both; H */
    void *U[TN_LSTM_WAYS]; /* packed; backward: its transpose */
    float *before;         /* B N x H: h before each frame */
    void *scratch;         /* of the products of all frames */
};

static size_t shared_scratch(const struct tn_lstm *lstm)
{
    size_t most = lstm->desc.trains ? tn_matmul_scratch_size(lstm->weights) : 0;

    for (size_t way = 0; way < lstm->ways; way++)
        most = tn_max(most, tn_dense_scratch_size(&lstm->project[way]));
    return most;
}

/* The larger of the two that `size` gives for the recurrent products. */
static size_t of_both(const struct tn_lstm *lstm, size_t (*size)(const struct tn_matmul *plan))
{
    return tn_max(size(lstm->forward), lstm->desc.trains ? size(lstm->backward) : 0);
}

static struct chunk take_chunk(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const size_t H = lstm->desc.units, rows = chunk_rows(lstm);
    struct chunk chunk;

    chunk.h = tn_arena_floats(arena, rows * H);
    chunk.c = tn_arena_floats(arena, rows * H);
    chunk.z = tn_arena_floats(arena, rows * 4 * H);
    chunk.scratch = tn_arena_alloc(arena, 1, of_both(lstm, tn_matmul_scratch_size));
    return chunk;
}

static struct tn_lstm_activations lay_out_activations(const struct tn_lstm *lstm,
                                                      struct tn_arena *arena)
{
    const size_t rows = lstm->desc.B * lstm->desc.N, H = lstm->desc.units;
    struct tn_lstm_activations acts = {0};

    for (size_t way = 0; way < lstm->ways; way++) {
        acts.gates[way] = tn_arena_floats(arena, rows * 4 * H);
        acts.cells[way] = tn_arena_floats(arena, rows * H);
    }
    return acts;
}

struct tn_lstm_activations tn_lstm_activations_lay_out(const struct tn_lstm *lstm,
                                                       struct tn_arena *arena)
{
    return lstm->desc.trains ? lay_out_activations(lstm, arena)
                             : (struct tn_lstm_activations){0};
}

static struct work lay_out(const struct tn_lstm *lstm, struct tn_arena *arena)
{
    const size_t H = lstm->desc.units, chunks = lstm->ways * lstm->chunks;
    struct work work = {.chunks = tn_arena_alloc(arena, chunks, sizeof *work.chunks)};

    for (size_t i = 0; i < chunks; i++) {
        const struct chunk chunk = take_chunk(lstm, arena);

        if (work.chunks)
            work.chunks[i] = chunk;
    }
    work.bias = tn_arena_floats(arena, 4 * H);
    work.zeros = tn_arena_floats(arena, H);
    for (size_t way = 0; way < lstm->ways; way++)
        work.U[way] = tn_arena_alloc(arena, 1, of_both(lstm, tn_matmul_packed_size));
    if (lstm->desc.trains)
        work.before = tn_arena_floats(arena, lstm->desc.B * lstm->desc.N * H);
    else
        work.acts = lay_out_activations(lstm, arena);
    work.scratch = tn_arena_alloc(arena, 1, shared_scratch(lstm));
    return work;
}

static struct work work_open(const struct tn_lstm *lstm, const struct tn_lstm_activations *acts,
                             void *scratch)
{
    struct tn_arena arena = tn_arena_over(scratch);
    struct work work = lay_out(lstm, &arena);

    if (lstm->desc.trains)
        work.acts = *acts;
    memset(work.zeros, 0, lstm->desc.units * sizeof(float));
    return work;
}

size_t tn_lstm_scratch_size(const struct tn_lstm *lstm)
{
    struct tn_arena arena = tn_arena_over(NULL);

    lay_out(lstm, &arena);
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

/* Sequences of one chunk in one direction. */
struct run {
    const struct call *call;
    const struct chunk *chunk;
    size_t way, from, to, longest;
};

static size_t length_of(const struct call *call, size_t b)
{
    return call->lengths ? call->lengths[b] : call->lstm->desc.N;
}

static struct run run_of(const struct call *call, size_t index)
{
    const size_t B = call->lstm->desc.B, chunks = call->lstm->chunks;
    const size_t chunk = index % chunks;
    struct run run = {.call = call,
                      .chunk = &call->work->chunks[index],
                      .way = index / chunks,
                      .from = chunk * B / chunks,
                      .to = (chunk + 1) * B / chunks};

    for (size_t b = run.from; b < run.to; b++)
        run.longest = tn_max(run.longest, length_of(call, b));
    return run;
}

/* The row of the frame of sequence b that is number `step` in the run's direction. */
static size_t row_at(const struct run *run, size_t b, size_t step)
{
    const size_t t = run->way ? length_of(run->call, b) - 1 - step : step;

    return b * run->call->lstm->desc.N + t;
}

/* c before a step. */
static const float *cell_before(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;

    return step == 0 ? call->work->zeros
                     : call->work->acts.cells[run->way] +
                           row_at(run, b, step - 1) * call->lstm->desc.units;
}

static void clear_chunk(const struct run *run)
{
    const size_t floats = (run->to - run->from) * run->call->lstm->desc.units;

    memset(run->chunk->h, 0, floats * sizeof(float));
    memset(run->chunk->c, 0, floats * sizeof(float));
    memset(run->chunk->z, 0, 4 * floats * sizeof(float));
}

static void forward_row(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;
    const size_t H = call->lstm->desc.units, row = row_at(run, b, step);
    float *const h = run->chunk->h + (b - run->from) * H;

    call->lstm->host->kernels->lstm(call->work->acts.gates[run->way] + row * 4 * H,
                                    call->work->acts.cells[run->way] + row * H, h,
                                    run->chunk->z + (b - run->from) * 4 * H,
                                    cell_before(run, b, step), H);
    memcpy(call->y + (row * call->lstm->ways + run->way) * H, h, H * sizeof *h);
}

static void forward_run(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct run run = run_of(call, index);
    const size_t H = call->lstm->desc.units, N = call->lstm->desc.N;

    (void)thread;
    clear_chunk(&run);
    for (size_t step = 0; step < run.longest; step++) {
        tn_matmul_run_rows(call->lstm->forward, run.chunk->z, run.chunk->h,
                           call->work->U[run.way], NULL, run.to - run.from, run.chunk->scratch);
        for (size_t b = run.from; b < run.to; b++)
            if (step < length_of(call, b))
                forward_row(&run, b, step);
    }
    for (size_t b = run.from; b < run.to; b++)
        for (size_t t = length_of(call, b); t < N; t++)
            memset(call->y + ((b * N + t) * call->lstm->ways + run.way) * H, 0,
                   H * sizeof(float));
}

void tn_lstm_forward(const struct tn_lstm *lstm, const struct tn_lstm_activations *acts,
                     float *y, const float *x, const struct tn_lstm_weights *weights,
                     const size_t *lengths, void *scratch)
{
    const size_t H = lstm->desc.units;
    const struct work work = work_open(lstm, acts, scratch);
    struct call call = {
        .lstm = lstm, .weights = weights, .work = &work, .y = y, .lengths = lengths};

    for (size_t way = 0; way < lstm->ways; way++) {
        const struct tn_lstm_weights *const w = &weights[way];

        lstm->host->kernels->add(work.bias, w->in_bias, w->hidden_bias, 4 * H);
        tn_dense_forward(&lstm->project[way], work.acts.gates[way], x, w->in, work.bias,
                         work.scratch);
        tn_matmul_pack(lstm->forward, work.U[way], w->hidden);
    }
    tn_parallel(lstm->host->threads, lstm->ways * lstm->chunks, forward_run, &call);
}

/* ---- backward ----------------------------------------------------------- */

/* dz takes the place of the gates. */
static void backward_row(const struct run *run, size_t b, size_t step)
{
    const struct call *const call = run->call;
    const struct tn_kernels *const kernels = call->lstm->host->kernels;
    const size_t H = call->lstm->desc.units, row = row_at(run, b, step), i = b - run->from;
    float *const gates = call->work->acts.gates[run->way] + row * 4 * H;
    float *const dh = run->chunk->h + i * H, *const dz = run->chunk->z + i * 4 * H;

    kernels->add(dh, dh, call->dy + (row * call->lstm->ways + run->way) * H, H);
    kernels->lstm_backward(gates, run->chunk->c + i * H, dh, gates,
                           call->work->acts.cells[run->way] + row * H,
                           cell_before(run, b, step), H);
    memcpy(dz, gates, 4 * H * sizeof *dz);
}

static void backward_run(void *arg, size_t index, size_t thread)
{
    const struct call *const call = arg;
    const struct run run = run_of(call, index);
    const size_t H = call->lstm->desc.units, N = call->lstm->desc.N;

    (void)thread;
    clear_chunk(&run);
    for (size_t step = run.longest; step-- > 0;) {
        for (size_t b = run.from; b < run.to; b++)
            if (step < length_of(call, b))
                backward_row(&run, b, step);
        tn_matmul_run_rows(call->lstm->backward, run.chunk->h, run.chunk->z,
                           call->work->U[run.way], NULL, run.to - run.from, run.chunk->scratch);
    }
    for (size_t b = run.from; b < run.to; b++) {
        const size_t length = length_of(call, b);

        memset(call->work->acts.gates[run.way] + (b * N + length) * 4 * H, 0,
               (N - length) * 4 * H * sizeof(float));
    }
}

/* ---- of all frames ------------------------------------------------------ */

struct shift {
    const struct call *call;
    const float *y;
    size_t way;
};

/* h before every frame of sequence b: 0 before its first, and beyond its length. */
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
    const struct tn_lstm_weights *const dw = &dweights[way];
    const float *const dz = call->work->acts.gates[way];
    const size_t H = lstm->desc.units;
    float *const db = call->work->bias;

    tn_parallel(lstm->host->threads, lstm->desc.B, shift_sequence,
                &(struct shift){call, y, way});
    tn_matmul_run(lstm->weights, dw->hidden, dz, call->work->before, NULL, call->work->scratch);
    memset(db, 0, 4 * H * sizeof *db);
    tn_dense_backward(&lstm->project[way], dx, dw->in, db, dz, x, call->weights[way].in,
                      call->work->scratch);
    lstm->host->kernels->add(dw->in_bias, dw->in_bias, db, 4 * H);
    lstm->host->kernels->add(dw->hidden_bias, dw->hidden_bias, db, 4 * H);
}

void tn_lstm_backward(const struct tn_lstm *lstm, const struct tn_lstm_activations *acts,
                      float *dx, const struct tn_lstm_weights *dweights, const float *dy,
                      const float *y, const float *x, const struct tn_lstm_weights *weights,
                      const size_t *lengths, void *scratch)
{
    const struct work work = work_open(lstm, acts, scratch);
    struct call call = {
        .lstm = lstm, .weights = weights, .work = &work, .dy = dy, .lengths = lengths};

    for (size_t way = 0; way < lstm->ways; way++)
        tn_matmul_pack(lstm->backward, work.U[way], weights[way].hidden);
    tn_parallel(lstm->host->threads, lstm->ways * lstm->chunks, backward_run, &call);
    for (size_t way = 0; way < lstm->ways; way++)
        weight_gradients(&call, dx, dweights, y, x, way);
}
