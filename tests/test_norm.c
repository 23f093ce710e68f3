/* SPDX-License-Identifier: MIT */
/* test_norm.c - layer normalisation against its definition in double, and its gradients against
 * theirs and against slopes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/norm.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

/* ---- the definition ----------------------------------------------------- */

struct moments {
    double mean, scale;
};

static struct moments moments_of(const float *x, size_t F)
{
    double mean = 0.0, variance = 0.0;

    for (size_t i = 0; i < F; i++)
        mean += (double)x[i] / (double)F;
    for (size_t i = 0; i < F; i++)
        variance += pow((double)x[i] - mean, 2.0) / (double)F;
    return (struct moments){mean, 1.0 / sqrt(variance + (double)TN_NORM_EPS)};
}

struct gradients {
    double *dx, *dgain, *dbias;
};

static void define_row(struct gradients g, double *dx, const float *dy, const float *x,
                       const float *gain, size_t F)
{
    const struct moments m = moments_of(x, F);
    double sum = 0.0, sum_u = 0.0;

    for (size_t i = 0; i < F; i++) {
        const double u = ((double)x[i] - m.mean) * m.scale;
        const double slope = (double)dy[i] * (double)gain[i];

        g.dgain[i] += (double)dy[i] * u;
        g.dbias[i] += (double)dy[i];
        sum += slope / (double)F;
        sum_u += slope * u / (double)F;
    }
    for (size_t i = 0; i < F; i++) {
        const double u = ((double)x[i] - m.mean) * m.scale;

        dx[i] = m.scale * ((double)dy[i] * (double)gain[i] - sum - u * sum_u);
    }
}

/* ---- a case ------------------------------------------------------------- */

struct norm_case {
    struct tn_rows r;
    struct floats x, y, gain, bias, dy, dx, dgain, dbias;
    struct tn_norm_stats *stats;
    void *scratch;
};

static struct norm_case case_open(struct tn_rows r, struct tn_random *random)
{
    const size_t n = r.rows * r.width;
    struct norm_case c = {.r = r};

    c.x = floats_open(n, 1.0, random);
    c.y = floats_open(n, 1.0, random);
    c.dy = floats_open(n, 1.0, random);
    c.dx = floats_open(n, 1.0, random);
    c.gain = floats_open(r.width, 1.0, random);
    c.bias = floats_open(r.width, 1.0, random);
    c.dgain = floats_open(r.width, 1.0, random);
    c.dbias = floats_open(r.width, 1.0, random);
    c.stats = take(r.rows, sizeof *c.stats);
    c.scratch = take(tn_norm_scratch_size(&r), 1);
    return c;
}

static void case_close(struct norm_case *c)
{
    struct floats *const all[] = {&c->x,  &c->y,  &c->gain,  &c->bias,
                                  &c->dy, &c->dx, &c->dgain, &c->dbias};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        floats_close(all[i]);
    free(c->stats);
    free(c->scratch);
}

static void forward(struct norm_case *c)
{
    tn_norm_forward(&c->r, c->y.at, c->stats, c->x.at, c->gain.at, c->bias.at, TN_NORM_EPS);
}

static void backward(struct norm_case *c, float *dx, bool add_dx)
{
    tn_norm_backward(&c->r, dx, add_dx, c->dgain.at, c->dbias.at, c->dy.at, c->x.at, c->stats,
                     c->gain.at, c->scratch);
}

/* ---- tests -------------------------------------------------------------- */

static void check_forward(struct norm_case *c)
{
    const size_t F = c->r.width;
    double *const want = take(F, sizeof *want);

    forward(c);
    for (size_t row = 0; row < c->r.rows; row++) {
        const float *const x = c->x.at + row * F;
        const struct moments m = moments_of(x, F);

        for (size_t i = 0; i < F; i++)
            want[i] = ((double)x[i] - m.mean) * m.scale * (double)c->gain.at[i] +
                      (double)c->bias.at[i];
        check_floats("y", c->y.at + row * F, want, F, 1e-5);
        assert_true(fabs((double)c->stats[row].mean - m.mean) <= 1e-6);
        assert_true(fabs((double)c->stats[row].scale / m.scale - 1.0) <= 1e-5);
    }
    free(want);
}

/* What was in dgain, dbias and, if add_dx, in dx stays in the sums. A row of one element has
 * gradient 0 only because two numbers of size 300 cancel. */
static void check_backward(struct norm_case *c, bool add_dx)
{
    const size_t F = c->r.width, n = c->r.rows * F;
    const double tolerance = F < 4 ? 1e-2 : 1e-4;
    double *const dx = take(n, sizeof *dx), *const before = doubles_of(c->dx.at, n);
    struct gradients g = {dx, doubles_of(c->dgain.at, F), doubles_of(c->dbias.at, F)};

    for (size_t row = 0; row < c->r.rows; row++)
        define_row(g, dx + row * F, c->dy.at + row * F, c->x.at + row * F, c->gain.at, F);
    for (size_t i = 0; i < n; i++)
        dx[i] += add_dx ? before[i] : 0.0;
    backward(c, c->dx.at, add_dx);
    check_floats("dx", c->dx.at, dx, n, tolerance);
    check_floats("dgain", c->dgain.at, g.dgain, F, tolerance);
    check_floats("dbias", c->dbias.at, g.dbias, F, 1e-4);
    free(dx);
    free(before);
    free(g.dgain);
    free(g.dbias);
}

static void every_instruction_set_equals_the_definition(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 401);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < AWKWARD_ROWS * AWKWARD_WIDTHS; i++) {
            struct norm_case c =
                case_open((struct tn_rows){kernels, 1 + i % 3, awkward_rows[i / AWKWARD_WIDTHS],
                                           awkward_widths[i % AWKWARD_WIDTHS]},
                          &random);

            check_forward(&c);
            check_backward(&c, i % 2);
            case_close(&c);
        }
}

static double loss(void *arg)
{
    struct norm_case *const c = arg;

    forward(c);
    return dot_product(c->y.at, c->dy.at, c->y.n);
}

static void gradients_are_slopes(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 402);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct norm_case c = case_open((struct tn_rows){kernels, 2, 37, 61}, &random);

        forward(&c);
        memset(c.dgain.at, 0, 61 * sizeof(float));
        memset(c.dbias.at, 0, 61 * sizeof(float));
        backward(&c, c.dx.at, false);
        check_slope("x", loss, &c, c.x.at, c.dx.at, c.x.n, 1e-3, &random);
        check_slope("gain", loss, &c, c.gain.at, c.dgain.at, 61, 1e-3, &random);
        check_slope("bias", loss, &c, c.bias.at, c.dbias.at, 61, 1e-3, &random);
        case_close(&c);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    struct tn_random random;

    (void)state;
    for (size_t i = 0; i < AWKWARD_THREADS; i++) {
        struct tn_rows r = {tn_kernels_pick(forced_cpu()), 1, 2003, 149};

        tn_random_seed(&random, 403);
        struct norm_case one = case_open(r, &random);

        r.threads = awkward_threads[i];
        tn_random_seed(&random, 403);
        struct norm_case many = case_open(r, &random);

        forward(&one);
        forward(&many);
        backward(&one, one.dx.at, true);
        backward(&many, many.dx.at, true);
        check_bits("y", one.y.at, many.y.at, one.y.n);
        check_bits("dx", one.dx.at, many.dx.at, one.dx.n);
        check_bits("dgain", one.dgain.at, many.dgain.at, 149);
        check_bits("dbias", one.dbias.at, many.dbias.at, 149);
        case_close(&one);
        case_close(&many);
    }
}

static void arrays_may_be_overwritten(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 404);
    struct norm_case c =
        case_open((struct tn_rows){tn_kernels_pick(forced_cpu()), 2, 67, 61}, &random);

    forward(&c);
    backward(&c, c.dx.at, false);
    backward(&c, c.dy.at, false);
    check_bits("dx over dy", c.dx.at, c.dy.at, c.dx.n);
    tn_norm_forward(&c.r, c.x.at, NULL, c.x.at, c.gain.at, c.bias.at, TN_NORM_EPS);
    check_bits("y over x", c.x.at, c.y.at, c.x.n);
    case_close(&c);
}

/* Variance as mean(x^2) - mean(x)^2 would lose all of it. */
static void a_large_mean_costs_no_accuracy(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 405);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        struct norm_case c = case_open((struct tn_rows){kernels, 1, 3, 256}, &random);

        for (size_t i = 0; i < c.x.n; i++)
            c.x.at[i] += 4096.0f;
        forward(&c);
        for (size_t row = 0; row < 3; row++)
            assert_true(
                fabs((double)c.stats[row].scale / moments_of(c.x.at + row * 256, 256).scale -
                     1.0) <= 1e-4);
        case_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_equals_the_definition),
        cmocka_unit_test(gradients_are_slopes),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(arrays_may_be_overwritten),
        cmocka_unit_test(a_large_mean_costs_no_accuracy),
    };

    return cmocka_run_group_tests_name("layer normalisation", tests, NULL, NULL);
}
