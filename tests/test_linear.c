/* SPDX-License-Identifier: MIT */
/* test_linear.c - causal linear attention against Algorithm 1, its chunked form against the one
 * that goes position by position, and denominators at zero. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/algorithm_1.h"
#include "support/attention_case.h"

/* ---- Algorithm 1 -------------------------------------------------------- */

/* One head in double; with values (v, 1) and gradients (g / d, -(g.y) / d), Algorithm 1 also
 * gives the denominator d and what goes through it. */
struct head {
    size_t N, C, M;
    double *q, *k;     /* N x C, mapped */
    double *v, *g, *y; /* N x (M + 1) */
    double *dq, *dk, *dv;
};

static double elu1(double x)
{
    return x > 0.0 ? x + 1.0 : exp(x);
}

static double elu1_backward(double x)
{
    return x > 0.0 ? 1.0 : exp(x);
}

static struct head head_open(const struct attention_run *run, size_t b, size_t h)
{
    const size_t N = run->is.desc.queries, C = run->is.desc.query_width;
    const size_t M = run->is.desc.value_width, there = case_length(&run->is, b);
    struct head a = {.N = N, .C = C, .M = M};
    double **const rows[] = {&a.q, &a.k, &a.v, &a.g, &a.y, &a.dq, &a.dk, &a.dv};

    for (size_t i = 0; i < 8; i++)
        *rows[i] = take(N * (tn_max(C, M) + 1), sizeof(double));
    for (size_t i = 0; i < N; i++) {
        for (size_t c = 0; c < C; c++) {
            a.q[i * C + c] = elu1((double)tensor_row(&run->tensors[Q], b, i, h)[c]);
            if (i < there)
                a.k[i * C + c] = elu1((double)tensor_row(&run->tensors[K], b, i, h)[c]);
        }
        for (size_t m = 0; i < there && m < M; m++)
            a.v[i * (M + 1) + m] = (double)tensor_row(&run->tensors[V], b, i, h)[m];
        a.v[i * (M + 1) + M] = i < there ? 1.0 : 0.0;
    }
    return a;
}

static void head_close(struct head *a)
{
    double *const rows[] = {a->q, a->k, a->v, a->g, a->y, a->dq, a->dk, a->dv};

    for (size_t i = 0; i < 8; i++)
        free(rows[i]);
}

/* y = numerator / d, and g from dy. */
static void head_normalise(struct head *a, const struct tensor *dy, size_t b, size_t h)
{
    const size_t M = a->M;

    for (size_t i = 0; i < a->N; i++) {
        double *const y = a->y + i * (M + 1), *const g = a->g + i * (M + 1);
        const double d = y[M] + 1e-6;

        for (size_t m = 0; m < M; m++) {
            y[m] /= d;
            g[m] = (double)tensor_row(dy, b, i, h)[m] / d;
            g[M] -= g[m] * y[m];
        }
    }
}

static void head_run(struct head *a, const struct tensor *dy, size_t b, size_t h)
{
    algorithm_1_forward(a->y, a->q, a->k, a->v, a->N, a->C, a->M + 1);
    head_normalise(a, dy, b, h);
    algorithm_1_backward(a->dq, a->dk, a->dv, a->q, a->k, a->v, a->g, a->N, a->C, a->M + 1);
}

/* Puts a head's rows, ld apart, to their place in (B, N, H, width). */
static void put(double *out, const struct tensor *t, const double *rows, size_t ld, size_t b,
                size_t h)
{
    for (size_t i = 0; i < t->n; i++)
        for (size_t e = 0; e < t->width; e++)
            out[((b * t->n + i) * t->H + h) * t->width + e] = rows[i * ld + e];
}

static void unmap(double *dx, const struct tensor *x, size_t b, size_t h, size_t there)
{
    for (size_t i = 0; i < x->n; i++)
        for (size_t c = 0; c < x->width; c++)
            dx[i * x->width + c] *=
                i < there ? elu1_backward((double)tensor_row(x, b, i, h)[c]) : 0.0;
}

static void check_algorithm_1(const struct attention_run *run, double tolerance)
{
    const struct tensor *const t = run->tensors;
    double *want[ARRAYS] = {0};

    for (size_t i = Y; i <= DV; i++)
        want[i] = take(tensor_count(&t[i]), sizeof(double));
    for (size_t b = 0; b < run->is.desc.batch; b++)
        for (size_t h = 0; h < run->is.desc.heads; h++) {
            struct head a = head_open(run, b, h);
            const size_t there = case_length(&run->is, b);

            head_run(&a, &t[DY], b, h);
            unmap(a.dq, &t[Q], b, h, a.N);
            unmap(a.dk, &t[K], b, h, there);
            for (size_t i = there * (a.M + 1); i < a.N * (a.M + 1); i++)
                a.dv[i] = 0.0;
            put(want[Y], &t[Y], a.y, a.M + 1, b, h);
            put(want[DQ], &t[DQ], a.dq, a.C, b, h);
            put(want[DK], &t[DK], a.dk, a.C, b, h);
            put(want[DV], &t[DV], a.dv, a.M + 1, b, h);
            head_close(&a);
        }
    for (size_t i = Y; i <= DV; i++) {
        check_array_close(run, (enum array)i, want[i], tolerance);
        free(want[i]);
    }
}

static void causal_linear_equals_algorithm_1(void **state)
{
    const struct variant elu = variant_of("linear", "elu");
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 201);
    for (size_t trial = 0; trial < 60; trial++) {
        const struct attention_case is = case_draw(&elu, true, 2e7, &random);
        struct attention_run run;

        run_open(&run, &is);
        run_forward(&run);
        run_backward(&run);
        check_algorithm_1(&run, 1e-4);
        run_close(&run);
    }
}

/* Segments are of 528 positions where sequences x heads are 8 and more, and shared by threads
 * where they are fewer. */
static void check_segments(size_t heads, size_t N, enum layout layout, const size_t lengths[2])
{
    const struct variant elu = variant_of("linear", "elu");
    struct attention_case is = case_of(&elu, true, 2, heads, N, 5, 9);
    struct attention_run run;

    is.has_lengths = lengths != NULL;
    for (size_t b = 0; lengths && b < 2; b++)
        is.lengths[b] = tn_min(lengths[b], N);
    is.layout = layout;
    run_open(&run, &is);
    run_forward(&run);
    run_backward(&run);
    check_algorithm_1(&run, 1e-4);
    run_close(&run);
}

/* Ends that are no multiples of a tile; segments that are empty; keys that end before, in and
 * at the end of a segment. */
static void segments_equal_algorithm_1(void **state)
{
    static const size_t sizes[] = {527, 528, 529, 1056, 1057, 1023, 1024, 1025, 2000, 5000};
    static const size_t lengths[][2] = {{77, 667}, {528, 1056}, {0, 529}, {1055, 1999}};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (size_t heads = 1; heads <= 4; heads += heads == 1 ? 2 : 1) {
            const enum layout layout = (enum layout)((i + heads) % LAYOUTS);

            check_segments(heads, sizes[i], layout, NULL);
            check_segments(heads, sizes[i], layout, lengths[(i + heads) % 4]);
        }
}

/* Sums that take up a segment's positions by themselves, and sums that would take more. */
static void segments_of_wide_heads_equal_algorithm_1(void **state)
{
    static const size_t sizes[][3] = {{8, 32, 32}, {1, 64, 65}, {1, 100, 33}};
    const struct variant elu = variant_of("linear", "elu");

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const struct attention_case is =
            case_of(&elu, true, 1, sizes[i][0], 1100, sizes[i][1], sizes[i][2]);
        struct attention_run run;

        run_open(&run, &is);
        run_forward(&run);
        run_backward(&run);
        check_algorithm_1(&run, 1e-4);
        run_close(&run);
    }
}

/* ---- chunks ------------------------------------------------------------- */

static void check_chunk(const char *kind, const char *map, struct tn_random *random)
{
    const struct variant variant = variant_of("linear:chunk=0", map);
    struct attention_case is = case_draw(&variant, true, 1e7, random);
    struct attention_run one, chunked;

    run_open(&one, &is);
    is.desc.kind = kind;
    run_open(&chunked, &is);
    run_forward(&one);
    run_forward(&chunked);
    run_backward(&one);
    run_backward(&chunked);
    check_close(&chunked, &one, true, 1e-4);
    run_close(&one);
    run_close(&chunked);
}

static void every_chunk_equals_one_by_one(void **state)
{
    static const char *const kinds[] = {"linear:chunk=1",  "linear:chunk=5",  "linear:chunk=16",
                                        "linear:chunk=23", "linear:chunk=24", "linear"};
    static const char *const maps[] = {"elu", "relu", "positive:features=33"};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 202);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (size_t trial = 0; trial < 9; trial++)
            check_chunk(kinds[k], maps[trial % 3], &random);
}

/* Where a head's sums are wider than the first-level cache, the chunked form is the default. */
static void wide_heads_equal_algorithm_1(void **state)
{
    static const size_t widths[][2] = {{64, 65}, {128, 100}, {33, 300}};
    const struct variant elu = variant_of("linear", "elu");

    (void)state;
    for (size_t w = 0; w < 3; w++) {
        const struct attention_case is =
            case_of(&elu, true, 1, 2, 131, widths[w][0], widths[w][1]);
        struct attention_run run;

        run_open(&run, &is);
        run_forward(&run);
        run_backward(&run);
        check_algorithm_1(&run, 1e-4);
        run_close(&run);
    }
}

/* ---- denominators ------------------------------------------------------- */

/* One query q = 1 and one key k = -eps / 2 that are their own features: the denominator, k +
 * eps plus rounding, is nearer to zero than eps and held there. So y = k v / eps, dq = k v /
 * eps and dk = v / eps: no part of them goes through the denominator. */
static void check_held(const char *name, double eps)
{
    char kind[64];
    const float q = 1.0f, k = (float)(-0.5 * eps), v = 3.0f, dy = 2.0f;
    float y, dq, dk, dv;

    snprintf(kind, sizeof kind, "%s:eps=%.17g", name, eps);
    const struct variant variant = variant_of(kind, "identity");
    const struct attention_case is = case_of(&variant, true, 1, 1, 1, 1, 1);
    struct attention_run run;

    run_open(&run, &is);
    *run.tensors[Q].data = q;
    *run.tensors[K].data = k;
    *run.tensors[V].data = v;
    *run.tensors[DY].data = dy;
    run_forward(&run);
    run_backward(&run);
    y = *run.tensors[Y].data;
    dq = *run.tensors[DQ].data;
    dk = *run.tensors[DK].data;
    dv = *run.tensors[DV].data;
    if (!(fabs((double)y + 1.5) < 1e-5 && fabs((double)dq + 3.0) < 1e-5 &&
          fabs((double)dk * eps - 6.0) < 1e-5 && fabs((double)dv + 1.0) < 1e-5))
        fail_msg("%s: y %g, dq %g, dk %g, dv %g", kind, (double)y, (double)dq, (double)dk,
                 (double)dv);
    run_close(&run);
}

static void a_denominator_held_at_eps_has_no_slope(void **state)
{
    struct tn_random random;

    (void)state;
    check_held("linear", 1e-6);
    tn_random_seed(&random, 203);
    for (size_t trial = 0; trial < 200; trial++) {
        const double eps = pow(10.0, -6.0 * tn_random_uniform(&random));

        check_held("linear", eps);
        check_held("kernel", eps);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(causal_linear_equals_algorithm_1),
        cmocka_unit_test(segments_equal_algorithm_1),
        cmocka_unit_test(segments_of_wide_heads_equal_algorithm_1),
        cmocka_unit_test(every_chunk_equals_one_by_one),
        cmocka_unit_test(wide_heads_equal_algorithm_1),
        cmocka_unit_test(a_denominator_held_at_eps_has_no_slope),
    };

    return cmocka_run_group_tests_name("linear", tests, NULL, NULL);
}
