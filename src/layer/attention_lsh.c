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
 *   dq_i = sum ds_ij k_j / sqrt D               dk_j = sum ds_ij q_i / sqrt D
 *
 * and in the end dk_j goes through the division by the length n:
 *
 *   dq_j += (dk_j - k_j (k_j.dk_j)) / n
 *
 * Time is N x rounds x chunk; memory is N per thread and N x rounds saved. */
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

    tn_lsh_sort(order, &a->scratch->hash, a->plan->draws + round * rotation_floats(a->plan),
                a->scratch->rows, a->row, a->n);
    return order;
}

/* Scores become weights in units of exp(maximum). Where the maximum grows, what was summed
 * before is to be multiplied with `factor`. */
static void weigh(const struct tn_lsh_head *a, const struct tn_lsh_tile *chunk, size_t columns)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;

    for (size_t i = 0; i < chunk->count; i++) {
        float *const s = scratch->scores + i * 2 * a->columns;
        float *const maximum = scratch->maximum + chunk->position[i];
        float *const total = scratch->total + chunk->position[i];
        const float most = a->kernels->max(s, columns);
        float factor = 1.0f;

        if (most > *maximum) {
            factor = expf(*maximum - most); /* 0 the first time */
            *maximum = most;
        }
        scratch->factor[i] = factor;
        *total = factor * *total +
                 a->kernels->exp_sum(s, s, isinf(*maximum) ? 0.0f : *maximum, columns);
    }
}

static void gather_values(const struct tn_lsh_head *a, const struct tn_lsh_tile *chunk,
                          const struct tn_lsh_tile *before)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const ptrdiff_t M = (ptrdiff_t)a->M, row = (ptrdiff_t)a->row,
                    ld = 2 * (ptrdiff_t)a->columns;

    a->kernels->product(scratch->out, M, scratch->scores, ld, 1, chunk->rows + a->D, row,
                        chunk->count, a->M, chunk->count, false);
    if (before->count > 0)
        a->kernels->product(scratch->out, M, scratch->scores + a->columns, ld, 1,
                            before->rows + a->D, row, chunk->count, a->M, before->count, true);
    for (size_t i = 0; i < chunk->count; i++) {
        float *const sum = scratch->sums + (size_t)chunk->position[i] * a->sum;

        if (scratch->factor[i] != 1.0f)
            a->kernels->scale(sum, sum, scratch->factor[i], a->M);
        a->kernels->axpy(sum, 1.0f, scratch->out + i * a->M, a->M);
    }
}

static void forward_round(struct tn_lsh_head *a, const float *order)
{
    for (size_t first = 0, turn = 0; first < a->n; first += a->chunk, turn ^= 1) {
        struct tn_lsh_tile *const chunk = &a->scratch->tiles[turn];
        struct tn_lsh_tile *const before = &a->scratch->tiles[turn ^ 1];

        if (first == 0)
            before->count = 0;
        tn_lsh_tile_load(a, chunk, order, first);
        weigh(a, chunk, tn_lsh_scores(a, chunk, before));
        gather_values(a, chunk, before);
    }
}

static void store_output(const struct tn_lsh_head *a)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const size_t M = a->plan->M;
    float *const L =
        a->call->saved ? tn_lsh_saved_sums(a->plan, a->call->saved, a->b, a->h) : NULL;

    for (size_t n = 0; n < a->plan->N; n++) {
        float *const y = tn_out(a->call->arrays->y, a->b, a->h, n);
        const bool exists = n < a->n, alone = exists && scratch->total[n] == 0.0f;

        if (!exists)
            memset(y, 0, M * sizeof(float));
        else if (alone)
            memcpy(y, scratch->rows + n * a->row + a->D, M * sizeof(float));
        else
            a->kernels->scale(y, scratch->sums + n * a->sum, 1.0f / scratch->total[n], M);
        if (L)
            L[n] = exists && !alone ? scratch->maximum[n] + logf(scratch->total[n]) : INFINITY;
    }
}

static void forward_task(void *arg, size_t index, size_t thread)
{
    const struct task *const task = arg;
    struct tn_lsh_head head =
        tn_lsh_head_open(task->call, &task->scratch[thread], index, false);

    for (size_t n = 0; n < head.n; n++) {
        head.scratch->maximum[n] = -INFINITY;
        head.scratch->total[n] = 0.0f;
    }
    memset(head.scratch->sums, 0, head.n * head.sum * sizeof(float));
    for (size_t round = 0; round < rounds(head.plan); round++)
        forward_round(&head, sort_round(&head, round));
    store_output(&head);
}

static void forward(const struct tn_attention_call *call)
{
    run_heads(call, forward_task);
}

/* ---- backward ----------------------------------------------------------- */

/* dy.y, and sums of gradients: zero, but a position that saw itself only hands dy to its dv. */
static void start_gradients(const struct tn_lsh_head *a, const float *L)
{
    for (size_t n = 0; n < a->n; n++) {
        const float *const dy = a->scratch->rows + n * a->row + a->D + a->M;
        const float *const y = tn_out(a->call->arrays->y, a->b, a->h, n);
        float *const sum = a->scratch->sums + n * a->sum;

        a->scratch->delta[n] = a->kernels->dot(dy, y, a->plan->M);
        memset(sum, 0, a->sum * sizeof(float));
        if (isinf(L[n]))
            memcpy(sum + 2 * a->D, dy, a->M * sizeof(float));
    }
}

/* A part of the scores: a chunk's queries with its own keys or with those of the one before. */
struct part {
    struct tn_lsh_tile *keys;
    float *p, *ds; /* first dy.v^T, then ds */
    bool add;      /* there are gradients in the keys' tile, and of the queries, already */
};

static void part_slopes(const struct tn_lsh_head *a, const struct tn_lsh_tile *chunk,
                        const struct part *part)
{
    const ptrdiff_t columns = (ptrdiff_t)a->columns;

    a->kernels->product(part->ds, 2 * columns, chunk->rows + a->D + a->M, (ptrdiff_t)a->row, 1,
                        part->keys->v_turned, columns, chunk->count, a->columns, a->plan->M,
                        false);
}

static void part_gradients(const struct tn_lsh_head *a, struct tn_lsh_tile *chunk,
                           const struct part *part)
{
    const struct tn_kernels *const kernels = a->kernels;
    const ptrdiff_t row = (ptrdiff_t)a->row, sum = (ptrdiff_t)a->sum, D = (ptrdiff_t)a->D;
    const ptrdiff_t ld = 2 * (ptrdiff_t)a->columns;
    const size_t queries = chunk->count, keys = part->keys->count;
    const float *const q = chunk->rows, *const dy = q + a->D + a->M;
    float *const dq = chunk->gradients, *const dk = part->keys->gradients + a->D;
    float *const dv = dk + a->D;

    kernels->product(dq, sum, part->ds, ld, 1, part->keys->k, D, queries, a->D, keys,
                     part->add);
    kernels->product(dk, sum, part->ds, 1, ld, q, row, keys, a->D, queries, part->add);
    kernels->product(dv, sum, part->p, 1, ld, dy, row, keys, a->M, queries, part->add);
}

static void backward_chunk(struct tn_lsh_head *a, const float *L, struct tn_lsh_tile *chunk,
                           struct tn_lsh_tile *before)
{
    const struct tn_lsh_scratch *const scratch = a->scratch;
    const struct part parts[] = {
        {chunk, scratch->scores, scratch->slopes, false},
        {before, scratch->scores + a->columns, scratch->slopes + a->columns, true},
    };
    const size_t columns = tn_lsh_scores(a, chunk, before), part_count = columns / a->columns;

    for (size_t part = 0; part < part_count; part++)
        part_slopes(a, chunk, &parts[part]);
    for (size_t i = 0; i < chunk->count; i++) {
        const size_t position = (size_t)chunk->position[i], at = i * 2 * a->columns;

        a->kernels->softmax_slope(scratch->scores + at, scratch->slopes + at, L[position],
                                  scratch->delta[position], columns);
    }
    for (size_t part = 0; part < part_count; part++)
        part_gradients(a, chunk, &parts[part]);
}

/* When the chunk after it is done, a tile's gradients are whole. */
static void tile_retire(const struct tn_lsh_head *a, struct tn_lsh_tile *tile)
{
    for (size_t i = 0; i < tile->count; i++)
        a->kernels->axpy(a->scratch->sums + (size_t)tile->position[i] * a->sum, 1.0f,
                         tile->gradients + i * a->sum, a->sum);
    tile->count = 0;
}

static void backward_round(struct tn_lsh_head *a, const float *order, const float *L)
{
    struct tn_lsh_tile *const tiles = a->scratch->tiles;

    tiles[0].count = tiles[1].count = 0;
    for (size_t first = 0, turn = 0; first < a->n; first += a->chunk, turn ^= 1) {
        tn_lsh_tile_load(a, &tiles[turn], order, first);
        backward_chunk(a, L, &tiles[turn], &tiles[turn ^ 1]);
        tile_retire(a, &tiles[turn ^ 1]);
    }
    tile_retire(a, &tiles[0]);
    tile_retire(a, &tiles[1]);
}

/* With c = 1 / (n sqrt D), so that k / sqrt D = c q:
 *     dq += c (dk - k (k.dk)) = c dk - c^3 D (q.dk) q */
static void store_gradients(const struct tn_lsh_head *a)
{
    const tarn_attention_arrays *const arrays = a->call->arrays;
    const size_t D = a->plan->D, M = a->plan->M;

    for (size_t n = 0; n < a->n; n++) {
        const float *const q = a->scratch->rows + n * a->row;
        float *const dq = a->scratch->sums + n * a->sum, *const dk = dq + a->D;
        const float c = a->scratch->inverse[n];

        a->kernels->axpy(dq, c, dk, D);
        a->kernels->axpy(dq, -(c * c * c) * (float)D * a->kernels->dot(q, dk, D), q, D);
        memcpy(tn_out(arrays->din[TN_LSH_QUERY], a->b, a->h, n), dq, D * sizeof(float));
        memcpy(tn_out(arrays->din[TN_LSH_VALUE], a->b, a->h, n), dk + a->D, M * sizeof(float));
    }
    for (size_t n = a->n; n < a->plan->N; n++) {
        memset(tn_out(arrays->din[TN_LSH_QUERY], a->b, a->h, n), 0, D * sizeof(float));
        memset(tn_out(arrays->din[TN_LSH_VALUE], a->b, a->h, n), 0, M * sizeof(float));
    }
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
