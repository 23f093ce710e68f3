/* SPDX-License-Identifier: MIT */
/* test_activation.c - relu and gelu against libm in double, over the whole range of floats. */
#include <math.h>
#include <stdlib.h>

#include "layer/activation.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

static double Phi(double x)
{
    return 0.5 * erfc(-x * sqrt(0.5));
}

static double value(enum tn_activation activation, double x)
{
    switch (activation) {
    case TN_RELU:
        return x > 0.0 ? x : 0.0;
    case TN_GELU:
        return x * Phi(x);
    case TN_IDENTITY:
        break;
    }
    return x;
}

static double slope(enum tn_activation activation, double x)
{
    switch (activation) {
    case TN_RELU:
        return x > 0.0 ? 1.0 : 0.0;
    case TN_GELU:
        return Phi(x) + x * exp(-0.5 * x * x) / sqrt(2.0 * acos(-1.0));
    case TN_IDENTITY:
        break;
    }
    return 1.0;
}

static void check_sizes(const struct tn_rows *r, enum tn_activation activation,
                        struct tn_random *random)
{
    const size_t n = r->rows * r->width;
    struct floats x = floats_open(n, 2.0, random), y = floats_open(n, 1.0, random);
    struct floats dy = floats_open(n, 1.0, random), dx = floats_open(n, 1.0, random);
    double *const want = take(n, sizeof *want);

    tn_activation_forward(r, activation, y.at, x.at);
    for (size_t i = 0; i < n; i++)
        want[i] = value(activation, (double)x.at[i]);
    check_floats("y", y.at, want, n, 4e-7);
    tn_activation_backward(r, activation, dx.at, dy.at,
                           tn_activation_keeps_input(activation) ? x.at : y.at);
    for (size_t i = 0; i < n; i++)
        want[i] = (double)dy.at[i] * slope(activation, (double)x.at[i]);
    check_floats("dx", dx.at, want, n, 1e-6);

    tn_activation_backward(r, activation, dy.at, dy.at,
                           tn_activation_keeps_input(activation) ? x.at : y.at);
    check_bits("dx over dy", dx.at, dy.at, n);
    tn_activation_forward(r, activation, x.at, x.at);
    check_bits("y over x", x.at, y.at, n);
    floats_close(&x);
    floats_close(&y);
    floats_close(&dy);
    floats_close(&dx);
    free(want);
}

static void every_instruction_set_equals_libm(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 411);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < AWKWARD_ROWS * AWKWARD_WIDTHS; i++) {
            const struct tn_rows r = {kernels, 1 + i % 3, awkward_rows[i / AWKWARD_WIDTHS],
                                      awkward_widths[i % AWKWARD_WIDTHS]};

            for (int a = 0; tn_activation_name((size_t)a); a++)
                check_sizes(&r, (enum tn_activation)a, &random);
        }
}

/* ---- gelu over a dense grid --------------------------------------------- */

enum { GRID = 1 << 19 };

/* The lower tail relatively, as far as x^2 / 2 is exact enough for its exponential. */
static void check_gelu(const struct tn_kernels *kernels, const float *x, const float *y,
                       const float *dx)
{
    double most = 0.0, tail = 0.0, most_slope = 0.0;

    for (size_t i = 0; i < GRID; i++) {
        const double at = (double)x[i], want = value(TN_GELU, at);

        most = fmax(most, fabs((double)y[i] - want) / fmax(1.0, fabs(at)));
        most_slope = fmax(most_slope, fabs((double)dx[i] - slope(TN_GELU, at)));
        if (at > -6.0 && at < 0.0)
            tail = fmax(tail, fabs((double)y[i] / want - 1.0));
    }
    if (!(most <= 2e-7 && tail <= 2e-6 && most_slope <= 5e-7))
        fail_msg("%s: gelu is off by %.3g, its tail by %.3g, its slope by %.3g", kernels->name,
                 most, tail, most_slope);
}

static void gelu_is_accurate_over_its_whole_range(void **state)
{
    const struct tn_kernels *kernels;
    float *const x = take(GRID, sizeof *x), *const y = take(GRID, sizeof *y);
    float *const dx = take(GRID, sizeof *dx), *const ones = take(GRID, sizeof *ones);

    (void)state;
    for (size_t i = 0; i < GRID; i++) {
        x[i] = (float)(-15.0 + 30.0 * ((double)i + 0.3) / GRID);
        ones[i] = 1.0f;
    }
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        kernels->gelu(y, x, GRID);
        kernels->gelu_backward(dx, ones, x, GRID);
        check_gelu(kernels, x, y, dx);
    }
    free(x);
    free(y);
    free(dx);
    free(ones);
}

static void extremes_are_as_expected(void **state)
{
    const float x[] = {0.0f, -0.0f, 1e-30f, -1e-30f, 1e30f, -1e30f, 3e38f, -3e38f, NAN};
    const struct tn_kernels *kernels;
    float y[9];

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        kernels->gelu(y, x, 9);
        assert_true(y[0] == 0.0f && y[1] == 0.0f);
        assert_true(fabsf(y[2] - 5e-31f) < 1e-36f && fabsf(y[3] + 5e-31f) < 1e-36f);
        assert_true(y[4] == 1e30f && y[5] == 0.0f && y[6] == 3e38f && y[7] == 0.0f);
        assert_true(isnan(y[8]));
        kernels->gelu_backward(y, (const float[]){1, 1, 1, 1, 1, 1, 1, 1, 1}, x, 9);
        assert_true(fabsf(y[0] - 0.5f) < 1e-6f && fabsf(y[3] - 0.5f) < 1e-6f);
        assert_true(y[4] == 1.0f && y[5] == 0.0f && isnan(y[8]));
        kernels->relu(y, x, 9);
        assert_true(y[4] == 1e30f && y[5] == 0.0f && isnan(y[8]));
        kernels->relu_backward(y, x, y, 9);
        assert_true(y[0] == 0.0f && y[4] == 1e30f && y[5] == 0.0f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_equals_libm),
        cmocka_unit_test(gelu_is_accurate_over_its_whole_range),
        cmocka_unit_test(extremes_are_as_expected),
    };

    return cmocka_run_group_tests_name("activations", tests, NULL, NULL);
}
