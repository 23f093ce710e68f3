/* SPDX-License-Identifier: MIT */
/* linear_pass.c - a pass loads a tile of positions, works on it, stores the results and
 * continues with the next tile. */
#include "layer/linear.h"

#include <string.h>

#include "layer/recurrence.h"

enum { T = TN_LINEAR_TILE, SHORT_T = TN_LINEAR_SHORT_TILE, PIECE = 12 };
enum { FORWARDS = 1, BACKWARDS = -1 };

/* What a pass loads: keys with their values. */
enum { QUERIES = TN_LINEAR_QUERIES, KEYS = TN_LINEAR_KEYS, GRADIENTS = TN_LINEAR_GRADIENTS };

/* What it will load next: at most a tile. */
struct next {
    unsigned arrays;
    size_t from, to;
};

/* Positions of arithmetic between two requests. */
static size_t piece_of(const struct tn_linear_head *a, struct next next)
{
    return a->sizes.chunk > 0 || next.arrays == 0 ? T : PIECE;
}

/* Requests positions i .. i+n of the next tile. */
static void prefetch(const struct tn_linear_head *a, struct next next, size_t i, size_t n)
{
    const size_t from = next.from + i;

    tn_linear_prefetch(a, next.arrays, from, tn_min(next.to, from + n));
}

/* ---- Products and recurrences ------------------------------------------- */

/* A running sum of outer products, rows x width. */
struct sum {
    float *at;
    size_t rows, width, ld;
};

static struct sum sum_of(const struct tn_linear_head *a, float *S)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    return (struct sum){S, s->C, s->width, s->S_ld};
}

static struct sum transposed_of(const struct tn_linear_head *a, float *St)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    return (struct sum){St, s->rows, s->C_ld, s->St_ld};
}

/* sum += x^T y over n positions. */
static void add(const struct tn_linear_head *a, struct sum sum, struct tn_linear_rows x,
                struct tn_linear_rows y, size_t n)
{
    a->plan->host.kernels->product(sum.at, (ptrdiff_t)sum.ld, x.at, 1, x.ld, y.at, y.ld,
                                   sum.rows, sum.width, n, true);
}

static void attend_piece(const struct tn_linear_head *a, const struct tn_recurrence *r)
{
    if (a->plan->causal)
        tn_recurrence_run(a->plan->host.kernels, r, a->sizes.chunk, a->tiles->chunk);
    else
        a->plan->host.kernels->product(r->o, r->ldo, r->q, r->ldq, 1, r->S, r->ldS, r->n,
                                       r->width, r->rows, false);
}

static void advance(struct tn_recurrence *r)
{
    const ptrdiff_t n = (ptrdiff_t)r->n;

    r->o += n * r->ldo;
    r->q += n * r->ldq;
    r->k += n * r->ldk;
    r->v += n * r->ldv;
}

/* o = q sum for n positions; causal, the sum takes up k v^T before each. Either direction. */
static void attend(const struct tn_linear_head *a, struct sum sum, struct tn_linear_rows q,
                   struct tn_linear_rows k, struct tn_linear_rows v, size_t n, int direction,
                   struct next next)
{
    const struct tn_linear_rows o = a->tiles->o;
    const ptrdiff_t first = direction == FORWARDS ? 0 : (ptrdiff_t)n - 1;
    const size_t piece = piece_of(a, next);
    struct tn_recurrence r = {
        .o = o.at + first * o.ld,
        .S = sum.at,
        .q = q.at + first * q.ld,
        .k = k.at + first * k.ld,
        .v = v.at + first * v.ld,
        .ldo = direction * o.ld,
        .ldS = (ptrdiff_t)sum.ld,
        .ldq = direction * q.ld,
        .ldk = direction * k.ld,
        .ldv = direction * v.ld,
        .rows = sum.rows,
        .width = sum.width,
    };

    for (size_t i = 0; i < n; i += r.n, advance(&r)) {
        r.n = tn_min(piece, n - i);
        prefetch(a, next, i, r.n);
        attend_piece(a, &r);
    }
}

/* R from Rt, whose row for the denominator (15) does not need. */
static void transpose_Rt(const struct tn_linear_head *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    memset(a->tiles->R, 0, s->C * s->S_ld * sizeof(float));
    a->plan->host.kernels->transpose(a->tiles->R, (ptrdiff_t)s->S_ld, a->tiles->Rt,
                                     (ptrdiff_t)s->St_ld, s->M, s->C);
}

void tn_linear_transpose_S(const struct tn_linear_head *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    float *const St = a->tiles->St;

    memset(St, 0, s->rows * s->St_ld * sizeof(float));
    a->plan->host.kernels->transpose(St, (ptrdiff_t)s->St_ld, a->tiles->S, (ptrdiff_t)s->S_ld,
                                     s->C, s->M);
    if (s->normalises)
        memcpy(St + s->M * s->St_ld, a->tiles->z, s->C_ld * sizeof(float));
}

/* ---- Forward ------------------------------------------------------------ */

void tn_linear_sum_keys(const struct tn_linear_head *a, size_t from, size_t to)
{
    const struct tn_linear_tiles *const t = a->tiles;

    for (size_t j = from; j < to; j += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - j);
        const struct next next = {KEYS, j + n, tn_min(j + n + SHORT_T, to)};

        tn_linear_load(a, KEYS, j, n);
        prefetch(a, next, 0, SHORT_T);
        add(a, sum_of(a, t->S), t->k, t->v, n);
        a->plan->host.kernels->sum_rows(t->z, t->k.at, t->k.ld, n, a->sizes.C_ld);
    }
}

/* q_i . z_i, causal z taking up k_i before. */
static void denominators(const struct tn_linear_head *a, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const struct tn_linear_tiles *const t = a->tiles;
    const struct tn_linear_rows q = t->q, k = t->k;

    if (a->plan->causal)
        kernels->recur_sum(t->den, t->z, q.at, q.ld, k.at, k.ld, n, a->sizes.C_ld);
    else
        for (size_t i = 0; i < n; i++)
            t->den[i] = kernels->dot(q.at + (ptrdiff_t)i * q.ld, t->z, a->sizes.C_ld);
}

/* As a step does it: (20) with s = near + far. */
static void add_far(const struct tn_linear_head *a, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const struct tn_linear_tiles *const t = a->tiles;
    const struct tn_linear_rows q = t->q, o = t->o;
    const struct sum far = sum_of(a, t->R);

    kernels->product(o.at, o.ld, q.at, q.ld, 1, far.at, (ptrdiff_t)far.ld, n, far.width,
                     far.rows, true);
    for (size_t i = 0; i < n && a->sizes.normalises; i++)
        t->den[i] += kernels->dot(q.at + (ptrdiff_t)i * q.ld, t->far_z, a->sizes.C);
}

void tn_linear_add_far(const struct tn_linear_head *a, size_t from, size_t to)
{
    struct tn_linear_head whole = *a;

    whole.pending = NULL;
    for (size_t i = from; i < to; i += T) {
        const size_t n = tn_min(T, to - i);

        tn_linear_load(a, QUERIES, i, n);
        tn_linear_load_output(a, i, n);
        add_far(a, n);
        tn_linear_store_output(&whole, i, n);
    }
    a->plan->host.kernels->settle();
}

void tn_linear_forward(const struct tn_linear_head *a, size_t from, size_t to)
{
    const struct tn_linear_tiles *const t = a->tiles;
    const unsigned arrays = a->plan->causal ? QUERIES | KEYS : QUERIES;

    for (size_t i = from; i < to; i += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + SHORT_T, a->plan->N)};

        tn_linear_load(a, arrays, i, n);
        attend(a, sum_of(a, t->S), t->q, t->k, t->v, n, FORWARDS, next); /* (9), (10) */
        if (a->sizes.normalises)
            denominators(a, n); /* (11) */
        if (a->far)
            add_far(a, n);
        tn_linear_store_output(a, i, n); /* (12) */
    }
    a->plan->host.kernels->settle();
}

/* ---- Backward ----------------------------------------------------------- */

/* Rows of a tile; of a segment that stays packed, where they are in it. */
struct tile_rows {
    struct tn_linear_rows q, k, v, g;
};

static struct tile_rows rows_of(const struct tn_linear_head *a, size_t from)
{
    const struct tn_linear_tiles *const t = a->tiles;

    return (struct tile_rows){tn_linear_rows(a, t->q, from), tn_linear_rows(a, t->k, from),
                              tn_linear_rows(a, t->v, from), tn_linear_rows(a, t->g, from)};
}

void tn_linear_sum_queries(const struct tn_linear_head *a, size_t from, size_t to)
{
    const struct tn_linear_tiles *const t = a->tiles;
    const unsigned arrays = QUERIES | GRADIENTS;

    for (size_t i = from; i < to; i += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + SHORT_T, to)};

        tn_linear_load(a, arrays, i, n);
        prefetch(a, next, 0, SHORT_T);
        add(a, transposed_of(a, t->Rt), t->g, t->q, n);
    }
}

/* Not causal, longer tiles fetch the sums half as often; a recurrence has more rows beside its
 * sums. */
static size_t gradient_tile(const struct tn_linear_head *a)
{
    return a->plan->causal ? SHORT_T : T;
}

void tn_linear_query_gradients(const struct tn_linear_head *a, size_t from, size_t to)
{
    const tarn_attention_arrays *const x = a->call->arrays;
    const struct tn_linear_tiles *const t = a->tiles;
    const size_t tile = gradient_tile(a);
    const unsigned arrays = QUERIES | GRADIENTS | (a->plan->causal ? KEYS : 0);

    for (size_t i = from; i < to; i += tile) {
        const size_t n = tn_min(tile, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + tile, to)};
        const struct tile_rows rows = rows_of(a, i);

        tn_linear_load(a, arrays, i, n);
        attend(a, transposed_of(a, t->St), rows.g, rows.v, rows.k, n, FORWARDS, next);
        if (!a->plan->causal)
            add(a, transposed_of(a, t->Rt), rows.g, rows.q, n);
        tn_linear_store_gradients(a, x->din[TN_QUERY], x->in[TN_QUERY], t->q, i, n, a->plan->N);
    }
    a->plan->host.kernels->settle();
}

void tn_linear_key_gradients(const struct tn_linear_head *a, size_t from, size_t to)
{
    const tarn_attention_arrays *const x = a->call->arrays;
    const struct tn_linear_tiles *const t = a->tiles;
    const size_t tile = gradient_tile(a);
    const unsigned all = a->plan->causal ? KEYS | QUERIES | GRADIENTS : KEYS;
    const unsigned arrays = a->keeps ? 0 : all; /* what the other pass did not leave packed */

    transpose_Rt(a);
    for (size_t end = to, n; end > from; end -= n) {
        n = (end - from - 1) % tile + 1;
        const size_t i = end - n;
        const struct next before = {arrays, i > from + tile ? i - tile : from, i},
                          then = {all, a->then, tn_min(a->plan->N, a->then + tile)}, none = {0};
        const struct tile_rows rows = rows_of(a, i);

        tn_linear_load(a, arrays, i, n);
        attend(a, transposed_of(a, t->Rt), rows.v, rows.g, rows.q, n, BACKWARDS,
               i > from ? before : then);
        tn_linear_store_gradients(a, x->din[TN_KEY], x->in[TN_KEY], t->k, i, n, a->length);
        attend(a, sum_of(a, t->R), rows.k, rows.q, rows.g, n, BACKWARDS, none);
        tn_linear_store_dv(a, i, n);
    }
    a->plan->host.kernels->settle();
}
