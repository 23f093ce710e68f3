/* SPDX-License-Identifier: MIT */
/* slice_ring.c - queries meet all keys before them, which visit: the keys and values of a
 * process go from it to the next, and on to the last, so that each has its own and those of one
 * other, or of two while they are sent. Not causal, they go on from the last process to the
 * first, and home.
 *
 * A query meets slices of keys from its own to the first, not causal then from the last to its
 * own, and its gradient is summed in that order. A key meets slices of queries from its own to
 * the last, and then from the first: the gradients of keys and values travel with them, and
 * causal from the last process back home. Both orders are those in which slices meet in any
 * number of processes.
 *
 * What queries have seen is kept for every layer: nothing visits twice. */
#include <string.h>

#include "comm/tree_sum.h"
#include "model/slice_states.h"
#include "model/slices.h"

/* ---- Memory ------------------------------------------------------------- */

static size_t rank_of(const struct tn_slice_states *s)
{
    return tn_comm_rank(s->run->slices->comm);
}

static size_t size_of(const struct tn_slice_states *s)
{
    return tn_comm_size(s->run->slices->comm);
}

/* Gradients lie behind what they are of. */
static void lay_out(struct tn_slice_states *s, const tarn_attention *attention,
                    struct tn_arena *arena)
{
    struct tn_slice_ring *const r = &s->ring;
    const size_t own = s->run->slices->own, layers = tn_run_layers(s->run);

    r->rows = s->run->B * attention->H * s->run->N;
    r->keys = r->rows * attention->D;
    r->values = r->rows * attention->M;
    r->pair = r->keys + r->values;
    r->piece = own * r->pair;
    r->queries = tn_arena_floats(arena, own * r->keys);
    r->dqueries = tn_arena_floats(arena, own * r->keys);
    r->dy = tn_arena_floats(arena, own * r->values);
    r->pieces[0] = tn_arena_floats(arena, 2 * r->piece);
    r->pieces[1] = tn_arena_floats(arena, size_of(s) > 1 ? 2 * r->piece : 0);
    r->home = tn_arena_floats(arena, attention->causal && size_of(s) > 1 ? r->piece : 0);
    r->sums = tn_arena_floats(arena, layers * own * r->values);
    r->kept = tn_arena_alloc(arena, layers * own * r->rows, sizeof *r->kept);
    r->y = tn_arena_floats(arena, r->values);
    r->saved = tn_arena_floats(arena, r->rows);
    r->dq = tn_arena_floats(arena, r->keys);
    r->dpair = tn_arena_floats(arena, r->pair);
    r->lengths = tn_arena_alloc(arena, s->run->B, sizeof *r->lengths);
}

/* ---- Rows --------------------------------------------------------------- */

/* B x H x N x width, one after the other. */
static tarn_output rows_at(const tarn_attention *attention, float *rows, size_t width)
{
    const ptrdiff_t w = (ptrdiff_t)width, n = (ptrdiff_t)attention->N;

    return (tarn_output){rows, (ptrdiff_t)attention->H * n * w, w, n * w};
}

static tarn_input as_input(tarn_output rows)
{
    return (tarn_input){rows.data, rows.batch, rows.position, rows.head};
}

struct copy {
    const tarn_attention *attention;
    tarn_output to;
    tarn_input from;
    size_t width;
};

static void copy_head(void *arg, size_t task, size_t thread)
{
    const struct copy *const c = arg;
    const size_t b = task / c->attention->H, h = task % c->attention->H;

    (void)thread;
    for (size_t n = 0; n < c->attention->N; n++)
        memcpy(tn_out(c->to, b, h, n), tn_in(c->from, b, h, n), c->width * sizeof(float));
}

static void copy_rows(const tarn_attention *attention, tarn_output to, tarn_input from,
                      size_t width)
{
    struct copy copy = {attention, to, from, width};

    tn_parallel(attention->host.threads, attention->B * attention->H, copy_head, &copy);
}

static void pack(const tarn_attention *attention, float *rows, tarn_input from, size_t width)
{
    copy_rows(attention, rows_at(attention, rows, width), from, width);
}

static void unpack(const tarn_attention *attention, tarn_output to, float *rows, size_t width)
{
    copy_rows(attention, to, as_input(rows_at(attention, rows, width)), width);
}

/* ---- Parts -------------------------------------------------------------- */

/* Own slice i of queries, and slice j of the keys of a process. */
struct meeting {
    struct tn_slice_states *s;
    const tarn_attention *attention;
    size_t layer, i, j;
    size_t turn, owner; /* of the keys */
    float *piece;       /* they are in */
};

static tarn_attention plan_of(const struct meeting *m, bool backward)
{
    tarn_attention part = *m->attention;

    part.causal = m->attention->causal && m->owner == rank_of(m->s) && m->i == m->j;
    part.kind->parts->adapt(&part, backward);
    return part;
}

/* Keys of slice j that exist; NULL: all. */
static const size_t *key_lengths(const struct meeting *m)
{
    const tarn_run *const run = m->s->run;
    const size_t from = (m->owner * run->slices->own + m->j) * run->N;

    for (size_t b = 0; b < run->B; b++) {
        const size_t length = tn_slice_length(run, b);

        m->s->ring.lengths[b] = length > from ? tn_min(length - from, run->N) : 0;
    }
    return tn_slices_end(run) ? m->s->ring.lengths : NULL;
}

/* Keys and values of slice j, or their gradients. */
static float *pair_of(const struct meeting *m, bool gradients)
{
    const struct tn_slice_ring *const r = &m->s->ring;

    return m->piece + (gradients ? r->piece : 0) + m->j * r->pair;
}

static tarn_attention_arrays arrays_of(const struct meeting *m)
{
    const tarn_attention *const a = m->attention;
    const struct tn_slice_ring *const r = &m->s->ring;
    float *const keys = pair_of(m, false), *const values = keys + r->keys;

    return (tarn_attention_arrays){
        .in = {[TN_QUERY] = as_input(rows_at(a, r->queries + m->i * r->keys, a->D)),
               [TN_KEY] = as_input(rows_at(a, keys, a->D)),
               [TN_VALUE] = as_input(rows_at(a, values, a->M))},
        .y = rows_at(a, r->y, a->M),
        .key_lengths = key_lengths(m),
    };
}

/* ---- What queries have seen --------------------------------------------- */

/* By own slice i of a layer. */
struct seen {
    const tarn_attention *plan;
    const struct tn_slice_ring *ring;
    float *sums;
    struct tn_part_kept *kept;
};

static struct seen seen_of(const struct tn_slice_states *s, const tarn_attention *plan,
                           size_t layer, size_t i)
{
    const struct tn_slice_ring *const r = &s->ring;
    const size_t at = layer * s->run->slices->own + i;

    return (struct seen){plan, r, r->sums + at * r->values, r->kept + at * r->rows};
}

static void join_head(void *arg, size_t task, size_t thread)
{
    const struct seen *const seen = arg;
    const size_t N = seen->plan->N, M = seen->plan->M;

    (void)thread;
    for (size_t row = task * N; row < (task + 1) * N; row++)
        seen->plan->kind->parts->join(seen->plan, &seen->kept[row], seen->sums + row * M,
                                      seen->ring->y + row * M, seen->ring->saved[row]);
}

static void finish_head(void *arg, size_t task, size_t thread)
{
    const struct seen *const seen = arg;
    const size_t N = seen->plan->N, M = seen->plan->M;

    (void)thread;
    for (size_t row = task * N; row < (task + 1) * N; row++)
        seen->plan->kind->parts->finish(seen->plan, seen->ring->y + row * M,
                                        &seen->ring->saved[row], &seen->kept[row],
                                        seen->sums + row * M);
}

static void for_heads(struct seen seen, tn_work *work)
{
    tn_parallel(seen.plan->host.threads, seen.plan->B * seen.plan->H, work, &seen);
}

/* ---- Forward ------------------------------------------------------------ */

static void note(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    const tarn_attention *const a = call->attention;
    const struct tn_slice_ring *const r = &s->ring;
    float *const keys = r->pieces[0] + call->i * r->pair;

    pack(a, r->queries + call->i * r->keys, call->arrays.in[TN_QUERY], a->D);
    pack(a, keys, call->arrays.in[TN_KEY], a->D);
    pack(a, keys + r->keys, call->arrays.in[TN_VALUE], a->M);
}

static void meet(const struct meeting *m)
{
    const tarn_attention part = plan_of(m, false);
    const tarn_attention_arrays arrays = arrays_of(m);

    tn_attention_forward(&part, &arrays, m->s->ring.saved, m->s->work);
    for_heads(seen_of(m->s, m->attention, m->layer, m->i), join_head);
}

/* All own queries with the keys of a piece: of their own process first with those that are not
 * behind them, and when the piece is home again with the others. */
static void meet_piece(struct meeting m, void (*with)(const struct meeting *m))
{
    const size_t own = m.s->run->slices->own;
    const double begin = tn_seconds();

    for (m.i = 0; m.i < own; m.i++) {
        const size_t to = m.turn == 0 ? m.i + 1 : own;
        const size_t from = m.turn == size_of(m.s) ? m.i + 1 : 0;

        for (size_t j = to; j-- > from;) {
            m.j = j;
            with(&m);
        }
    }
    m.s->ring.worked = tn_seconds() - begin;
}

static size_t last_turn(const struct tn_slice_states *s, const tarn_attention *attention)
{
    return attention->causal ? rank_of(s) : size_of(s);
}

static float *piece_at(const struct tn_slice_states *s, size_t turn)
{
    return s->ring.pieces[size_of(s) > 1 ? turn % 2 : 0];
}

/* The next piece is from the process before; this one goes to that behind. */
static tarn_status receive_next(const struct meeting *m, size_t floats, tarn_error *err)
{
    const size_t size = size_of(m->s);

    if (size == 1 || m->turn == last_turn(m->s, m->attention))
        return TARN_OK;
    return tn_comm_receive(m->s->run->slices->comm, piece_at(m->s, m->turn + 1),
                           floats * sizeof(float), (rank_of(m->s) + size - 1) % size,
                           TN_TAG_RECORDS, err);
}

static tarn_status send_on(const struct meeting *m, size_t floats, tarn_error *err)
{
    const size_t size = size_of(m->s), next = (rank_of(m->s) + 1) % size;

    if (size == 1 || m->turn == size || (m->attention->causal && next == 0))
        return TARN_OK;
    return tn_comm_send(m->s->run->slices->comm, m->piece, floats * sizeof(float), next,
                        TN_TAG_RECORDS, err);
}

/* The first process has half a turn, and waits for the last one, which has as many turns as
 * there are processes; a slower one may take twice as long. */
static tarn_status wait_for(const struct tn_slice_states *s, size_t tag, tarn_error *err)
{
    const double most = 4.0 * (double)size_of(s) * s->ring.worked;

    return size_of(s) > 1 ? tn_comm_wait_for(s->run->slices->comm, tag, most, err) : TARN_OK;
}

static struct meeting turn_of(struct tn_slice_states *s, const tarn_attention *attention,
                              size_t layer, size_t turn)
{
    return (struct meeting){.s = s,
                            .attention = attention,
                            .layer = layer,
                            .turn = turn,
                            .owner = (rank_of(s) + size_of(s) - turn) % size_of(s),
                            .piece = piece_at(s, turn)};
}

static void exchange(struct tn_slice_states *s, const tarn_attention *attention, size_t layer)
{
    const size_t own = s->run->slices->own, floats = s->ring.piece;
    const struct seen nothing = seen_of(s, attention, layer, 0);
    tarn_status status = s->run->slices->status;
    tarn_error err;

    memset(nothing.sums, 0, own * s->ring.values * sizeof *nothing.sums);
    memset(nothing.kept, 0, own * s->ring.rows * sizeof *nothing.kept);
    for (size_t turn = 0; turn <= last_turn(s, attention) && status == TARN_OK; turn++) {
        const struct meeting m = turn_of(s, attention, layer, turn);

        if ((status = receive_next(&m, floats, &err)) == TARN_OK)
            status = send_on(&m, floats, &err);
        meet_piece(m, meet);
        if (status == TARN_OK)
            status = wait_for(s, TN_TAG_RECORDS, &err);
        tn_slices_keep(s->run, status, &err);
    }
}

static void forward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    for_heads(seen_of(s, call->attention, call->layer, call->i), finish_head);
    unpack(call->attention, call->arrays.y, s->ring.y, call->attention->M);
}

/* ---- Backward ----------------------------------------------------------- */

static void note_back(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    note(s, call);
    pack(call->attention, s->ring.dy + call->i * s->ring.values, call->arrays.dy,
         call->attention->M);
}

static void meet_back(const struct meeting *m)
{
    const tarn_attention *const a = m->attention;
    struct tn_slice_ring *const r = &m->s->ring;
    const tarn_attention part = plan_of(m, true);
    tarn_attention_arrays arrays = arrays_of(m);

    arrays.dy = as_input(rows_at(a, r->dy + m->i * r->values, a->M));
    arrays.din[TN_QUERY] = rows_at(a, r->dq, a->D);
    arrays.din[TN_KEY] = rows_at(a, r->dpair, a->D);
    arrays.din[TN_VALUE] = rows_at(a, r->dpair + r->keys, a->M);
    for_heads(seen_of(m->s, a, m->layer, m->i), finish_head);
    tn_attention_backward(&part, &arrays, r->saved, m->s->work);
    tn_tree_add(&a->host, r->dqueries + m->i * r->keys, r->dq, r->keys, false);
    tn_tree_add(&a->host, pair_of(m, true), r->dpair, r->pair, false);
}

/* Gradients of a piece that has met all queries go to the process it is of. */
static tarn_status send_home(const struct meeting *m, tarn_error *err)
{
    const struct tn_slice_states *const s = m->s;
    const size_t floats = s->ring.piece;
    float *const gradients = m->piece + floats;

    if (!m->attention->causal || rank_of(s) + 1 < size_of(s))
        return send_on(m, 2 * floats, err);
    if (m->turn > 0)
        return tn_comm_send(s->run->slices->comm, gradients, floats * sizeof(float), m->owner,
                            TN_TAG_HOME, err);
    if (size_of(s) > 1)
        memcpy(s->ring.home, gradients, floats * sizeof(float));
    return TARN_OK;
}

/* Asked for before all else: the last process may wait until it is taken. */
static tarn_status receive_home(const struct tn_slice_states *s,
                                const tarn_attention *attention, tarn_error *err)
{
    const size_t last = size_of(s) - 1;

    if (!attention->causal || rank_of(s) == last)
        return TARN_OK;
    return tn_comm_receive(s->run->slices->comm, s->ring.home, s->ring.piece * sizeof(float),
                           last, TN_TAG_HOME, err);
}

static tarn_status pass_back(struct tn_slice_states *s, const tarn_attention *attention,
                             size_t layer, tarn_error *err)
{
    const size_t floats = s->ring.piece;
    tarn_status status = receive_home(s, attention, err);

    for (size_t turn = 0; turn <= last_turn(s, attention) && status == TARN_OK; turn++) {
        const struct meeting m = turn_of(s, attention, layer, turn);

        meet_piece(m, meet_back);
        if ((status = receive_next(&m, 2 * floats, err)) == TARN_OK &&
            (status = send_home(&m, err)) == TARN_OK)
            status = wait_for(s, TN_TAG_RECORDS, err);
        if (status == TARN_OK && rank_of(s) + 1 == size_of(s))
            status = wait_for(s, TN_TAG_HOME, err);
    }
    return status == TARN_OK ? wait_for(s, TN_TAG_HOME, err) : status;
}

static void exchange_back(struct tn_slice_states *s, const tarn_attention *attention,
                          size_t layer)
{
    struct tn_slice_ring *const r = &s->ring;
    tarn_error err;

    memset(r->dqueries, 0, s->run->slices->own * r->keys * sizeof *r->dqueries);
    memset(r->pieces[0] + r->piece, 0, r->piece * sizeof *r->pieces[0]);
    if (s->run->slices->status == TARN_OK)
        tn_slices_keep(s->run, pass_back(s, attention, layer, &err), &err);
}

static void backward(struct tn_slice_states *s, const struct tn_slice_call *call)
{
    const tarn_attention *const a = call->attention;
    const struct tn_slice_ring *const r = &s->ring;
    float *const gradients =
        a->causal && size_of(s) > 1 ? r->home : piece_at(s, last_turn(s, a)) + r->piece;
    float *const dkeys = gradients + call->i * r->pair;

    unpack(a, call->arrays.din[TN_QUERY], r->dqueries + call->i * r->keys, a->D);
    unpack(a, call->arrays.din[TN_KEY], dkeys, a->D);
    unpack(a, call->arrays.din[TN_VALUE], dkeys + r->keys, a->M);
}

const struct tn_slice_way tn_slice_ring = {
    .keeps_outputs = true,
    .lay_out = lay_out,
    .note = note,
    .exchange = exchange,
    .forward = forward,
    .note_back = note_back,
    .exchange_back = exchange_back,
    .backward = backward,
};
