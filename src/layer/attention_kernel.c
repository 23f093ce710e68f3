/* SPDX-License-Identifier: MIT */
/* attention_kernel.c - attention for any non-negative similarity, as it is defined. Paper (3)
 *
 *   y_i = sum_j sim(q_i, k_j) v_j / d_i      d_i = sum_j sim(q_i, k_j) + eps
 *
 *   map          sim(q, k) = phi(q).phi(k)
 *   polynomial   sim(q, k) = (q.k + bias)^degree
 *   rbf          sim(q, k) = exp(-|q - k|^2 / (2 sigma^2))
 *
 * and backward, with g = dL/dy:
 *
 *   dL/dsim_ij = g_i.(v_j - y_i) / d_i       dv_j = sum_i sim(q_i, k_j) g_i / d_i
 *
 * Quadratic in time, linear in memory. It is what faster kinds are measured against, so every
 * pair is computed where it is needed and every sum is in double. A step is a forward of one
 * query over the cache of all keys so far; with a state, the keys of a call follow those in the
 * cache. */
#include <math.h>
#include <string.h>

#include "layer/attention_kind.h"
#include "layer/kv_cache.h"

enum { SIMILARITY, DEGREE, BIAS, SIGMA, EPS };
enum { MAP, POLYNOMIAL, RBF };

static bool is_map(const tarn_attention *plan)
{
    return (int)plan->options.value[SIMILARITY] == MAP;
}

/* Of the rows that similarities are taken of: phi(q) and phi(k), or q and k themselves. */
static size_t row_width(const tarn_attention *plan)
{
    return is_map(plan) ? plan->map.C : plan->D;
}

/* ---- memory ------------------------------------------------------------- */

struct work {
    float *queries, *keys; /* rows of one head, W floats each */
    float *row;            /* threads x W */
    double *row_sum;       /* threads x W */
    double *value_sum;     /* threads x M */
};

static struct work lay_out(const tarn_attention *plan, size_t queries, size_t threads,
                           struct tn_arena *arena)
{
    const size_t W = row_width(plan), M = plan->M;

    return (struct work){
        .queries = tn_arena_alloc(arena, queries, W * sizeof(float)),
        .keys = tn_arena_alloc(arena, plan->capacity, W * sizeof(float)),
        .row = tn_arena_alloc(arena, threads, W * sizeof(float)),
        .row_sum = tn_arena_alloc(arena, threads, W * sizeof(double)),
        .value_sum = tn_arena_alloc(arena, threads, M * sizeof(double)),
    };
}

static void work(const tarn_attention *plan, struct tn_arena *arena)
{
    lay_out(plan, plan->N, plan->host.threads, arena);
}

static void step_work(const tarn_attention *plan, size_t threads, struct tn_arena *arena)
{
    lay_out(plan, 1, threads, arena);
}

/* The denominators. */
static size_t saved(const tarn_attention *plan)
{
    return plan->B * plan->H * plan->N;
}

/* ---- one head of one sequence ------------------------------------------- */

/* Rows of a cache, then those of an array. */
struct rows {
    float *(*cached)(const tarn_attention *plan, float *cache, size_t h, size_t n);
    const tarn_attention *plan;
    float *cache;   /* only read */
    size_t h, past; /* rows of the cache */
    const float *first;
    ptrdiff_t stride;
};

static const float *row_at(struct rows rows, size_t n)
{
    return n < rows.past ? rows.cached(rows.plan, rows.cache, rows.h, n)
                         : rows.first + (ptrdiff_t)(n - rows.past) * rows.stride;
}

struct head {
    const struct tn_attention_call *call;
    const tarn_attention *plan;
    struct work work;
    struct rows q, k, v;
    size_t b, h;
    size_t past; /* keys that are in the state before the call */
    size_t queries, keys;
    size_t threads;
    bool causal;
    float *d; /* queries; or NULL */
};

/* Keys that query i sees are 0 .. seen - 1. */
static size_t seen(const struct head *head, size_t i)
{
    return head->causal ? tn_min(head->past + i + 1, head->keys) : head->keys;
}

static const float *query_row(const struct head *head, size_t i)
{
    return head->work.queries + i * row_width(head->plan);
}

static const float *key_row(const struct head *head, size_t j)
{
    return head->work.keys + j * row_width(head->plan);
}

static void prepare_row(const struct head *head, float *out, const float *in)
{
    if (is_map(head->plan))
        head->plan->map.row->forward(&head->plan->map, out, in);
    else
        memcpy(out, in, head->plan->D * sizeof(float));
}

/* The queries, then the keys. */
static void prepare_task(void *arg, size_t n, size_t thread)
{
    const struct head *const head = arg;
    const size_t W = row_width(head->plan);
    const size_t j = n - tn_min(n, head->queries);

    (void)thread;
    if (n < head->queries)
        prepare_row(head, head->work.queries + n * W, row_at(head->q, n));
    else
        prepare_row(head, head->work.keys + j * W, row_at(head->k, j));
}

static void prepare(struct head *head)
{
    tn_parallel(head->threads, head->queries + head->keys, prepare_task, head);
}

/* ---- similarity --------------------------------------------------------- */

/* sim(x, z) and its gradient:  dsim/dx = toward z + own x,  and  dsim/dz = toward x + own z. */
struct similarity {
    double value, toward, own;
};

static double dot(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double distance2(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        const double difference = (double)x[i] - (double)y[i];

        sum += difference * difference;
    }
    return sum;
}

static struct similarity similarity(const struct head *head, size_t i, size_t j)
{
    const double *const option = head->plan->options.value;
    const float *const x = query_row(head, i), *const z = key_row(head, j);
    const size_t W = row_width(head->plan);

    if ((int)option[SIMILARITY] == POLYNOMIAL) {
        const double base = dot(x, z, W) + option[BIAS];
        const double power = pow(base, option[DEGREE] - 1.0);

        return (struct similarity){power * base, option[DEGREE] * power, 0.0};
    }
    if ((int)option[SIMILARITY] == RBF) {
        const double variance = option[SIGMA] * option[SIGMA];
        const double value = exp(-0.5 * distance2(x, z, W) / variance);

        return (struct similarity){value, value / variance, -value / variance};
    }
    return (struct similarity){dot(x, z, W), 1.0, 0.0};
}

/* ---- forward ------------------------------------------------------------ */

/* A similarity that is only estimated may be negative. No denominator comes nearer to zero than
 * eps, on whichever side it is; with an eps of 0 it may be 0, and then so is the output. */
static double away_from_zero(double d, double eps)
{
    return fabs(d) < eps ? copysign(eps, d) : d;
}

static double inverse(double d)
{
    return d != 0.0 ? 1.0 / d : 0.0;
}

static void forward_task(void *arg, size_t i, size_t thread)
{
    const struct head *const head = arg;
    const size_t M = head->plan->M;
    const double eps = head->plan->options.value[EPS];
    double *const sum = head->work.value_sum + thread * M, similarities = 0.0;
    float *const y = tn_out(head->call->arrays->y, head->b, head->h, i);

    memset(sum, 0, M * sizeof *sum);
    for (size_t j = 0; j < seen(head, i); j++) {
        const double sim = similarity(head, i, j).value;
        const float *const v = row_at(head->v, j);

        similarities += sim;
        for (size_t m = 0; m < M; m++)
            sum[m] += sim * (double)v[m];
    }
    const double d = away_from_zero(similarities + eps, eps);

    for (size_t m = 0; m < M; m++)
        y[m] = (float)(sum[m] * inverse(d));
    if (head->d)
        head->d[i] = (float)d;
}

static void forward_head(struct head *head)
{
    prepare(head);
    tn_parallel(head->threads, head->queries, forward_task, head);
}

static struct rows rows_of(const struct tn_attention_call *call, size_t input, size_t b,
                           size_t h)
{
    const tarn_input a = call->arrays->in[input];

    return (struct rows){.cached = input == TN_KEY ? tn_kv_cache_key : tn_kv_cache_value,
                         .plan = call->plan,
                         .h = h,
                         .first = tn_in(a, b, h, 0),
                         .stride = a.position};
}

/* The first `past` keys and values are in a cache. */
static void take_past(struct head *head, const float *floats, size_t past)
{
    head->past = head->k.past = head->v.past = past;
    head->k.cache = head->v.cache = (float *)(uintptr_t)floats;
}

static struct head head_of(const struct tn_attention_call *call, struct work work, size_t b,
                           size_t h)
{
    const tarn_attention *const plan = call->plan;
    const size_t past = tn_call_count(call, b);
    struct head head = {
        .call = call,
        .plan = plan,
        .work = work,
        .q = rows_of(call, TN_QUERY, b, h),
        .k = rows_of(call, TN_KEY, b, h),
        .v = rows_of(call, TN_VALUE, b, h),
        .b = b,
        .h = h,
        .queries = plan->N,
        .keys = past + tn_key_length(call, b),
        .threads = plan->host.threads,
        .causal = plan->causal,
        .d = call->saved ? call->saved + (b * plan->H + h) * plan->N : NULL,
    };

    take_past(&head, tn_call_state0(call, b), past);
    return head;
}

static struct work work_of(const struct tn_attention_call *call)
{
    struct tn_arena arena = tn_arena_over(call->work);

    return lay_out(call->plan, call->plan->N, call->plan->host.threads, &arena);
}

/* The cache in place comes last: until then its rows are read where they were. */
static void forward(const struct tn_attention_call *call)
{
    for (size_t b = 0; b < call->plan->B; b++)
        for (size_t h = 0; h < call->plan->H; h++) {
            struct head head = head_of(call, work_of(call), b, h);

            forward_head(&head);
        }
    if (call->arrays->state1)
        tn_kv_cache_continue(call);
}

static void step(const struct tn_attention_call *call)
{
    struct tn_arena arena = tn_arena_over(call->work);
    const struct work rows = lay_out(call->plan, 1, call->threads, &arena);

    for (size_t b = 0; b < call->n; b++)
        for (size_t h = 0; h < call->plan->H; h++) {
            struct head head = head_of(call, rows, b, h);
            const size_t past = tn_state_count(call->states[b]);
            float *const cache = tn_state_floats(call->states[b]);

            take_past(&head, cache, past);
            head.queries = 1;
            head.keys = past + 1;
            head.threads = call->threads;
            forward_head(&head);
            tn_kv_cache_append(call, cache, b, h, past, 1);
        }
}

/* ---- backward ----------------------------------------------------------- */

/* dL/dsim_ij is the same expression in both sweeps. A denominator held at eps does not move
 * with the similarities: then the part through it is missing. */
static double similarity_gradient(const struct head *head, size_t i, size_t j)
{
    const size_t M = head->plan->M;
    const float *const g = tn_in(head->call->arrays->dy, head->b, head->h, i);
    const float *const y = tn_out(head->call->arrays->y, head->b, head->h, i);
    const float d = head->d[i];
    const bool held = fabsf(d) <= (float)head->plan->options.value[EPS];

    return (dot(g, row_at(head->v, j), M) - (held ? 0.0 : dot(g, y, M))) * inverse((double)d);
}

/* dx (D floats) from the gradient `sum` of the row that was prepared from x. */
static void finish_row(const struct head *head, float *dx, const double *sum, const float *x,
                       size_t thread)
{
    const size_t W = row_width(head->plan);
    float *const row = head->work.row + thread * W;

    for (size_t w = 0; w < W; w++)
        row[w] = (float)sum[w];
    if (is_map(head->plan))
        head->plan->map.row->backward(&head->plan->map, dx, row, x);
    else
        memcpy(dx, row, W * sizeof(float));
}

static void add_gradient(double *sum, double by, struct similarity sim, const float *other,
                         const float *own, size_t W)
{
    for (size_t w = 0; w < W; w++)
        sum[w] += by * (sim.toward * (double)other[w] + sim.own * (double)own[w]);
}

static void query_task(void *arg, size_t i, size_t thread)
{
    const struct head *const head = arg;
    const size_t W = row_width(head->plan);
    double *const sum = head->work.row_sum + thread * W;

    memset(sum, 0, W * sizeof *sum);
    for (size_t j = 0; j < seen(head, i); j++)
        add_gradient(sum, similarity_gradient(head, i, j), similarity(head, i, j),
                     key_row(head, j), query_row(head, i), W);
    finish_row(head, tn_out(head->call->arrays->din[TN_QUERY], head->b, head->h, i), sum,
               row_at(head->q, i), thread);
}

static size_t first_query(const struct head *head, size_t j)
{
    return head->causal && j > head->past ? j - head->past : 0;
}

/* The gradient of key or value j, which is the call's or one in the state; NULL: not wanted. */
static float *key_gradient(const struct head *head, size_t input, size_t j)
{
    float *const before = tn_call_dstate0(head->call, head->b);

    if (j >= head->past)
        return tn_out(head->call->arrays->din[input], head->b, head->h, j - head->past);
    if (!before)
        return NULL;
    return (input == TN_KEY ? tn_kv_cache_key : tn_kv_cache_value)(head->plan, before, head->h,
                                                                   j);
}

/* What the gradient of the state after the call adds to these. */
static void add_given(const struct head *head, float *dk, float *dv, size_t j)
{
    const tarn_attention *const plan = head->plan;
    float *const given = (float *)(uintptr_t)tn_call_dstate1(head->call, head->b);

    if (!given)
        return;
    plan->host.kernels->axpy(dk, 1.0f, tn_kv_cache_key(plan, given, head->h, j), plan->D);
    plan->host.kernels->axpy(dv, 1.0f, tn_kv_cache_value(plan, given, head->h, j), plan->M);
}

static void key_task(void *arg, size_t j, size_t thread)
{
    const struct head *const head = arg;
    const size_t W = row_width(head->plan), M = head->plan->M;
    double *const sum = head->work.row_sum + thread * W;
    double *const value_sum = head->work.value_sum + thread * M;
    float *const dk = key_gradient(head, TN_KEY, j), *const dv =
                                                         key_gradient(head, TN_VALUE, j);

    if (!dk)
        return;

    memset(sum, 0, W * sizeof *sum);
    memset(value_sum, 0, M * sizeof *value_sum);
    for (size_t i = first_query(head, j); i < head->queries; i++) {
        const struct similarity sim = similarity(head, i, j);
        const float *const g = tn_in(head->call->arrays->dy, head->b, head->h, i);
        const double weight = sim.value * inverse((double)head->d[i]);

        add_gradient(sum, similarity_gradient(head, i, j), sim, query_row(head, i),
                     key_row(head, j), W);
        for (size_t m = 0; m < M; m++)
            value_sum[m] += weight * (double)g[m];
    }
    finish_row(head, dk, sum, row_at(head->k, j), thread);
    for (size_t m = 0; m < M; m++)
        dv[m] = (float)value_sum[m];
    add_given(head, dk, dv, j);
}

/* Keys past the length were not looked at. */
static void clear_padding(const struct head *head)
{
    const tarn_attention_arrays *const arrays = head->call->arrays;

    for (size_t j = head->keys - head->past; j < head->plan->Nk; j++) {
        memset(tn_out(arrays->din[TN_KEY], head->b, head->h, j), 0,
               head->plan->D * sizeof(float));
        memset(tn_out(arrays->din[TN_VALUE], head->b, head->h, j), 0,
               head->plan->M * sizeof(float));
    }
}

static void backward(const struct tn_attention_call *call)
{
    tn_kv_cache_clear_gradient(call);
    for (size_t b = 0; b < call->plan->B; b++)
        for (size_t h = 0; h < call->plan->H; h++) {
            struct head head = head_of(call, work_of(call), b, h);

            prepare(&head);
            tn_parallel(call->plan->host.threads, head.queries, query_task, &head);
            tn_parallel(call->plan->host.threads, head.keys, key_task, &head);
            clear_padding(&head);
        }
}

/* ---- keys in parts ------------------------------------------------------ */

/* A part's denominator is the sum of its similarities; that of all parts gets eps. */
static void adapt_part(tarn_attention *part, bool backward)
{
    if (!backward)
        part->options.value[EPS] = 0.0;
}

static void join_part(const tarn_attention *plan, struct tn_part_kept *kept, float *sum,
                      const float *y, float d)
{
    plan->host.kernels->axpy(sum, d, y, plan->M);
    kept->sum += (double)d;
}

static void finish_parts(const tarn_attention *plan, float *y, float *d,
                         const struct tn_part_kept *kept, const float *sum)
{
    const double eps = plan->options.value[EPS], all = away_from_zero(kept->sum + eps, eps);

    plan->host.kernels->scale(y, sum, (float)inverse(all), plan->M);
    *d = (float)all;
}

static const struct tn_attention_parts parts = {
    .adapt = adapt_part,
    .join = join_part,
    .finish = finish_parts,
};

/* ---- the row ------------------------------------------------------------ */

static tarn_status check(const tarn_attention *plan, tarn_error *err)
{
    const double *const option = plan->options.value;

    if ((int)option[SIMILARITY] == POLYNOMIAL && (int)option[DEGREE] % 2 != 0)
        return tn_fail(err, TARN_EINVAL,
                       "kind: degree is %g; it must be even, because an odd power of q.k + "
                       "bias can be negative",
                       option[DEGREE]);
    return TARN_OK;
}

extern const struct tn_attention_kind tn_attention_kernel;
const struct tn_attention_kind tn_attention_kernel = {
    .about = {"kernel", "attention with any similarity, eq. (3); quadratic in the length",
              (const tarn_option_info[]){
                  [SIMILARITY] = {"similarity", "similarity of a query and a key", 0.0, 2.0,
                                  MAP, true,
                                  (const char *const[]){"map", "polynomial", "rbf", NULL}},
                  [DEGREE] = {"degree", "degree of the polynomial (q.k + bias)^degree, even",
                              2.0, 8.0, 2.0, true, NULL},
                  [BIAS] = {"bias", "bias of the polynomial", 0.0, 1e6, 1.0, false, NULL},
                  [SIGMA] = {"sigma", "sigma of rbf, exp(-|q - k|^2 / (2 sigma^2))", 1e-6, 1e6,
                             1.0, false, NULL},
                  [EPS] = {"eps", "added to the denominator", 0.0, 1.0, 1e-6, false, NULL},
                  {0},
              }},
    .has_map = true,
    .uses_map = is_map,
    .inputs = tn_query_key_value,
    .check = check,
    .saved = saved,
    .work = work,
    .forward = forward,
    .backward = backward,
    .state = tn_kv_cache_floats,
    .step_work = step_work,
    .step = step,
    .caches = true,
    .parts = &parts,
};
