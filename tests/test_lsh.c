/* SPDX-License-Identifier: MIT */
/* test_lsh.c - kind lsh against its definition, written out pair by pair in double.
 *
 * The definition takes the orders that forward saved, so that it differentiates what backward
 * differentiates: attention with its hashes held. The orders themselves are checked against the
 * hash. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layer/attn.h"
#include "layer/lsh_tile.h"
#include "support/testing.h"

#ifdef TN_HAVE_AVX2
extern const struct tn_kernels tn_kernels_wide;
static const struct tn_kernels *const wide = &tn_kernels_wide; /* runs where AVX2 does */
#else
static const struct tn_kernels *const wide = NULL;
#endif

/* ---- a case: a plan, its arrays, its memory ------------------------------ */

struct lsh_case {
    tarn_attention_desc desc;
    size_t rounds, buckets, chunk, same_bucket;
    const size_t *lengths;
    double scale;     /* of queries */
    bool heads_first; /* (B, H, N, D) instead of (B, N, H, D) */
    bool wide;        /* with the kernels of 16 lanes, which no name asks for */
};

struct lsh {
    struct lsh_case is;
    char kind[96];
    tarn_attention *plan;
    size_t B, H, N, D, M;
    float *q, *v, *y, *dy, *dq, *dv;
    void *saved, *work;
    tarn_attention_arrays arrays;
};

static float *take_random(size_t n, double scale, struct tn_random *random)
{
    float *const x = take(n, sizeof(float));

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(scale * tn_random_normal(random));
    return x;
}

static tarn_output view(const struct lsh *l, float *data, size_t width)
{
    const ptrdiff_t H = (ptrdiff_t)l->H, N = (ptrdiff_t)l->N, W = (ptrdiff_t)width;

    return l->is.heads_first ? (tarn_output){data, H * N * W, W, N * W}
                             : (tarn_output){data, N * H * W, H * W, W};
}

static tarn_input view_in(const struct lsh *l, float *data, size_t width)
{
    const tarn_output out = view(l, data, width);

    return (tarn_input){out.data, out.batch, out.position, out.head};
}

static void lsh_open(struct lsh *l, const struct lsh_case *is, uint64_t inputs_seed)
{
    struct tn_random random;
    tarn_error err = {0};

    *l = (struct lsh){.is = *is,
                      .B = is->desc.batch,
                      .H = is->desc.heads,
                      .N = is->desc.queries,
                      .D = is->desc.query_width,
                      .M = is->desc.value_width};
    snprintf(l->kind, sizeof l->kind, "lsh:rounds=%zu,buckets=%zu,chunk=%zu,same_bucket=%zu",
             is->rounds, is->buckets, is->chunk, is->same_bucket);
    l->is.desc.kind = l->kind;
    l->is.desc.keys = l->N;
    check_ok(tarn_attention_create(&l->plan, &l->is.desc, &err), &err);
    if (is->wide && wide && tn_kernels_pick("avx2"))
        l->plan->kernels = wide;
    const size_t rows = l->B * l->H * l->N;

    tn_random_seed(&random, inputs_seed);
    l->q = take_random(rows * l->D, is->scale, &random);
    l->v = take_random(rows * l->M, 1.0, &random);
    l->dy = take_random(rows * l->M, 1.0, &random);
    l->y = take(rows * l->M, sizeof(float));
    l->dq = take(rows * l->D, sizeof(float));
    l->dv = take(rows * l->M, sizeof(float));
    l->saved = take(tarn_attention_saved_size(l->plan), 1);
    l->work = take(tarn_attention_workspace_size(l->plan), 1);
    memset(l->work, 0xff, tarn_attention_workspace_size(l->plan)); /* no floats but NaN */
    l->arrays = (tarn_attention_arrays){.q = view_in(l, l->q, l->D),
                                        .v = view_in(l, l->v, l->M),
                                        .y = view(l, l->y, l->M),
                                        .dy = view_in(l, l->dy, l->M),
                                        .dq = view(l, l->dq, l->D),
                                        .dv = view(l, l->dv, l->M),
                                        .key_lengths = is->lengths};
}

static void lsh_close(struct lsh *l)
{
    tarn_attention_free(l->plan);
    free(l->q);
    free(l->v);
    free(l->y);
    free(l->dy);
    free(l->dq);
    free(l->dv);
    free(l->saved);
    free(l->work);
}

static void run_forward(struct lsh *l)
{
    tarn_error err = {0};

    check_ok(tarn_attention_forward(l->plan, &l->arrays, l->saved, l->work, &err), &err);
}

static void run_backward(struct lsh *l)
{
    tarn_error err = {0};

    check_ok(tarn_attention_backward(l->plan, &l->arrays, l->saved, l->work, &err), &err);
}

static size_t length_of(const struct lsh *l, size_t b)
{
    return l->is.lengths ? l->is.lengths[b] : l->N;
}

static const float *order_of(const struct lsh *l, size_t b, size_t h, size_t round)
{
    return tn_lsh_saved_order(l->plan, (float *)(void *)tn_arena_over(l->saved).base, b, h,
                              round);
}

/* ---- the definition ----------------------------------------------------- */

/* Queries and values of one head in double, and how often position i sees position j. */
struct definition {
    size_t n, D, M;
    double *q, *v; /* n x D, n x M */
    size_t *times; /* n x n */
};

/* The bucket of every slot of a sorted row, counted along it. */
static void count_sight(struct definition *def, const struct lsh *l, const float *order)
{
    const size_t n = def->n, chunk = l->is.chunk;
    size_t *const bucket = take(n, sizeof *bucket), *const position = take(n, sizeof *position);

    for (size_t slot = 0; slot < n; slot++) {
        const uint32_t entry = tn_lsh_entry(order, slot);

        position[slot] = entry & ~TN_LSH_STARTS;
        bucket[slot] = (slot > 0 ? bucket[slot - 1] : 0) + (entry & TN_LSH_STARTS ? 1 : 0);
    }
    for (size_t a = 0; a < n; a++)
        for (size_t b = 0; b < n; b++) {
            const size_t i = position[a], j = position[b];
            const bool near = a / chunk == b / chunk || a / chunk == b / chunk + 1;
            const bool allowed = (!l->is.desc.causal || j <= i) &&
                                 (!l->is.same_bucket || bucket[a] == bucket[b]);

            def->times[i * n + j] += near && allowed && i != j;
        }
    free(bucket);
    free(position);
}

static struct definition define(const struct lsh *l, size_t b, size_t h)
{
    struct definition def = {.n = length_of(l, b), .D = l->D, .M = l->M};

    def.q = take(def.n * def.D, sizeof(double));
    def.v = take(def.n * def.M, sizeof(double));
    def.times = take(def.n * def.n, sizeof(size_t));
    for (size_t i = 0; i < def.n; i++) {
        for (size_t d = 0; d < def.D; d++)
            def.q[i * def.D + d] = (double)tn_in(l->arrays.q, b, h, i)[d];
        for (size_t m = 0; m < def.M; m++)
            def.v[i * def.M + m] = (double)tn_in(l->arrays.v, b, h, i)[m];
    }
    for (size_t r = 0; r < l->is.rounds; r++)
        count_sight(&def, l, order_of(l, b, h, r));
    for (size_t i = 0; i < def.n; i++) {
        size_t seen = 0;

        for (size_t j = 0; j < def.n; j++)
            seen += def.times[i * def.n + j];
        def.times[i * def.n + i] = seen == 0; /* itself only when it sees nothing else */
    }
    return def;
}

static void definition_free(struct definition *def)
{
    free(def->q);
    free(def->v);
    free(def->times);
}

static double score(const struct definition *def, size_t i, size_t j)
{
    const double D = (double)def->D;
    double product = 0.0, length2 = 0.0;

    for (size_t d = 0; d < def->D; d++) {
        const double k = def->q[j * def->D + d];

        product += def->q[i * def->D + d] * k;
        length2 += k * k;
    }
    return product / sqrt(length2 + D * 1e-6) / sqrt(D);
}

/* y (M) of query i. */
static void attend(const struct definition *def, double *y, size_t i)
{
    double most = -HUGE_VAL, total = 0.0;

    for (size_t j = 0; j < def->n; j++)
        if (def->times[i * def->n + j])
            most = fmax(most, score(def, i, j));
    memset(y, 0, def->M * sizeof *y);
    for (size_t j = 0; j < def->n; j++) {
        const double times = (double)def->times[i * def->n + j];
        const double weight = times > 0.0 ? times * exp(score(def, i, j) - most) : 0.0;

        total += weight;
        for (size_t m = 0; m < def->M; m++)
            y[m] += weight * def->v[j * def->M + m];
    }
    for (size_t m = 0; m < def->M; m++)
        y[m] /= total;
}

/* sum dy . y of a head. */
static double loss(const struct definition *def, const struct lsh *l, size_t b, size_t h)
{
    double *const y = take(def->M, sizeof(double)), sum = 0.0;

    for (size_t i = 0; i < def->n; i++) {
        attend(def, y, i);
        for (size_t m = 0; m < def->M; m++)
            sum += y[m] * (double)tn_in(l->arrays.dy, b, h, i)[m];
    }
    free(y);
    return sum;
}

/* ---- cases -------------------------------------------------------------- */

/* The i-th of the cases that several tests go through, each on the i-th instruction set. */
static struct lsh_case case_draw(size_t i, size_t *lengths, struct tn_random *random)
{
    struct lsh_case is = {
        .desc = {.batch = ONE_OF(random, 1, 2),
                 .heads = ONE_OF(random, 1, 3),
                 .queries = ONE_OF(random, 1, 2, 7, 16, 32, 33, 64, 100),
                 .query_width = ONE_OF(random, 1, 5, 8, 32, 40),
                 .value_width = ONE_OF(random, 1, 7, 16, 32),
                 .causal = ONE_OF(random, 0, 1),
                 .seed = tn_random_bits(random),
                 .threads = ONE_OF(random, 1, 2)},
        .rounds = ONE_OF(random, 1, 2, 4),
        .buckets = ONE_OF(random, 2, 6, 16, 64),
        .chunk = ONE_OF(random, 1, 3, 8, 13, 32, 500),
        .same_bucket = ONE_OF(random, 0, 0, 1),
        .scale = (const double[]){1.0, 1.0, 10.0, 1e-3}[below(random, 4)],
        .heads_first = ONE_OF(random, 0, 1),
        .wide = ONE_OF(random, 0, 0, 1),
    };
    size_t tables = 0;

    while (tn_kernels_row(tables))
        tables++;
    is.desc.cpu = tn_kernels_row(i % tables)->name;
    if (ONE_OF(random, 0, 1)) {
        for (size_t b = 0; b < is.desc.batch; b++)
            lengths[b] = below(random, is.desc.queries + 1);
        is.lengths = lengths;
    }
    return is;
}

static void for_cases(size_t count, uint64_t seed, void (*check)(struct lsh *l))
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < count; i++) {
        size_t lengths[2];
        const struct lsh_case is = case_draw(i, lengths, &random);
        struct lsh l;

        lsh_open(&l, &is, tn_random_bits(&random));
        check(&l);
        lsh_close(&l);
    }
}

static struct lsh_case plain_case(size_t N)
{
    return (struct lsh_case){
        .desc = {.batch = 2,
                 .heads = 2,
                 .queries = N,
                 .query_width = 16,
                 .value_width = 8,
                 .seed = 7,
                 .threads = 1,
                 .cpu = forced_cpu()},
        .rounds = 3,
        .buckets = 8,
        .chunk = 8,
        .scale = 1.0,
    };
}

/* ---- orders ------------------------------------------------------------- */

/* argmax [xR, -xR], in double. Sets *margin to how clear it is. */
static size_t bucket_of(const struct lsh *l, const float *x, size_t round, double *margin)
{
    const size_t half = l->is.buckets / 2;
    const float *const R = l->plan->draws + round * l->D * half;
    double most = -HUGE_VAL, second = -HUGE_VAL;
    size_t bucket = 0;

    for (size_t c = 0; c < 2 * half; c++) {
        double sum = 0.0;

        for (size_t d = 0; d < l->D; d++)
            sum += (double)x[d] * (double)R[d * half + c % half];
        sum = c < half ? sum : -sum;
        second = fmax(second, fmin(sum, most));
        if (sum > most) {
            most = sum;
            bucket = c;
        }
    }
    *margin = most - second;
    return bucket;
}

static void check_order(const struct lsh *l, size_t b, size_t h, size_t round)
{
    const float *const order = order_of(l, b, h, round);
    const size_t n = length_of(l, b);
    bool *const met = take(n, sizeof *met);
    size_t bucket = SIZE_MAX, last = 0;

    for (size_t slot = 0; slot < n; slot++) {
        const uint32_t entry = tn_lsh_entry(order, slot);
        const size_t position = entry & ~TN_LSH_STARTS;
        double margin;

        assert_true(position < n && !met[position]);
        met[position] = true;
        const size_t next = bucket_of(l, tn_in(l->arrays.q, b, h, position), round, &margin);

        if (margin > 1e-4) {
            const bool starts = next != bucket;

            assert_true(bucket == SIZE_MAX || next >= bucket);
            assert_true(starts == ((entry & TN_LSH_STARTS) != 0));
            assert_true(starts || position > last);
        }
        bucket = next;
        last = position;
    }
    free(met);
}

static void check_orders(struct lsh *l)
{
    run_forward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++)
            for (size_t r = 0; r < l->is.rounds; r++)
                check_order(l, b, h, r);
}

static void positions_are_sorted_by_bucket_then_position(void **state)
{
    (void)state;
    for_cases(60, 1, check_orders);
}

/* ---- forward ------------------------------------------------------------ */

static void check_forward(struct lsh *l)
{
    double *const y = take(l->M, sizeof(double));

    run_forward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++) {
            struct definition def = define(l, b, h);

            for (size_t i = 0; i < l->N; i++) {
                memset(y, 0, l->M * sizeof *y);
                if (i < def.n)
                    attend(&def, y, i);
                for (size_t m = 0; m < l->M; m++) {
                    const double got = (double)tn_out(l->arrays.y, b, h, i)[m];

                    if (!(fabs(got - y[m]) <= 2e-5))
                        fail_msg("%s, N %zu, D %zu, %s: y[%zu][%zu] is %g, not %g", l->kind,
                                 l->N, l->D, l->plan->kernels->name, i, m, got, y[m]);
                }
            }
            definition_free(&def);
        }
    free(y);
}

static void forward_equals_the_definition(void **state)
{
    (void)state;
    for_cases(200, 2, check_forward);
}

static void check_unsaved(struct lsh *l)
{
    const size_t count = l->B * l->H * l->N * l->M;
    float *const y = take(count, sizeof(float));

    run_forward(l);
    memcpy(y, l->y, count * sizeof(float));
    assert_int_equal(tarn_attention_forward(l->plan, &l->arrays, NULL, l->work, NULL), TARN_OK);
    assert_memory_equal(y, l->y, count * sizeof(float));
    free(y);
}

static void forward_without_saving_is_the_same(void **state)
{
    (void)state;
    for_cases(20, 3, check_unsaved);
}

/* ---- backward ----------------------------------------------------------- */

/* The slope of the definition's loss along u, which moves x (count doubles of def). */
static double slope(struct definition *def, const struct lsh *l, size_t b, size_t h, double *x,
                    const double *u, size_t count)
{
    const double e = 1e-6; /* far less than the 1e-3 within which a length of D = 1 bends */
    double ends[2];

    for (size_t end = 0; end < 2; end++) {
        for (size_t i = 0; i < count; i++)
            x[i] += (end == 0 ? e : -e) * u[i];
        ends[end] = loss(def, l, b, h);
        for (size_t i = 0; i < count; i++)
            x[i] -= (end == 0 ? e : -e) * u[i];
    }
    return (ends[0] - ends[1]) / (2.0 * e);
}

/* <dL/dx, u> for a random u of +-1 against the slope; the scale is |dx|. */
static void check_slope(struct definition *def, const struct lsh *l, size_t b, size_t h,
                        double *x, tarn_output dx, size_t width, struct tn_random *random)
{
    double *const u = take(def->n * width, sizeof(double)), want = 0.0, norm2 = 0.0;

    for (size_t i = 0; i < def->n * width; i++) {
        const double gradient = (double)tn_out(dx, b, h, i / width)[i % width];

        u[i] = tn_random_uniform(random) < 0.5 ? -1.0 : 1.0;
        want += gradient * u[i];
        norm2 += gradient * gradient;
    }
    const double got = slope(def, l, b, h, x, u, def->n * width);

    if (!(fabs(got - want) <= 1e-4 * sqrt(norm2) + 1e-5))
        fail_msg("%s, N %zu, D %zu, %s, causal %d: slope %g, gradient %g of %g", l->kind, l->N,
                 l->D, l->plan->kernels->name, l->is.desc.causal, got, want, sqrt(norm2));
    free(u);
}

static void check_gradients(struct lsh *l)
{
    struct tn_random random;

    tn_random_seed(&random, 17);
    run_forward(l);
    run_backward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++) {
            struct definition def = define(l, b, h);

            check_slope(&def, l, b, h, def.q, l->arrays.dq, l->D, &random);
            check_slope(&def, l, b, h, def.v, l->arrays.dv, l->M, &random);
            definition_free(&def);
            for (size_t i = length_of(l, b); i < l->N; i++) {
                for (size_t d = 0; d < l->D; d++)
                    assert_true(tn_out(l->arrays.dq, b, h, i)[d] == 0.0f);
                for (size_t m = 0; m < l->M; m++)
                    assert_true(tn_out(l->arrays.dv, b, h, i)[m] == 0.0f);
            }
        }
}

static void gradients_are_slopes_of_the_definition(void **state)
{
    (void)state;
    for_cases(150, 4, check_gradients);
}

/* The slope of forward itself, wherever its hashes stay what they were. */
static void gradients_are_slopes_of_forward_between_changes_of_hash(void **state)
{
    const double e = 5e-3;
    struct lsh_case is = plain_case(12);
    struct tn_random random;
    size_t checked = 0;

    (void)state;
    is.desc.batch = is.desc.heads = 1;
    is.chunk = 4;
    tn_random_seed(&random, 18);
    for (uint64_t trial = 0; trial < 40; trial++) {
        struct lsh l;
        double want = 0.0, norm2 = 0.0, ends[4], change[4];
        float u[12 * 16], q[12 * 16];
        bool held = true;

        lsh_open(&l, &is, trial);
        run_forward(&l);
        run_backward(&l);
        void *const saved = take(tarn_attention_saved_size(l.plan), 1);
        const size_t rows = l.N * l.D, order_bytes = 3 * l.N * sizeof(float);

        memcpy(q, l.q, sizeof q);
        memcpy(saved, order_of(&l, 0, 0, 0), order_bytes);
        for (size_t i = 0; i < rows; i++) {
            u[i] = tn_random_uniform(&random) < 0.5 ? -1.0f : 1.0f;
            want += (double)u[i] * (double)l.dq[i];
            norm2 += (double)l.dq[i] * (double)l.dq[i];
        }
        for (size_t end = 0; end < 4; end++) {
            change[end] = (const double[]){e, -e, e / 2, -e / 2}[end];
            for (size_t i = 0; i < rows; i++)
                l.q[i] = (float)((double)q[i] + change[end] * (double)u[i]);
            run_forward(&l);
            held = held && memcmp(saved, order_of(&l, 0, 0, 0), order_bytes) == 0;
            ends[end] = 0.0;
            for (size_t i = 0; i < l.N * l.M; i++)
                ends[end] += (double)l.y[i] * (double)l.dy[i];
        }
        const double far = ends[0] - ends[1], near = ends[2] - ends[3];

        if (held) {
            checked++;
            assert_true(fabs((8.0 * near - far) / (6.0 * e) - want) <= 2e-3 * sqrt(norm2));
        }
        free(saved);
        lsh_close(&l);
    }
    assert_true(checked >= 5);
}

/* ---- properties --------------------------------------------------------- */

/* Later values do not matter, nor do later queries as long as they leave the orders alone, as
 * they do in one chunk. */
static void causal_output_ignores_what_is_later(void **state)
{
    struct lsh_case is = plain_case(40);
    const size_t from = 23;

    (void)state;
    is.desc.causal = true;
    for (size_t one_chunk = 0; one_chunk < 2; one_chunk++) {
        struct lsh l;

        is.chunk = one_chunk ? 64 : 8;
        lsh_open(&l, &is, 5);
        run_forward(&l);
        float *const y = take(2 * 2 * 40 * 8, sizeof(float));

        memcpy(y, l.y, 2 * 2 * 40 * 8 * sizeof(float));
        for (size_t b = 0; b < 2; b++)
            for (size_t h = 0; h < 2; h++)
                for (size_t n = from; n < 40; n++) {
                    for (size_t m = 0; m < 8; m++)
                        l.v[((b * 40 + n) * 2 + h) * 8 + m] += 3.0f;
                    for (size_t d = 0; one_chunk && d < 16; d++)
                        l.q[((b * 40 + n) * 2 + h) * 16 + d] *= -2.0f;
                }
        run_forward(&l);
        for (size_t b = 0; b < 2; b++)
            for (size_t i = 0; i < from * 2 * 8; i++) {
                const size_t at = b * 40 * 2 * 8 + i;

                assert_true(fabsf(y[at] - l.y[at]) <= (one_chunk ? 1e-6f : 0.0f));
            }
        free(y);
        lsh_close(&l);
    }
}

/* A loss of the first positions only moves nothing that is later. */
static void causal_gradient_of_what_is_later_is_zero(void **state)
{
    struct lsh_case is = plain_case(50);
    struct lsh l;

    (void)state;
    is.desc.causal = true;
    lsh_open(&l, &is, 6);
    for (size_t b = 0; b < 2; b++)
        memset(l.dy + (b * 50 + 31) * 2 * 8, 0, 19 * 2 * 8 * sizeof(float));
    run_forward(&l);
    run_backward(&l);
    for (size_t b = 0; b < 2; b++) {
        for (size_t i = 31 * 2 * 16; i < 50 * 2 * 16; i++)
            assert_true(l.dq[b * 50 * 2 * 16 + i] == 0.0f);
        for (size_t i = 31 * 2 * 8; i < 50 * 2 * 8; i++)
            assert_true(l.dv[b * 50 * 2 * 8 + i] == 0.0f);
    }
    lsh_close(&l);
}

/* The first n positions of sequence b, head h of two arrays are the same bits. */
static void check_same_rows(tarn_output a, tarn_output b, size_t B, size_t H, size_t n,
                            size_t width)
{
    for (size_t s = 0; s < B; s++)
        for (size_t h = 0; h < H; h++)
            for (size_t i = 0; i < n; i++)
                assert_memory_equal(tn_out(a, s, h, i), tn_out(b, s, h, i),
                                    width * sizeof(float));
}

static void padded_equals_unpadded(void **state)
{
    static const size_t lengths[] = {37, 37};
    struct lsh_case padded = plain_case(53), plain = plain_case(37);
    struct lsh p, u;

    (void)state;
    padded.lengths = lengths;
    for (size_t causal = 0; causal < 2; causal++) {
        padded.desc.causal = plain.desc.causal = causal;
        lsh_open(&p, &padded, 8);
        lsh_open(&u, &plain, 9);
        for (size_t b = 0; b < 2; b++)
            for (size_t h = 0; h < 2; h++)
                for (size_t n = 0; n < 53; n++)
                    for (size_t e = 0; e < 16; e++) {
                        const bool exists = n < 37;
                        const size_t to = ((b * 53 + n) * 2 + h), from = ((b * 37 + n) * 2 + h);

                        p.q[to * 16 + e] = exists ? u.q[from * 16 + e] : NAN;
                        if (e < 8) {
                            p.v[to * 8 + e] = exists ? u.v[from * 8 + e] : NAN;
                            p.dy[to * 8 + e] = exists ? u.dy[from * 8 + e] : NAN;
                        }
                    }
        run_forward(&p);
        run_forward(&u);
        run_backward(&p);
        run_backward(&u);
        check_same_rows(p.arrays.y, u.arrays.y, 2, 2, 37, 8);
        check_same_rows(p.arrays.dq, u.arrays.dq, 2, 2, 37, 16);
        check_same_rows(p.arrays.dv, u.arrays.dv, 2, 2, 37, 8);
        for (size_t b = 0; b < 2; b++)
            for (size_t i = 37 * 2 * 8; i < 53 * 2 * 8; i++)
                assert_true(p.y[b * 53 * 2 * 8 + i] == 0.0f &&
                            p.dv[b * 53 * 2 * 8 + i] == 0.0f);
        lsh_close(&p);
        lsh_close(&u);
    }
}

static void one_thread_equals_many(void **state)
{
    (void)state;
    for (size_t threads = 2; threads <= 5; threads += 3) {
        struct lsh_case is = plain_case(70);
        struct lsh one, many;

        lsh_open(&one, &is, 10);
        is.desc.threads = threads;
        lsh_open(&many, &is, 10);
        run_forward(&one);
        run_forward(&many);
        run_backward(&one);
        run_backward(&many);
        check_same_rows(one.arrays.y, many.arrays.y, 2, 2, 70, 8);
        check_same_rows(one.arrays.dq, many.arrays.dq, 2, 2, 70, 16);
        check_same_rows(one.arrays.dv, many.arrays.dv, 2, 2, 70, 8);
        lsh_close(&one);
        lsh_close(&many);
    }
}

static void hashes_are_frozen_until_redrawn(void **state)
{
    const struct lsh_case is = plain_case(90);
    struct lsh a, b;
    const size_t bytes = 3 * 90 * sizeof(float);

    (void)state;
    lsh_open(&a, &is, 11);
    lsh_open(&b, &is, 11);
    run_forward(&a);
    run_forward(&a); /* again: nothing is drawn by a call */
    run_forward(&b);
    assert_memory_equal(order_of(&a, 0, 0, 0), order_of(&b, 0, 0, 0), bytes);
    check_same_rows(a.arrays.y, b.arrays.y, 2, 2, 90, 8);
    tarn_attention_redraw(b.plan, 8);
    run_forward(&b);
    assert_memory_not_equal(order_of(&a, 0, 0, 0), order_of(&b, 0, 0, 0), bytes);
    tarn_attention_redraw(b.plan, 7);
    run_forward(&b);
    check_same_rows(a.arrays.y, b.arrays.y, 2, 2, 90, 8);
    lsh_close(&a);
    lsh_close(&b);
}

/* Backward goes by the hashes of its forward, also if they were redrawn since. */
static void backward_uses_the_orders_of_its_forward(void **state)
{
    const struct lsh_case is = plain_case(60);
    struct lsh a, b;

    (void)state;
    lsh_open(&a, &is, 12);
    lsh_open(&b, &is, 12);
    run_forward(&a);
    run_forward(&b);
    tarn_attention_redraw(b.plan, 99);
    run_backward(&a);
    run_backward(&b);
    check_same_rows(a.arrays.dq, b.arrays.dq, 2, 2, 60, 16);
    lsh_close(&a);
    lsh_close(&b);
}

static void one_chunk_sees_everything(void **state)
{
    struct lsh_case is = plain_case(30);
    struct lsh l;
    double y[8];

    (void)state;
    is.chunk = 4096;
    is.rounds = 1;
    lsh_open(&l, &is, 13);
    run_forward(&l);
    struct definition def = define(&l, 1, 1);

    for (size_t i = 0; i < 30; i++) {
        for (size_t j = 0; j < 30; j++)
            assert_int_equal(def.times[i * 30 + j], i != j);
        attend(&def, y, i);
        for (size_t m = 0; m < 8; m++)
            assert_true(fabs(y[m] - (double)tn_out(l.arrays.y, 1, 1, i)[m]) <= 1e-5);
    }
    definition_free(&def);
    lsh_close(&l);
}

static void a_single_position_sees_itself(void **state)
{
    const struct lsh_case is = plain_case(1);
    struct lsh l;

    (void)state;
    lsh_open(&l, &is, 14);
    run_forward(&l);
    run_backward(&l);
    assert_memory_equal(l.y, l.v, 2 * 2 * 8 * sizeof(float));
    assert_memory_equal(l.dv, l.dy, 2 * 2 * 8 * sizeof(float));
    for (size_t i = 0; i < 2 * 2 * 16; i++)
        assert_true(l.dq[i] == 0.0f);
    lsh_close(&l);
}

static void extreme_queries_stay_finite(void **state)
{
    static const float sizes[] = {0.0f, 1e-20f, 1e-6f, 1e3f, 1e6f};
    const struct lsh_case is = plain_case(20);

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        struct lsh l;

        lsh_open(&l, &is, 15);
        for (size_t i = 0; i < 2 * 20 * 2 * 16; i++)
            l.q[i] *= sizes[s];
        run_forward(&l);
        run_backward(&l);
        for (size_t i = 0; i < 2 * 20 * 2 * 16; i++)
            assert_true(isfinite(l.dq[i]));
        for (size_t i = 0; i < 2 * 20 * 2 * 8; i++)
            assert_true(isfinite(l.y[i]) && isfinite(l.dv[i]));
        lsh_close(&l);
    }
}

static void bad_options_are_refused(void **state)
{
    static const struct {
        const char *kind, *names;
        size_t queries, keys;
    } cases[] = {
        {"lsh:buckets=7", "buckets", 8, 8},
        {"lsh:buckets=0", "buckets", 8, 8},
        {"lsh:rounds=0", "rounds", 8, 8},
        {"lsh:rounds=65", "rounds", 8, 8},
        {"lsh:chunk=0", "chunk", 8, 8},
        {"lsh:chunk=1.5", "chunk", 8, 8},
        {"lsh:chunk=nan", "chunk", 8, 8},
        {"lsh:same_bucket=2", "same_bucket", 8, 8},
        {"lsh", "keys", 8, 9},
        {"lsh", "queries", INT32_MAX, INT32_MAX},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const tarn_attention_desc desc = {
            .kind = cases[c].kind,
            .batch = 1,
            .heads = 1,
            .queries = cases[c].queries,
            .keys = cases[c].keys,
            .query_width = 4,
            .value_width = 4,
        };
        tarn_attention *attention = NULL;
        tarn_error err = {0};

        assert_int_equal(tarn_attention_create(&attention, &desc, &err), TARN_EINVAL);
        assert_null(attention);
        assert_non_null(strstr(err.text, cases[c].names));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_sorted_by_bucket_then_position),
        cmocka_unit_test(forward_equals_the_definition),
        cmocka_unit_test(forward_without_saving_is_the_same),
        cmocka_unit_test(gradients_are_slopes_of_the_definition),
        cmocka_unit_test(gradients_are_slopes_of_forward_between_changes_of_hash),
        cmocka_unit_test(causal_output_ignores_what_is_later),
        cmocka_unit_test(causal_gradient_of_what_is_later_is_zero),
        cmocka_unit_test(padded_equals_unpadded),
        cmocka_unit_test(one_thread_equals_many),
        cmocka_unit_test(hashes_are_frozen_until_redrawn),
        cmocka_unit_test(backward_uses_the_orders_of_its_forward),
        cmocka_unit_test(one_chunk_sees_everything),
        cmocka_unit_test(a_single_position_sees_itself),
        cmocka_unit_test(extreme_queries_stay_finite),
        cmocka_unit_test(bad_options_are_refused),
    };

    return cmocka_run_group_tests_name("lsh", tests, NULL, NULL);
}
