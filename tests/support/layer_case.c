/* SPDX-License-Identifier: MIT */
#include "support/layer_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const size_t awkward_rows[AWKWARD_ROWS] = {1, 2, 5, 67, 257, 1031};
const size_t awkward_widths[AWKWARD_WIDTHS] = {1, 2, 3, 7, 16, 31, 61, 128, 149};
const size_t awkward_threads[AWKWARD_THREADS] = {2, 3, 7};

struct floats floats_open(size_t n, double scale, struct tn_random *random)
{
    struct floats floats = {.n = n};

    if (below(random, 2)) {
        floats.at = floats.memory = take(n, sizeof(float));
    } else {
        floats.block = block_open(n * sizeof(float), 4 * below(random, 16), 0);
        floats.at = (float *)(void *)floats.block.bytes;
    }
    for (size_t i = 0; i < n; i++)
        floats.at[i] = (float)(scale * tn_random_normal(random));
    return floats;
}

void floats_close(struct floats *floats)
{
    if (floats->block.memory) {
        block_check(&floats->block, "floats");
        block_close(&floats->block);
    }
    free(floats->memory);
}

void check_floats(const char *what, const float *got, const double *want, size_t n,
                  double tolerance)
{
    for (size_t i = 0; i < n; i++)
        if (!(fabs((double)got[i] - want[i]) <= tolerance * fmax(1.0, fabs(want[i]))))
            fail_msg("%s: element %zu of %zu is %.9g, not %.9g", what, i, n, (double)got[i],
                     want[i]);
}

void check_bits(const char *what, const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0)
            fail_msg("%s: element %zu of %zu is %.9g and %.9g", what, i, n, (double)a[i],
                     (double)b[i]);
}

double *doubles_of(const float *x, size_t n)
{
    double *const copy = take(n, sizeof *copy);

    for (size_t i = 0; i < n; i++)
        copy[i] = (double)x[i];
    return copy;
}

double dot_product(const float *x, const float *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

/* The loss at x + t u. */
static double loss_along(loss_of *loss, void *arg, float *x, const double *was, const double *u,
                         size_t n, double t)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(was[i] + t * u[i]);
    return loss(arg);
}

/* Four points let float forwards resolve the slope; the scale is |dx|, so that cancellation
 * along u neither hides an error nor invents one. */
void check_slope(const char *what, loss_of *loss, void *arg, float *x, const float *dx,
                 size_t n, double tolerance, struct tn_random *random)
{
    const double e = 1e-2;
    double *const was = doubles_of(x, n), *const u = take(n, sizeof *u);
    double want = 0.0, norm2 = 0.0;

    for (size_t i = 0; i < n; i++) {
        u[i] = tn_random_bits(random) >> 63 ? 1.0 : -1.0;
        want += u[i] * (double)dx[i];
        norm2 += (double)dx[i] * (double)dx[i];
    }
    const double near = loss_along(loss, arg, x, was, u, n, e / 2) -
                        loss_along(loss, arg, x, was, u, n, -e / 2);
    const double far =
        loss_along(loss, arg, x, was, u, n, e) - loss_along(loss, arg, x, was, u, n, -e);
    const double got = (8.0 * near - far) / (6.0 * e);

    loss_along(loss, arg, x, was, u, n, 0.0);
    if (!(fabs(got - want) <= tolerance * sqrt(norm2)))
        fail_msg("%s: slope %.9g, gradient %.9g of norm %.9g", what, got, want, sqrt(norm2));
    free(was);
    free(u);
}
