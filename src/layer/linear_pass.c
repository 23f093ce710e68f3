/* SPDX-License-Identifier: MIT */
/* linear_pass.c - a pass loads a tile of positions, works on it head by head, stores the
 * results and continues with the next tile. */
#include "layer/linear.h"

#include <string.h>

#include "layer/recurrence.h"

enum { T = TN_LINEAR_TILE, SHORT_T = TN_LINEAR_SHORT_TILE, FORWARDS = 1, BACKWARDS = -1 };

/* What a pass loads: keys with their values. */
enum { QUERIES = TN_LINEAR_QUERIES, KEYS = TN_LINEAR_KEYS, GRADIENTS = TN_LINEAR_GRADIENTS };

/* What it will load next: at most a tile. */
struct next {
    unsigned arrays;
    size_t from, to;
};

/* Arithmetic between two requests: so many positions and columns of results. Rows of a head
 * that is alone follow each other in memory, so that hardware has asked for most of them
 * before; those of a group are all waited for. */
struct piece {
    size_t positions, columns;
};

enum { LONG_PIECE = 12, PIECE_COLUMNS = 32 };

static struct piece piece_of(const struct tn_linear_group *a, struct next next)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const size_t all = a->sizes.width + a->sizes.C_ld; /* not fewer than a sum has */

    if (a->sizes.chunk > 0 || next.arrays == 0)
        return (struct piece){T, all};
    if (a->heads == 1)
        return (struct piece){LONG_PIECE, all};
    return (struct piece){a->plan->causal ? kernels->recur_steps : kernels->product_rows,
                          PIECE_COLUMNS};
}

/* The last piece of `all` columns takes what would be less than one of its own. */
static size_t piece_end(size_t from, size_t all, size_t each)
{
    return all - from < 2 * each ? all : from + each;
}

struct columns {
    size_t from, end;
};

static const struct columns whole_rows = {0, SIZE_MAX};

/* Requests columns of positions i .. i+n of the next tile. */
static void prefetch(const struct tn_linear_group *a, struct next next, size_t head, size_t i,
                     size_t n, struct columns columns)
{
    const size_t from = next.from + i;

    tn_linear_prefetch(
        a, next.arrays, head,
        (struct tn_linear_window){from, tn_min(next.to, from + n), columns.from, columns.end});
}

/* ---- Products and recurrences of one head ------------------------------- */

/* A running sum of outer products, rows x width. */
struct sum {
    float *at;
    size_t rows, width, ld;
};

static struct sum sum_of_head(const struct tn_linear_group *a, float *S, size_t head)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    return (struct sum){S + head * s->C * s->S_ld, s->C, s->width, s->S_ld};
}

static struct sum transposed_of_head(const struct tn_linear_group *a, float *St, size_t head)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    return (struct sum){St + head * s->rows * s->St_ld, s->rows, s->C_ld, s->St_ld};
}

/* sum += x^T y over n positions. */
static void add(const struct tn_linear_group *a, struct sum sum, struct tn_linear_rows x,
                struct tn_linear_rows y, size_t n)
{
    a->plan->host.kernels->product(sum.at, (ptrdiff_t)sum.ld, x.at, 1, x.ld, y.at, y.ld,
                                   sum.rows, sum.width, n, true);
}

static void attend_piece(const struct tn_linear_group *a, const struct tn_recurrence *r)
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

/* o = q sum for n positions; causal, the sum takes up k v^T before each, in either direction.
 * Columns of the sum stay in a cache while positions pass. */
static void attend(const struct tn_linear_group *a, size_t head, struct sum sum,
                   struct tn_linear_rows q, struct tn_linear_rows k, struct tn_linear_rows v,
                   size_t n, int direction, struct next next)
{
    const struct tn_linear_rows o = tn_linear_results(a, head);
    const ptrdiff_t first = direction == FORWARDS ? 0 : (ptrdiff_t)n - 1;
    const struct piece piece = piece_of(a, next);

    for (size_t column = 0, end; column < sum.width; column = end) {
        end = piece_end(column, sum.width, piece.columns);
        const struct columns asked = {column, end < sum.width ? end : SIZE_MAX};
        struct tn_recurrence r = {
            .o = o.at + first * o.ld + column,
            .S = sum.at + column,
            .q = q.at + first * q.ld,
            .k = k.at + first * k.ld,
            .v = v.at + first * v.ld + column,
            .ldo = direction * o.ld,
            .ldS = (ptrdiff_t)sum.ld,
            .ldq = direction * q.ld,
            .ldk = direction * k.ld,
            .ldv = direction * v.ld,
            .rows = sum.rows,
            .width = end - column,
        };

        for (size_t i = 0; i < n; i += r.n, advance(&r)) {
            r.n = tn_min(piece.positions, n - i);
            prefetch(a, next, head, i, r.n, asked);
            attend_piece(a, &r);
        }
    }
}

/* R from Rt, whose row for the denominator (15) does not need. */
static void transpose_Rt(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    memset(a->tiles->R, 0, a->heads * s->C * s->S_ld * sizeof(float));
    for (size_t head = 0; head < a->heads; head++)
        a->plan->host.kernels->transpose(
            a->tiles->R + head * s->C * s->S_ld, (ptrdiff_t)s->S_ld,
            a->tiles->Rt + head * s->rows * s->St_ld, (ptrdiff_t)s->St_ld, s->M, s->C);
}

void tn_linear_transpose_S(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    memset(a->tiles->St, 0, a->heads * s->rows * s->St_ld * sizeof(float));
    for (size_t head = 0; head < a->heads; head++) {
        float *const St = a->tiles->St + head * s->rows * s->St_ld;

        a->plan->host.kernels->transpose(St, (ptrdiff_t)s->St_ld,
                                         a->tiles->S + head * s->C * s->S_ld,
                                         (ptrdiff_t)s->S_ld, s->C, s->M);
        if (s->normalises)
            memcpy(St + s->M * s->St_ld, a->tiles->z + head * s->C_ld, s->C_ld * sizeof(float));
    }
}

/* ---- Forward ------------------------------------------------------------ */

void tn_linear_sum_keys(const struct tn_linear_group *a, size_t from, size_t to)
{
    const struct tn_linear_tiles *const t = a->tiles;

    for (size_t j = from; j < to; j += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - j);
        const struct next next = {KEYS, j + n, tn_min(j + n + SHORT_T, to)};

        tn_linear_load(a, KEYS, j, n);
        for (size_t head = 0; head < a->heads; head++) {
            const struct tn_linear_rows k = tn_linear_rows(a, t->k, head, j);

            prefetch(a, next, head, 0, SHORT_T, whole_rows);
            add(a, sum_of_head(a, t->S, head), k, tn_linear_rows(a, t->v, head, j), n);
            a->plan->host.kernels->sum_rows(t->z + head * a->sizes.C_ld, k.at, k.ld, n,
                                            a->sizes.C_ld);
        }
    }
}

/* q_i . z_i, causal z taking up k_i before. */
static void denominators(const struct tn_linear_group *a, size_t head, struct tn_linear_rows q,
                         struct tn_linear_rows k, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    float *const den = a->tiles->den + head * T, *const z = a->tiles->z + head * a->sizes.C_ld;

    if (a->plan->causal)
        kernels->recur_sum(den, z, q.at, q.ld, k.at, k.ld, n, a->sizes.C_ld);
    else
        for (size_t i = 0; i < n; i++)
            den[i] = kernels->dot(q.at + (ptrdiff_t)i * q.ld, z, a->sizes.C_ld);
}

/* As a step does it: (20) with s = near + far. */
static void add_far(const struct tn_linear_group *a, size_t head, struct tn_linear_rows q,
                    size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const struct sum far = sum_of_head(a, a->tiles->R, head);
    const struct tn_linear_rows o = tn_linear_results(a, head);
    const float *const z = a->tiles->far_z + head * a->sizes.C_ld;

    kernels->product(o.at, o.ld, q.at, q.ld, 1, far.at, (ptrdiff_t)far.ld, n, far.width,
                     far.rows, true);
    for (size_t i = 0; i < n && a->sizes.normalises; i++)
        a->tiles->den[head * T + i] += kernels->dot(q.at + (ptrdiff_t)i * q.ld, z, a->sizes.C);
}

void tn_linear_add_far(const struct tn_linear_group *a, size_t from, size_t to)
{
    struct tn_linear_group whole = *a;

    whole.pending.at = NULL;
    for (size_t i = from; i < to; i += T) {
        const size_t n = tn_min(T, to - i);

        tn_linear_load(a, QUERIES, i, n);
        tn_linear_load_output(a, i, n);
        for (size_t head = 0; head < a->heads; head++)
            add_far(a, head, tn_linear_rows(a, a->tiles->q, head, i), n);
        tn_linear_store_output(&whole, i, n);
    }
    a->plan->host.kernels->settle();
}

void tn_linear_forward(const struct tn_linear_group *a, size_t from, size_t to)
{
    const struct tn_linear_tiles *const t = a->tiles;
    const unsigned arrays = a->plan->causal ? QUERIES | KEYS : QUERIES;

    for (size_t i = from; i < to; i += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + SHORT_T, a->plan->N)};

        tn_linear_load(a, arrays, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            const struct tn_linear_rows q = tn_linear_rows(a, t->q, head, i),
                                        k = tn_linear_rows(a, t->k, head, i),
                                        v = tn_linear_rows(a, t->v, head, i);

            attend(a, head, sum_of_head(a, t->S, head), q, k, v, n, FORWARDS,
                   next); /* (9), (10) */
            if (a->sizes.normalises)
                denominators(a, head, q, k, n); /* (11) */
            if (a->far)
                add_far(a, head, q, n);
        }
        tn_linear_store_output(a, i, n); /* (12) */
    }
    a->plan->host.kernels->settle();
}

/* ---- Backward ----------------------------------------------------------- */

static void add_queries(const struct tn_linear_group *a, size_t head, size_t from, size_t n)
{
    add(a, transposed_of_head(a, a->tiles->Rt, head),
        tn_linear_rows(a, a->tiles->g, head, from), tn_linear_rows(a, a->tiles->q, head, from),
        n);
}

void tn_linear_sum_queries(const struct tn_linear_group *a, size_t from, size_t to)
{
    const unsigned arrays = QUERIES | GRADIENTS;

    for (size_t i = from; i < to; i += SHORT_T) {
        const size_t n = tn_min(SHORT_T, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + SHORT_T, to)};

        tn_linear_load(a, arrays, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            prefetch(a, next, head, 0, SHORT_T, whole_rows);
            add_queries(a, head, i, n);
        }
    }
}

/* Not causal, longer tiles fetch the sums of a group of heads half as often; a recurrence has
 * more rows beside its sums. */
static size_t gradient_tile(const struct tn_linear_group *a)
{
    return a->plan->causal ? SHORT_T : T;
}

void tn_linear_query_gradients(const struct tn_linear_group *a, size_t from, size_t to)
{
    const tarn_attention_arrays *const x = a->call->arrays;
    const struct tn_linear_tiles *const t = a->tiles;
    const size_t tile = gradient_tile(a);
    const unsigned arrays = QUERIES | GRADIENTS | (a->plan->causal ? KEYS : 0);

    for (size_t i = from; i < to; i += tile) {
        const size_t n = tn_min(tile, to - i);
        const struct next next = {arrays, i + n, tn_min(i + n + tile, to)};

        tn_linear_load(a, arrays, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            attend(a, head, transposed_of_head(a, t->St, head),
                   tn_linear_rows(a, t->g, head, i), tn_linear_rows(a, t->v, head, i),
                   tn_linear_rows(a, t->k, head, i), n, FORWARDS, next);
            if (!a->plan->causal)
                add_queries(a, head, i, n);
        }
        tn_linear_store_gradients(a, x->din[TN_QUERY], x->in[TN_QUERY], t->q, i, n, a->plan->N);
    }
    a->plan->host.kernels->settle();
}

void tn_linear_key_gradients(const struct tn_linear_group *a, size_t from, size_t to)
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

        tn_linear_load(a, arrays, i, n);
        for (size_t head = 0; head < a->heads; head++)
            attend(a, head, transposed_of_head(a, t->Rt, head),
                   tn_linear_rows(a, t->v, head, i), tn_linear_rows(a, t->g, head, i),
                   tn_linear_rows(a, t->q, head, i), n, BACKWARDS, i > from ? before : then);
        tn_linear_store_gradients(a, x->din[TN_KEY], x->in[TN_KEY], t->k, i, n, a->length);
        for (size_t head = 0; head < a->heads; head++)
            attend(a, head, sum_of_head(a, t->R, head), tn_linear_rows(a, t->k, head, i),
                   tn_linear_rows(a, t->q, head, i), tn_linear_rows(a, t->g, head, i), n,
                   BACKWARDS, none);
        tn_linear_store_dv(a, i, n);
    }
    a->plan->host.kernels->settle();
}
