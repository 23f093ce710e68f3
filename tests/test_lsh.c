/* SPDX-License-Identifier: MIT */
/* test_lsh.c - kind lsh against its definition; the orders that this takes from forward are
 * checked against the hash. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/lsh_tile.h"
#include "support/lsh_case.h"
#include "support/lsh_definition.h"

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
    const float *const order = lsh_order(l, b, h, round);
    const size_t n = lsh_length(l, b);
    bool *const met = take(n, sizeof *met);
    size_t bucket = SIZE_MAX, last = 0;

    for (size_t slot = 0; slot < n; slot++) {
        const uint32_t entry = tn_lsh_entry(order, slot);
        const size_t position = entry & ~TN_LSH_STARTS;
        double margin;

        assert_true(position < n && !met[position]);
        met[position] = true;
        const size_t next =
            bucket_of(l, tn_in(l->arrays.in[0], b, h, position), round, &margin);

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
    lsh_forward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++)
            for (size_t r = 0; r < l->is.rounds; r++)
                check_order(l, b, h, r);
}

static void positions_are_sorted_by_bucket_then_position(void **state)
{
    (void)state;
    lsh_for_cases(60, 1, check_orders);
}

/* ---- forward ------------------------------------------------------------ */

static void check_forward(struct lsh *l)
{
    double *const y = take(l->M, sizeof(double));

    lsh_forward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++) {
            struct lsh_definition def = lsh_define(l, b, h);

            for (size_t i = 0; i < l->N; i++) {
                memset(y, 0, l->M * sizeof *y);
                if (i < def.n)
                    lsh_attend(&def, y, i);
                for (size_t m = 0; m < l->M; m++) {
                    const double got = (double)tn_out(l->arrays.y, b, h, i)[m];

                    if (!(fabs(got - y[m]) <= 2e-5))
                        fail_msg("%s, N %zu, D %zu, %s: y[%zu][%zu] is %g, not %g", l->kind,
                                 l->N, l->D, l->plan->host.kernels->name, i, m, got, y[m]);
                }
            }
            lsh_definition_free(&def);
        }
    free(y);
}

static void forward_equals_the_definition(void **state)
{
    (void)state;
    lsh_for_cases(200, 2, check_forward);
}

static void check_unsaved(struct lsh *l)
{
    const size_t count = l->B * l->H * l->N * l->M;
    float *const y = take(count, sizeof(float));

    lsh_forward(l);
    memcpy(y, l->y, count * sizeof(float));
    assert_int_equal(tarn_attention_forward(l->plan, &l->arrays, NULL, l->work, NULL), TARN_OK);
    assert_memory_equal(y, l->y, count * sizeof(float));
    free(y);
}

static void forward_without_saving_is_the_same(void **state)
{
    (void)state;
    lsh_for_cases(20, 3, check_unsaved);
}

/* ---- backward ----------------------------------------------------------- */

/* The slope of the definition's loss along u, which moves x (count doubles of def). */
static double slope(struct lsh_definition *def, const struct lsh *l, size_t b, size_t h,
                    double *x, const double *u, size_t count)
{
    const double e = 1e-6; /* far less than the 1e-3 within which a length of D = 1 bends */
    double ends[2];

    for (size_t end = 0; end < 2; end++) {
        for (size_t i = 0; i < count; i++)
            x[i] += (end == 0 ? e : -e) * u[i];
        ends[end] = lsh_loss(def, l, b, h);
        for (size_t i = 0; i < count; i++)
            x[i] -= (end == 0 ? e : -e) * u[i];
    }
    return (ends[0] - ends[1]) / (2.0 * e);
}

/* <dL/dx, u> for a random u of +-1 against the slope; the scale is |dx|. A query that sees one
 * key has slope 0, and what rounding leaves is divided by a length, at least 1e-3 sqrt D. */
static void check_slope(struct lsh_definition *def, const struct lsh *l, size_t b, size_t h,
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

    const double least = 1e-5 + 1e-7 / (1e-3 * sqrt((double)l->D));

    if (!(fabs(got - want) <= 1e-4 * sqrt(norm2) + least))
        fail_msg("%s, N %zu, D %zu, %s, causal %d: slope %g, gradient %g of %g", l->kind, l->N,
                 l->D, l->plan->host.kernels->name, l->is.desc.causal, got, want, sqrt(norm2));
    free(u);
}

static void check_gradients(struct lsh *l)
{
    struct tn_random random;

    tn_random_seed(&random, 17);
    lsh_forward(l);
    lsh_backward(l);
    for (size_t b = 0; b < l->B; b++)
        for (size_t h = 0; h < l->H; h++) {
            struct lsh_definition def = lsh_define(l, b, h);

            check_slope(&def, l, b, h, def.q, l->arrays.din[0], l->D, &random);
            check_slope(&def, l, b, h, def.v, l->arrays.din[1], l->M, &random);
            lsh_definition_free(&def);
            for (size_t i = lsh_length(l, b); i < l->N; i++) {
                for (size_t d = 0; d < l->D; d++)
                    assert_true(tn_out(l->arrays.din[0], b, h, i)[d] == 0.0f);
                for (size_t m = 0; m < l->M; m++)
                    assert_true(tn_out(l->arrays.din[1], b, h, i)[m] == 0.0f);
            }
        }
}

static void gradients_are_slopes_of_the_definition(void **state)
{
    (void)state;
    lsh_for_cases(150, 4, check_gradients);
}

/* The slope of forward itself, wherever its hashes stay what they were. */
static void gradients_are_slopes_of_forward_between_changes_of_hash(void **state)
{
    const double e = 5e-3;
    struct lsh_case is = lsh_plain_case(12);
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
        lsh_forward(&l);
        lsh_backward(&l);
        void *const saved = take(tarn_attention_saved_size(l.plan), 1);
        const size_t rows = l.N * l.D, order_bytes = 3 * l.N * sizeof(float);

        memcpy(q, l.q, sizeof q);
        memcpy(saved, lsh_order(&l, 0, 0, 0), order_bytes);
        for (size_t i = 0; i < rows; i++) {
            u[i] = tn_random_uniform(&random) < 0.5 ? -1.0f : 1.0f;
            want += (double)u[i] * (double)l.dq[i];
            norm2 += (double)l.dq[i] * (double)l.dq[i];
        }
        for (size_t end = 0; end < 4; end++) {
            change[end] = (const double[]){e, -e, e / 2, -e / 2}[end];
            for (size_t i = 0; i < rows; i++)
                l.q[i] = (float)((double)q[i] + change[end] * (double)u[i]);
            lsh_forward(&l);
            held = held && memcmp(saved, lsh_order(&l, 0, 0, 0), order_bytes) == 0;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_sorted_by_bucket_then_position),
        cmocka_unit_test(forward_equals_the_definition),
        cmocka_unit_test(forward_without_saving_is_the_same),
        cmocka_unit_test(gradients_are_slopes_of_the_definition),
        cmocka_unit_test(gradients_are_slopes_of_forward_between_changes_of_hash),
    };

    return cmocka_run_group_tests_name("lsh", tests, NULL, NULL);
}
