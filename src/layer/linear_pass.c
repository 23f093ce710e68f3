/* SPDX-License-Identifier: MIT */
/* linear_pass.c - a pass loads a tile of positions, works on it head by head, stores the
 * results and goes on to the next tile. */
#include "layer/linear_pass.h"

#include "layer/linear_ahead.h"
#include "layer/linear_sums.h"
#include "layer/recurrence.h"

enum { T = TN_LINEAR_TILE, FORWARDS = 1, BACKWARDS = -1 };

/* ---- Products and recurrences of one head ------------------------------- */

/* Packed rows, ld floats apart. */
struct packed {
    const float *rows;
    size_t ld;
};

static struct packed packed_q(const struct tn_linear_group *a, size_t head)
{
    return (struct packed){a->tiles->q + head * T * a->sizes.C_ld, a->sizes.C_ld};
}

static struct packed packed_k(const struct tn_linear_group *a, size_t head)
{
    return (struct packed){a->tiles->k + head * T * a->sizes.C_ld, a->sizes.C_ld};
}

static struct packed packed_v(const struct tn_linear_group *a, size_t head)
{
    return (struct packed){a->tiles->v + head * T * a->sizes.M_ld, a->sizes.M_ld};
}

static struct packed packed_g(const struct tn_linear_group *a, size_t head)
{
    return (struct packed){a->tiles->g + head * T * a->sizes.M_ld, a->sizes.M_ld};
}

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

static struct sum turned_of_head(const struct tn_linear_group *a, float *St, size_t head)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    return (struct sum){St + head * s->rows * s->St_ld, s->rows, s->C_ld, s->St_ld};
}

/* sum += x^T y over n positions. */
static void add(const struct tn_linear_group *a, struct sum sum, struct packed x,
                struct packed y, size_t n)
{
    a->plan->host.kernels->product(sum.at, (ptrdiff_t)sum.ld, x.rows, 1, (ptrdiff_t)x.ld,
                                   y.rows, (ptrdiff_t)y.ld, sum.rows, sum.width, n, true);
}

/* o = q sum for n positions; causal, the sum takes up k v^T before each, in either direction.
 * */
static void attend(const struct tn_linear_group *a, size_t head, struct sum sum,
                   struct packed q, struct packed k, struct packed v, size_t n, int direction,
                   const struct tn_linear_ahead *ahead)
{
    const size_t part = a->sizes.chunk > 0 ? T : TN_LINEAR_PART, ldo = a->sizes.o_ld;

    for (size_t i = 0; i < n; i += part) {
        const size_t first = direction == FORWARDS ? i : n - 1 - i;
        const struct tn_recurrence r = {
            .o = a->tiles->o + (head * T + first) * ldo,
            .S = sum.at,
            .q = q.rows + first * q.ld,
            .k = k.rows + first * k.ld,
            .v = v.rows + first * v.ld,
            .ldo = direction * (ptrdiff_t)ldo,
            .ldS = (ptrdiff_t)sum.ld,
            .ldq = direction * (ptrdiff_t)q.ld,
            .ldk = direction * (ptrdiff_t)k.ld,
            .ldv = direction * (ptrdiff_t)v.ld,
            .n = tn_min(part, n - i),
            .rows = sum.rows,
            .width = sum.width,
        };

        tn_linear_ahead_fetch(ahead, head, i, part);
        if (a->plan->causal)
            tn_recurrence_run(a->plan->host.kernels, &r, a->sizes.chunk, a->tiles->chunk);
        else
            a->plan->host.kernels->product(r.o, r.ldo, r.q, r.ldq, 1, r.S, r.ldS, r.n, r.width,
                                           r.rows, false);
    }
}

static void ahead_keys(struct tn_linear_ahead *ahead, const struct tn_linear_group *a)
{
    tn_linear_ahead_add(ahead, a, a->call->arrays->in[TN_KEY], a->plan->D);
    tn_linear_ahead_add(ahead, a, a->call->arrays->in[TN_VALUE], a->plan->M);
}

/* At most a tile of positions, from `from` on and before `end`. */
static void ahead_move(struct tn_linear_ahead *ahead, size_t from, size_t end)
{
    ahead->from = from;
    ahead->to = tn_min(from + T, end);
}

/* ---- Forward ------------------------------------------------------------ */

void tn_linear_sum_keys(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_ahead ahead = {0};

    ahead_keys(&ahead, a);
    for (size_t j = span.k_from; j < span.k_to; j += T) {
        const size_t n = tn_min(T, span.k_to - j);

        ahead_move(&ahead, j + n, span.k_to);
        tn_linear_load_keys(a, j, n);
        for (size_t head = 0; head < a->heads; head++) {
            tn_linear_ahead_fetch(&ahead, head, 0, T);
            add(a, turned_of_head(a, a->tiles->St, head), packed_v(a, head), packed_k(a, head),
                n);
        }
    }
}

/* q_i . z_i, causal z taking up k_i before. */
static void denominators(const struct tn_linear_group *a, size_t head, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const struct packed q = packed_q(a, head), k = packed_k(a, head);
    const ptrdiff_t ld = (ptrdiff_t)q.ld;
    float *const den = a->tiles->den + head * T, *const z = a->tiles->z + head * a->sizes.C_ld;

    if (a->plan->causal)
        kernels->recur_sum(den, z, q.rows, ld, k.rows, ld, n, a->sizes.C_ld);
    else
        for (size_t i = 0; i < n; i++)
            den[i] = kernels->dot(q.rows + i * q.ld, z, a->sizes.C_ld);
}

/* As a step does it: (20) with s = near + far. */
static void add_far(const struct tn_linear_group *a, size_t head, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->host.kernels;
    const struct packed q = packed_q(a, head);
    const struct sum far = sum_of_head(a, a->tiles->R, head);
    const float *const z = a->tiles->far_z + head * a->sizes.C_ld;

    kernels->product(a->tiles->o + head * T * a->sizes.o_ld, (ptrdiff_t)a->sizes.o_ld, q.rows,
                     (ptrdiff_t)q.ld, 1, far.at, (ptrdiff_t)far.ld, n, far.width, far.rows,
                     true);
    for (size_t i = 0; i < n && a->sizes.normalises; i++)
        a->tiles->den[head * T + i] += kernels->dot(q.rows + i * q.ld, z, a->sizes.C);
}

void tn_linear_add_far(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_group whole = *a;

    whole.sums.at = NULL;
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        tn_linear_load_queries(a, i, n);
        tn_linear_load_output(a, i, n);
        for (size_t head = 0; head < a->heads; head++)
            add_far(a, head, n);
        tn_linear_store_output(&whole, i, n);
    }
    a->plan->host.kernels->settle();
}

void tn_linear_forward(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_ahead ahead = {0};

    tn_linear_ahead_add(&ahead, a, a->call->arrays->in[TN_QUERY], a->plan->D);
    if (a->plan->causal)
        ahead_keys(&ahead, a);
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        ahead_move(&ahead, i + n, span.q_to);
        tn_linear_load_queries(a, i, n);
        if (a->plan->causal)
            tn_linear_load_keys(a, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            attend(a, head, sum_of_head(a, a->tiles->S, head), packed_q(a, head),
                   packed_k(a, head), packed_v(a, head), n, FORWARDS, &ahead); /* (9), (10) */
            if (a->sizes.normalises)
                denominators(a, head, n); /* (11) */
            if (a->far)
                add_far(a, head, n);
        }
        tn_linear_store_output(a, i, n); /* (12) */
    }
    a->plan->host.kernels->settle();
}

/* ---- Backward ----------------------------------------------------------- */

/* dphi(q_i) = St_i^T g'_i. */
void tn_linear_query_gradients(const struct tn_linear_group *a, struct tn_linear_span span,
                               bool sums)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    struct tn_linear_ahead ahead = {0};

    tn_linear_ahead_add(&ahead, a, arrays->in[TN_QUERY], a->plan->D);
    tn_linear_ahead_add(&ahead, a, arrays->dy, a->plan->M);
    if (a->sizes.normalises)
        tn_linear_ahead_add_output(&ahead, a, arrays->y, a->plan->M);
    if (a->plan->causal)
        ahead_keys(&ahead, a);
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        ahead_move(&ahead, i + n, span.q_to);
        tn_linear_load_queries(a, i, n);
        tn_linear_load_gradients(a, i, n, false);
        if (a->plan->causal)
            tn_linear_load_keys(a, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            attend(a, head, turned_of_head(a, a->tiles->St, head), packed_g(a, head),
                   packed_v(a, head), packed_k(a, head), n, FORWARDS, &ahead);
            if (sums)
                add(a, turned_of_head(a, a->tiles->Rt, head), packed_g(a, head),
                    packed_q(a, head), n);
        }
        tn_linear_store_gradients(a, arrays->din[TN_QUERY], arrays->in[TN_QUERY], a->tiles->q,
                                  i, n, a->plan->N);
    }
    a->plan->host.kernels->settle();
}

/* dphi(k_i) = Rt_i^T v'_i, dv_i = R_i^T phi(k_i). */
void tn_linear_key_gradients(const struct tn_linear_group *a, struct tn_linear_span span)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    struct tn_linear_ahead ahead = {0}, later = {0}; /* for the two recurrences */

    ahead_keys(&ahead, a);
    if (a->plan->causal) {
        tn_linear_ahead_add(&ahead, a, arrays->in[TN_QUERY], a->plan->D);
        tn_linear_ahead_add(&later, a, arrays->dy, a->plan->M);
    }
    tn_linear_turn_Rt(a);
    for (size_t to = span.k_to, n; to > span.k_from; to -= n) {
        n = (to - span.k_from - 1) % T + 1;
        const size_t i = to - n;

        ahead_move(&ahead, i > span.k_from + T ? i - T : span.k_from, i);
        ahead_move(&later, ahead.from, i);
        tn_linear_load_keys(a, i, n);
        if (a->plan->causal) {
            tn_linear_load_queries(a, i, n);
            tn_linear_load_gradients(a, i, n, true);
        }
        for (size_t head = 0; head < a->heads; head++)
            attend(a, head, turned_of_head(a, a->tiles->Rt, head), packed_v(a, head),
                   packed_g(a, head), packed_q(a, head), n, BACKWARDS, &ahead);
        tn_linear_store_gradients(a, arrays->din[TN_KEY], arrays->in[TN_KEY], a->tiles->k, i, n,
                                  a->length);
        for (size_t head = 0; head < a->heads; head++)
            attend(a, head, sum_of_head(a, a->tiles->R, head), packed_k(a, head),
                   packed_q(a, head), packed_g(a, head), n, BACKWARDS, &later);
        tn_linear_store_dv(a, i, n);
    }
    a->plan->host.kernels->settle();
}
