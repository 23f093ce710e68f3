/* SPDX-License-Identifier: MIT */
/* linear_pass.c - a pass loads a tile of positions, works on it head by head, stores the
 * results and goes on to the next tile. */
#include "layer/linear_pass.h"

#include <string.h>

#include "layer/linear_ahead.h"
#include "layer/recurrence.h"

enum { T = TN_LINEAR_TILE, FORWARDS = 1, BACKWARDS = -1 };

void tn_linear_clear(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    for (size_t head = 0; head < a->heads; head++) {
        const struct tn_linear_state *const state = &a->states[head];

        memset(state->S, 0, s->C * s->S_ld * sizeof(float));
        memset(state->z, 0, s->C_ld * sizeof(float));
        memset(state->St, 0, s->rows * s->St_ld * sizeof(float));
        memset(state->Rt, 0, s->rows * s->St_ld * sizeof(float));
    }
}

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

static struct sum sum_S(const struct tn_linear_group *a, float *S)
{
    return (struct sum){S, a->sizes.C, a->sizes.width, a->sizes.S_ld};
}

static struct sum sum_St(const struct tn_linear_group *a, float *St)
{
    return (struct sum){St, a->sizes.rows, a->sizes.C_ld, a->sizes.St_ld};
}

/* sum += x^T y over n positions. */
static void add(const struct tn_linear_group *a, struct sum sum, struct packed x,
                struct packed y, size_t n)
{
    a->plan->kernels->product(sum.at, (ptrdiff_t)sum.ld, x.rows, 1, (ptrdiff_t)x.ld, y.rows,
                              (ptrdiff_t)y.ld, sum.rows, sum.width, n, true);
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
            tn_recurrence_run(a->plan->kernels, &r, a->sizes.chunk, a->tiles->chunk);
        else
            a->plan->kernels->product(r.o, r.ldo, r.q, r.ldq, 1, r.S, r.ldS, r.n, r.width,
                                      r.rows, false);
    }
}

static void ahead_keys(struct tn_linear_ahead *ahead, const struct tn_linear_group *a)
{
    tn_linear_ahead_add(ahead, a, a->call->arrays->k, a->plan->D);
    tn_linear_ahead_add(ahead, a, a->call->arrays->v, a->plan->M);
}

/* Queries and dy, and y where it is still needed. */
static void ahead_gradients(struct tn_linear_ahead *ahead, const struct tn_linear_group *a,
                            bool again)
{
    tn_linear_ahead_add(ahead, a, a->call->arrays->q, a->plan->D);
    tn_linear_ahead_add(ahead, a, a->call->arrays->dy, a->plan->M);
    if (!again && a->sizes.normalises)
        tn_linear_ahead_add_output(ahead, a, a->call->arrays->y, a->plan->M);
}

/* At most a tile of positions, from `from` on and before `end`. */
static void ahead_move(struct tn_linear_ahead *ahead, size_t from, size_t end)
{
    ahead->from = from;
    ahead->to = tn_min(from + T, end);
}

/* ---- Sums --------------------------------------------------------------- */

void tn_linear_sum(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_ahead ahead = {0};
    const float one = 1.0f;

    ahead_keys(&ahead, a);
    for (size_t j = span.k_from; j < span.k_to; j += T) {
        const size_t n = tn_min(T, span.k_to - j);

        ahead_move(&ahead, j + n, span.k_to);
        tn_linear_load_keys(a, j, n);
        for (size_t head = 0; head < a->heads; head++) {
            const struct packed k = packed_k(a, head);

            tn_linear_ahead_fetch(&ahead, head, 0, T);
            add(a, sum_S(a, a->states[head].S), k, packed_v(a, head), n);
            a->plan->kernels->product(a->states[head].z, 0, &one, 0, 0, k.rows, (ptrdiff_t)k.ld,
                                      1, a->sizes.C_ld, n, true);
        }
    }
}

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
            add(a, sum_St(a, a->states[head].St), packed_v(a, head), packed_k(a, head), n);
        }
    }
}

void tn_linear_sum_queries(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_ahead ahead = {0};

    ahead_gradients(&ahead, a, false);
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        ahead_move(&ahead, i + n, span.q_to);
        tn_linear_load_queries(a, i, n);
        tn_linear_load_gradients(a, i, n, false);
        for (size_t head = 0; head < a->heads; head++) {
            tn_linear_ahead_fetch(&ahead, head, 0, T);
            add(a, sum_St(a, a->states[head].Rt), packed_g(a, head), packed_q(a, head), n);
        }
    }
}

/* ---- Forward ------------------------------------------------------------ */

/* q_i . z_i, causal z taking up k_i before. */
static void denominators(const struct tn_linear_group *a, size_t head, size_t n)
{
    const struct tn_kernels *const kernels = a->plan->kernels;
    const struct packed q = packed_q(a, head), k = packed_k(a, head);
    const ptrdiff_t ld = (ptrdiff_t)q.ld;
    float *const den = a->tiles->den + head * T, *const z = a->states[head].z;

    if (a->plan->causal)
        kernels->recur_sum(den, z, q.rows, ld, k.rows, ld, n, a->sizes.C_ld);
    else
        for (size_t i = 0; i < n; i++)
            den[i] = kernels->dot(q.rows + i * q.ld, z, a->sizes.C_ld);
}

void tn_linear_forward(const struct tn_linear_group *a, struct tn_linear_span span)
{
    struct tn_linear_ahead ahead = {0};

    tn_linear_ahead_add(&ahead, a, a->call->arrays->q, a->plan->D);
    if (a->plan->causal)
        ahead_keys(&ahead, a);
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        ahead_move(&ahead, i + n, span.q_to);
        tn_linear_load_queries(a, i, n);
        if (a->plan->causal)
            tn_linear_load_keys(a, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            attend(a, head, sum_S(a, a->states[head].S), packed_q(a, head), packed_k(a, head),
                   packed_v(a, head), n, FORWARDS, &ahead); /* (9), (10) */
            if (a->sizes.normalises)
                denominators(a, head, n); /* (11) */
        }
        tn_linear_store_output(a, i, n); /* (12) */
    }
    a->plan->kernels->settle();
}

/* ---- Backward ----------------------------------------------------------- */

/* dphi(q_i) = St_i^T g'_i. */
void tn_linear_query_gradients(const struct tn_linear_group *a, struct tn_linear_span span,
                               bool summed)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    const bool sums = !summed && !a->plan->causal;
    struct tn_linear_ahead ahead = {0};

    ahead_gradients(&ahead, a, summed);
    if (a->plan->causal)
        ahead_keys(&ahead, a);
    for (size_t i = span.q_from; i < span.q_to; i += T) {
        const size_t n = tn_min(T, span.q_to - i);

        ahead_move(&ahead, i + n, span.q_to);
        tn_linear_load_queries(a, i, n);
        tn_linear_load_gradients(a, i, n, summed);
        if (a->plan->causal)
            tn_linear_load_keys(a, i, n);
        for (size_t head = 0; head < a->heads; head++) {
            attend(a, head, sum_St(a, a->states[head].St), packed_g(a, head), packed_v(a, head),
                   packed_k(a, head), n, FORWARDS, &ahead);
            if (sums)
                add(a, sum_St(a, a->states[head].Rt), packed_g(a, head), packed_q(a, head), n);
        }
        tn_linear_store_gradients(a, arrays->dq, arrays->q, a->tiles->q, i, n, a->plan->N);
    }
    a->plan->kernels->settle();
}

static struct sum sum_R(const struct tn_linear_group *a, size_t head)
{
    return sum_S(a, a->tiles->R + head * a->sizes.C * a->sizes.S_ld);
}

/* R from Rt; what pads its rows is zero. */
static void turn(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    memset(a->tiles->R, 0, a->heads * s->C * s->S_ld * sizeof(float));
    for (size_t head = 0; head < a->heads; head++)
        a->plan->kernels->transpose(sum_R(a, head).at, (ptrdiff_t)s->S_ld, a->states[head].Rt,
                                    (ptrdiff_t)s->St_ld, s->M, s->C);
}

/* dphi(k_i) = Rt_i^T v'_i, dv_i = R_i^T phi(k_i). */
void tn_linear_key_gradients(const struct tn_linear_group *a, struct tn_linear_span span)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    struct tn_linear_ahead ahead = {0}, later = {0}; /* for the two recurrences */

    ahead_keys(&ahead, a);
    if (a->plan->causal) {
        tn_linear_ahead_add(&ahead, a, arrays->q, a->plan->D);
        tn_linear_ahead_add(&later, a, arrays->dy, a->plan->M);
    }
    turn(a);
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
            attend(a, head, sum_St(a, a->states[head].Rt), packed_v(a, head), packed_g(a, head),
                   packed_q(a, head), n, BACKWARDS, &ahead);
        tn_linear_store_gradients(a, arrays->dk, arrays->k, a->tiles->k, i, n, a->length);
        for (size_t head = 0; head < a->heads; head++)
            attend(a, head, sum_R(a, head), packed_k(a, head), packed_q(a, head),
                   packed_g(a, head), n, BACKWARDS, &later);
        tn_linear_store_dv(a, i, n);
    }
    a->plan->kernels->settle();
}

/* ---- Segments ----------------------------------------------------------- */

/* The c-th float of each of n states: exclusive sums from one end, or the total. */
static void scan(const tarn_attention *plan, float *const *sums, size_t n, size_t floats,
                 int direction)
{
    for (size_t c = 0; c < floats; c++) {
        float total = 0.0f;

        for (size_t s = 0; s < n; s++) {
            float *const at = &sums[direction == FORWARDS ? s : n - 1 - s][c];
            const float own = *at;

            *at = total;
            total += own;
        }
        for (size_t s = 0; s < n && !plan->causal; s++)
            sums[s][c] = total;
    }
}

void tn_linear_scan_forward(const tarn_attention *plan, const struct tn_linear_state *states,
                            size_t n, size_t stride)
{
    const struct tn_linear_sizes sizes = tn_linear_sizes_of(plan);
    float *S[TN_LINEAR_SEGMENTS], *z[TN_LINEAR_SEGMENTS];

    for (size_t s = 0; s < n; s++) {
        S[s] = states[s * stride].S;
        z[s] = states[s * stride].z;
    }
    scan(plan, S, n, sizes.C * sizes.S_ld, FORWARDS);
    scan(plan, z, n, sizes.C_ld, FORWARDS);
}

void tn_linear_scan_backward(const tarn_attention *plan, const struct tn_linear_state *states,
                             size_t n, size_t stride)
{
    const struct tn_linear_sizes sizes = tn_linear_sizes_of(plan);
    float *St[TN_LINEAR_SEGMENTS], *Rt[TN_LINEAR_SEGMENTS];

    for (size_t s = 0; s < n; s++) {
        St[s] = states[s * stride].St;
        Rt[s] = states[s * stride].Rt;
    }
    scan(plan, St, n, sizes.rows * sizes.St_ld, FORWARDS);
    scan(plan, Rt, n, sizes.rows * sizes.St_ld, BACKWARDS);
}
