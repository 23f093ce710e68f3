/* SPDX-License-Identifier: MIT */
/* attention_lsh.c - attention among positions with equal hashes: Reformer (Kitaev et al. 2020).
 *
 * Queries and keys are the same vectors, keys of length one:
 *
 *   k_j = q_j / sqrt(|q_j|^2 + D 1e-6)          s_ij = q_i.k_j / sqrt D
 *
 * Each of several rounds r sorts the positions by a hash of its own (lsh_hash.h) and cuts the
 * sorted row into chunks. A query sees the keys of its chunk and of the chunk before, less
 * itself, less later positions if causal, less other buckets if same_bucket: J_r(i). One sum
 * goes over all rounds, and so counts a key as often as it is seen:
 *
 *   y_i = sum_r sum_{j in J_r(i)} p_ij v_j      p_ij = exp(s_ij - L_i)
 *   L_i = log sum_r sum_{j in J_r(i)} exp(s_ij)
 *
 * A query that sees nothing in any round sees itself: y_i = v_i. Its L_i is saved as infinity,
 * with which every p_ij is 0. Positions past a key length take no part: outputs and gradients
 * are 0.
 *
 * Causal means that no later position has a weight. Later positions still share in the sorting,
 * and move the ends of chunks, as in Reformer: they can change which earlier keys a query sees.
 *
 * Backward goes over the same rounds in the orders that forward saved:
 *
 *   ds_ij = p_ij (dy_i.v_j - dy_i.y_i)          dv_j = sum p_ij dy_i
 *
 * With k_j / sqrt D = c_j q_j, where c_j = 1 / (n_j sqrt D) and n_j is the length above, a
 * score is a product of queries, and query and key of a pair get their gradients by one:
 *
 *   dq_i = sum_j (ds_ij c_j + ds_ji c_i) q_j - q_i w_i / n_i^2          w_i = sum_j ds_ji s_ji
 *
 * Among the queries of a chunk the sum in brackets is a matrix and its transpose.
 *
 * Time is N x rounds x chunk; memory is N x rounds per thread, and as much saved. */
#include <math.h>

#include "layer/lsh_tile.h"

struct task {
    const struct tn_attention_call *call;
    struct tn_lsh_scratch *scratch; /* one per thread */
};

static void run_heads(const struct tn_attention_call *call, tn_work *run)
{
    struct tn_arena arena = tn_arena_over(call->work);
    struct task task = {call, tn_lsh_lay_out(call->plan, &arena)};

    tn_parallel(call->plan->host.threads, call->plan->B * call->plan->H, run, &task);
}

static size_t rounds(const tarn_attention *plan)
{
    return tn_lsh_option(plan, TN_LSH_ROUNDS);
}

static size_t rotation_floats(const tarn_attention *plan)
{
    return tn_lsh_rotation_floats(plan->D, tn_lsh_option(plan, TN_LSH_BUCKETS));
}

/* ---- forward ------------------------------------------------------------ */

static const float *sort_round(const struct tn_lsh_head *a, size_t round)
{
    float *const saved = a->call->saved;
    float *const order =
        saved ? tn_lsh_saved_order(a->plan, saved, a->b, a->h, round) : a->scratch->order;

    tn_lsh_sort(order, &a->scratch->hash, round, a->n);
    return order;
}

/* Scores become weights in units of exp(maximum). Where the maximum grows, what was summed
 * before is multiplied with `factor`. */
static void weigh_unbounded(const struct tn_lsh_head *a, const struct tn_lsh_scores *scores)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;

    a->kernels->lsh_score(scores);
    for (size_t i = 0; i < scores->rows; i++) {
        float *const s = scratch->scores + i * 2 * a->columns;
        const size_t position = (size_t)scores->row_position[i];
        float *const maximum = scratch->maximum + position;
        float *const total = scratch->total + position, *const sum = scratch->sums;
        const float most = a->kernels->max(s, a->used);

        if (most > *maximum) {
            const float factor = expf(*maximum - most); /* 0 the first time */

            *maximum = most;
            *total *= factor;
            a->kernels->scale(sum + position * a->sum, sum + position * a->sum, factor, a->M);
        }
        *total += a->kernels->exp_sum(s, s, isinf(*maximum) ? 0.0f : *maximum, a->used);
    }
}

/* Adds the chunk's outputs to the sums of their positions. */
static void gather_values(const struct tn_lsh_head *a, const struct tn_lsh_scores *scores)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const ptrdiff_t M = (ptrdiff_t)a->M;

    a->kernels->product(scratch->turned, M, scores->s, scores->ld, 1,
                        scratch->tiles.rows + a->D, (ptrdiff_t)a->row, scores->rows, a->M,
                        a->used, false);
    a->kernels->scatter_rows(scratch->sums, (ptrdiff_t)a->sum, scores->row_position,
                             scratch->turned, M, scores->rows, a->M);
}

static void forward_round(struct tn_lsh_head *a, const float *order)
{
    for (size_t first = 0; first < a->n; first += a->chunk) {
        tn_lsh_load(a, order, first);
        tn_lsh_fetch_ahead(a, 0);
        const struct tn_lsh_scores scores = tn_lsh_scores(a);

        tn_lsh_fetch_ahead(a, 1);
        if (a->bounded)
            a->kernels->lsh_weigh(&scores);
        else
            weigh_unbounded(a, &scores);
        tn_lsh_fetch_ahead(a, 2);
        gather_values(a, &scores);
        tn_lsh_fetch_ahead(a, 3);
    }
}

/* y = sum / total, L = maximum + log total. */
static void store_output(const struct tn_lsh_head *a)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const tarn_output y = a->call->arrays->y;
    const size_t M = a->plan->M;
    float *const L =
        a->call->saved ? tn_lsh_saved_sums(a->plan, a->call->saved, a->b, a->h) : NULL;

    for (size_t n = 0; n < a->n; n++) {
        const float total = scratch->total[n];

        if (L)
            L[n] = total > 0.0f ? scratch->maximum[n] + logf(total) : INFINITY;
        scratch->total[n] = 1.0f / total;
    }
    a->kernels->scale_rows(tn_out(y, a->b, a->h, 0), y.position, scratch->sums,
                           (ptrdiff_t)a->sum, (struct tn_column){scratch->total, 1}, a->n, M,
                           true);
    for (size_t n = 0; n < a->n; n++)
        if (isinf(scratch->total[n])) /* alone */
            memcpy(tn_out(y, a->b, a->h, n), scratch->rows + n * a->row + a->D,
                   M * sizeof(float));
    for (size_t n = a->n; n < a->plan->N; n++) {
        memset(tn_out(y, a->b, a->h, n), 0, M * sizeof(float));
        if (L)
            L[n] = INFINITY;
    }
}

static void forward_task(void *arg, size_t index, size_t thread)
{
    const struct task *const task = arg;
    struct tn_lsh_head head =
        tn_lsh_head_open(task->call, &task->scratch[thread], index, false);

    for (size_t n = 0; n < head.n; n++) {
        head.scratch->maximum[n] = head.bounded ? 0.0f : -INFINITY;
        head.scratch->total[n] = 0.0f;
    }
    memset(head.scratch->sums, 0, head.n * head.sum * sizeof(float));
    tn_lsh_hash_rows(&head.scratch->hash, head.plan->draws, head.scratch->rows, head.row,
                     head.n);
    for (size_t round = 0; round < rounds(head.plan); round++)
        forward_round(&head, sort_round(&head, round));
    store_output(&head);
    head.kernels->settle();
}

static void forward(const struct tn_attention_call *call)
{
    run_heads(call, forward_task);
}

/* ---- backward ----------------------------------------------------------- */

/* Sums of gradients: zero, but a position that saw itself only hands dy to its dv. */
static void start_gradients(const struct tn_lsh_head *a, const float *L)
{
    memset(a->scratch->w, 0, a->n * sizeof(float));
    memset(a->scratch->sums, 0, a->n * a->sum * sizeof(float));
    for (size_t n = 0; n < a->n; n++)
        if (isinf(L[n]))
            memcpy(a->scratch->sums + n * a->sum + a->D,
                   a->scratch->rows + n * a->row + a->D + a->M, a->M * sizeof(float));
}

/* p and ds c, and on the way w. */
static void chunk_backward(const struct tn_lsh_head *a, const struct tn_lsh_scores *scores)
{
    const struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const float *const dy = tiles->rows + a->slot * a->columns * a->row + a->D + a->M;

    a->kernels->product(scores->ds, scores->ld, dy, (ptrdiff_t)a->row, 1, tiles->v_turned,
                        scores->ld, scores->rows, a->used, a->plan->M, false);
    memset(tiles->w + a->slot * a->columns, 0, a->columns * sizeof(float));
    a->kernels->lsh_backward(scores);
}

/* x += x^T, of the chunk's queries among themselves. */
static void add_transpose(const struct tn_lsh_head *a, float *x, ptrdiff_t ld, size_t n)
{
    float *const turned = a->scratch->turned;

    a->kernels->transpose(turned, (ptrdiff_t)a->columns, x, ld, n, n);
    a->kernels->add_rows(x, ld, turned, (ptrdiff_t)a->columns, n, n);
}

/* The keys of the chunk before have gradients already. */
static void chunk_gradients(const struct tn_lsh_head *a, const struct tn_lsh_scores *scores)
{
    const struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const struct tn_kernels *const kernels = a->kernels;
    const ptrdiff_t row = (ptrdiff_t)a->row, sum = (ptrdiff_t)a->sum, ld = scores->ld;
    const size_t own = a->slot * a->columns, other = (a->slot ^ 1) * a->columns;
    const size_t before = a->used > a->columns ? tiles->count[a->slot ^ 1] : 0;
    const float *const q = tiles->rows + own * a->row, *const dy = q + a->D + a->M;
    float *const dq = tiles->gradients + own * a->sum;
    float *const dq_before = tiles->gradients + other * a->sum;

    kernels->product(dq + a->D, sum, scores->s + own, 1, ld, dy, row, scores->rows, a->M,
                     scores->rows, false);
    kernels->product(dq_before + a->D, sum, scores->s + other, 1, ld, dy, row, before, a->M,
                     scores->rows, true);
    tn_lsh_fetch_ahead(a, 2);
    kernels->product(dq_before, sum, scores->ds + other, 1, ld, q, row, before, a->D,
                     scores->rows, true);
    add_transpose(a, scores->ds + own, ld, scores->rows);
    kernels->product(dq, sum, scores->ds, ld, 1, tiles->rows, row, scores->rows, a->D, a->used,
                     false);
}

/* When the chunk after it is done, a chunk's gradients are whole. */
static void retire(const struct tn_lsh_head *a, size_t slot)
{
    const struct tn_lsh_tiles *const tiles = &a->scratch->tiles;
    const size_t at = slot * a->columns;
    const int32_t *const position = tiles->position + at;

    a->kernels->scatter_rows(a->scratch->sums, (ptrdiff_t)a->sum, position,
                             tiles->gradients + at * a->sum, (ptrdiff_t)a->sum,
                             tiles->count[slot], a->sum);
    for (size_t i = 0; i < tiles->count[slot]; i++)
        a->scratch->w[position[i]] += tiles->w[at + i];
}

static void backward_round(struct tn_lsh_head *a, const float *order, const float *L)
{
    for (size_t first = 0; first < a->n; first += a->chunk) {
        tn_lsh_load(a, order, first);
        struct tn_lsh_scores scores = tn_lsh_scores(a);

        scores.lse = L;
        tn_lsh_fetch_ahead(a, 0);
        chunk_backward(a, &scores);
        tn_lsh_fetch_ahead(a, 1);
        chunk_gradients(a, &scores);
        if (first > 0)
            retire(a, a->slot ^ 1);
        tn_lsh_fetch_ahead(a, 3);
    }
    if (a->n > 0)
        retire(a, a->slot);
}

static void store_rows(const struct tn_lsh_head *a, tarn_output to, const float *sums,
                       size_t width)
{
    a->kernels->scale_rows(tn_out(to, a->b, a->h, 0), to.position, sums, (ptrdiff_t)a->sum,
                           (struct tn_column){NULL, 0}, a->n, width, true);
    for (size_t n = a->n; n < a->plan->N; n++)
        memset(tn_out(to, a->b, a->h, n), 0, width * sizeof(float));
}

/* 1 / n^2 = c^2 D. */
static void store_gradients(const struct tn_lsh_head *a)
{
    const tarn_output *const din = a->call->arrays->din;
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const size_t D = a->plan->D;

    for (size_t n = 0; n < a->n; n++) {
        const float c = scratch->inverse[n];

        a->kernels->axpy(scratch->sums + n * a->sum, -c * c * (float)D * scratch->w[n],
                         scratch->rows + n * a->row, D);
    }
    store_rows(a, din[TN_LSH_QUERY], scratch->sums, D);
    store_rows(a, din[TN_LSH_VALUE], scratch->sums + a->D, a->plan->M);
}

static void backward_task(void *arg, size_t index, size_t thread)
{
    const struct task *const task = arg;
    struct tn_lsh_head head = tn_lsh_head_open(task->call, &task->scratch[thread], index, true);
    float *const saved = task->call->saved;
    const float *const L = tn_lsh_saved_sums(head.plan, saved, head.b, head.h);

    start_gradients(&head, L);
    for (size_t round = 0; round < rounds(head.plan); round++)
        backward_round(&head, tn_lsh_saved_order(head.plan, saved, head.b, head.h, round), L);
    store_gradients(&head);
    head.kernels->settle();
}

static void backward(const struct tn_attention_call *call)
{
    run_heads(call, backward_task);
}

/* ---- the row ------------------------------------------------------------ */

static tarn_status check(const tarn_attention *plan, tarn_error *err)
{
    const size_t buckets = tn_lsh_option(plan, TN_LSH_BUCKETS);

    if (buckets % 2 != 0)
        return tn_fail(err, TARN_EINVAL, "kind: buckets is %zu; it must be even", buckets);
    if (plan->N != plan->capacity)
        return tn_fail(err, TARN_EINVAL,
                       "keys is %zu and queries is %zu; 'lsh' needs them equal", plan->capacity,
                       plan->N);
    if (plan->N >= INT32_MAX)
        return tn_fail(err, TARN_EINVAL, "queries is %zu; with 'lsh' it must be less than %d",
                       plan->N, INT32_MAX);
    return TARN_OK;
}

static size_t draws(const tarn_attention *plan)
{
    size_t floats;

    return tn_size_product(&floats, (size_t[]){rounds(plan), rotation_floats(plan)}, 2)
               ? floats
               : SIZE_MAX;
}

static void draw(const tarn_attention *plan, struct tn_random *random)
{
    for (size_t round = 0; round < rounds(plan); round++)
        tn_lsh_rotation_draw(plan->draws + round * rotation_floats(plan), plan->D,
                             tn_lsh_option(plan, TN_LSH_BUCKETS), random);
}

static void work(const tarn_attention *plan, struct tn_arena *arena)
{
    tn_lsh_lay_out(plan, arena);
}

static const tarn_attention_input inputs[] = {
    [TN_LSH_QUERY] = {.name = "query",
                      .help = "what a position looks for and is found by",
                      .width = TARN_QUERY_WIDTH},
    [TN_LSH_VALUE] = {.name = "value",
                      .help = "what a position gives",
                      .width = TARN_VALUE_WIDTH,
                      .at_keys = true},
    {0},
};

extern const struct tn_attention_kind tn_attention_lsh;
const struct tn_attention_kind tn_attention_lsh = {
    .about = {"lsh", "softmax attention within hash buckets, as in Reformer",
              (const tarn_option_info[]){
                  [TN_LSH_ROUNDS] = {"rounds", "rounds of hashing, merged by log-sum-exp", 1.0,
                                     64.0, 4.0, true, NULL},
                  [TN_LSH_BUCKETS] = {"buckets", "buckets per hash, an even number", 2.0,
                                      65536.0, 64.0, true, NULL},
                  [TN_LSH_CHUNK] = {"chunk",
                                    "positions per chunk; each chunk also sees the one before",
                                    1.0, 4096.0, 32.0, true, NULL},
                  [TN_LSH_SAME_BUCKET] = {"same_bucket",
                                          "1: attend only to keys in the same bucket", 0.0, 1.0,
                                          0.0, true, NULL},
                  {0},
              }},
    .inputs = inputs,
    .check = check,
    .draws = draws,
    .draw = draw,
    .saved = tn_lsh_saved_floats,
    .work = work,
    .forward = forward,
    .backward = backward,
};
