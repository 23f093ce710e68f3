/* SPDX-License-Identifier: MIT */
/* test_kernel_rows.c - the loops over rows of any width: every width up to a few vectors, at
 * every alignment, against plain loops in double. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/kernel_list.h"
#include "support/testing.h"

/* ---- rows --------------------------------------------------------------- */

/* n floats with NaN around. With no `behind`, the row ends where its memory ends: a sanitizer
 * then sees a read past it. */
struct row {
    float *memory, *at;
    size_t n, before, behind;
};

static struct row row_open(size_t n, size_t behind, struct tn_random *random)
{
    struct row row = {.n = n, .before = 1 + below(random, 16), .behind = behind};

    row.memory = take(row.before + n + behind, sizeof(float));
    row.at = row.memory + row.before;
    for (size_t i = 0; i < row.before + n + behind; i++)
        row.memory[i] = NAN;
    for (size_t i = 0; i < n; i++)
        row.at[i] = (float)tn_random_normal(random);
    return row;
}

static void row_close(struct row *row)
{
    for (size_t i = 0; i < row->before; i++)
        assert_true(isnan(row->memory[i]));
    for (size_t i = 0; i < row->behind; i++)
        assert_true(isnan(row->at[row->n + i]));
    free(row->memory);
}

static double at(const struct row *row, size_t i)
{
    return (double)row->at[i];
}

static void check_near(const char *what, const struct tn_kernels *kernels, size_t n, double got,
                       double want, double size)
{
    if (!(fabs(got - want) <= 1e-6 * size))
        fail_msg("%s %s of %zu: %.9g, not %.9g", kernels->name, what, n, got, want);
}

/* Rows to compute with, and those that stand for a second argument or a result. */
struct rows {
    const struct tn_kernels *kernels;
    struct row x, y, z;
    double *y_before, *z_before;
    size_t n;
};

typedef void check_rows(struct rows *r);

static double *copy_of(const struct row *row)
{
    double *const copy = take(row->n, sizeof *copy);

    for (size_t i = 0; i < row->n; i++)
        copy[i] = at(row, i);
    return copy;
}

static void check_one(const struct tn_kernels *kernels, size_t n, size_t behind,
                      check_rows *check, struct tn_random *random)
{
    struct rows r = {.kernels = kernels, .n = n};

    r.x = row_open(n, behind, random);
    r.y = row_open(n, behind, random);
    r.z = row_open(n, behind, random);
    r.y_before = copy_of(&r.y);
    r.z_before = copy_of(&r.z);
    check(&r);
    row_close(&r.x);
    row_close(&r.y);
    row_close(&r.z);
    free(r.y_before);
    free(r.z_before);
}

static void for_rows(uint64_t seed, check_rows *check)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t n = 0; n <= 130; n++)
            for (size_t behind = 0; behind <= 16; behind += 8)
                check_one(kernels, n, behind, check, &random);
}

/* ---- sums --------------------------------------------------------------- */

static void check_dot(struct rows *r)
{
    double want = 0.0, size = 1e-30;

    for (size_t i = 0; i < r->n; i++) {
        want += at(&r->x, i) * at(&r->y, i);
        size += fabs(at(&r->x, i) * at(&r->y, i));
    }
    check_near("dot", r->kernels, r->n, (double)r->kernels->dot(r->x.at, r->y.at, r->n), want,
               size);
}

static void check_scale_dot(struct rows *r)
{
    double want = 0.0, size = 1e-30;

    for (size_t i = 0; i < r->n; i++) {
        want += at(&r->x, i) * at(&r->z, i);
        size += fabs(at(&r->x, i) * at(&r->z, i));
    }
    float by = 0.7f, got = 0.0f;

    r->kernels->scale_dot_rows(r->y.at, 0, r->x.at, 0, (struct tn_column){&by, 0},
                               (struct tn_column){&got, 0}, r->z.at, 0, 1, r->n);
    check_near("scale_dot", r->kernels, r->n, (double)got, want, size);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == 0.7f * r->x.at[i]);
}

/* Without a factor rows are copied, bit for bit. */
static void check_scale_rows(struct rows *r)
{
    float by = -0.3f;

    r->kernels->scale_rows(r->y.at, 0, r->x.at, 0, (struct tn_column){&by, 0}, 1, r->n, true);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == -0.3f * r->x.at[i]);
    r->kernels->scale_rows(r->y.at, 0, r->x.at, 0, (struct tn_column){0}, 1, r->n, false);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == r->x.at[i]);
}

/* r->n floats cut into rows of a width: each row with the same bits whatever others are beside
 * it. */
static void check_dot_rows(struct rows *r)
{
    for (size_t rows = 1; rows <= r->n && rows <= 9; rows++) {
        const size_t width = r->n / rows;
        float s[9], alone;

        r->kernels->dot_rows(s, r->y.at, r->x.at, rows, width);
        for (size_t j = 0; j < rows; j++) {
            double want = 0.0, size = 1e-30;

            for (size_t i = 0; i < width; i++) {
                want += at(&r->y, i) * at(&r->x, j * width + i);
                size += fabs(at(&r->y, i) * at(&r->x, j * width + i));
            }
            check_near("dot_rows", r->kernels, width, (double)s[j], want, size);
            r->kernels->dot_rows(&alone, r->y.at, r->x.at + j * width, 1, width);
            if (s[j] != alone)
                fail_msg("dot_rows (%s): row %zu of %zu, width %zu: %.9g, alone %.9g",
                         r->kernels->name, j, rows, width, (double)s[j], (double)alone);
        }
    }
}

static void check_mixed(struct rows *r, size_t rows, size_t width, bool add)
{
    for (size_t i = 0; i < width; i++) {
        double want = add ? r->y_before[i] : 0.0, size = fabs(want) + 1e-30;

        for (size_t j = 0; j < rows; j++) {
            want += at(&r->z, j) * at(&r->x, j * width + i);
            size += fabs(at(&r->z, j) * at(&r->x, j * width + i));
        }
        check_near("mix_rows", r->kernels, width, at(&r->y, i), want, size);
    }
}

static void check_mix_rows(struct rows *r)
{
    for (size_t rows = 1; rows <= r->n && rows <= 9; rows++) {
        const size_t width = r->n / rows;

        for (size_t i = 0; i < r->n; i++)
            r->y.at[i] = (float)r->y_before[i];
        r->kernels->mix_rows(r->y.at, r->z.at, r->x.at, rows, width, true);
        check_mixed(r, rows, width, true);
        r->kernels->mix_rows(r->y.at, r->z.at, r->x.at, rows, width, false);
        check_mixed(r, rows, width, false);
        assert_true(width == r->n || at(&r->y, width) == r->y_before[width]);
    }
}

static void check_max(struct rows *r)
{
    float want = -INFINITY;

    for (size_t i = 0; i < r->n; i++)
        want = fmaxf(want, r->x.at[i]);
    assert_true(r->kernels->max(r->x.at, r->n) == want);
    for (size_t i = 0; i < r->n; i++) {
        const float was = r->x.at[i];

        r->x.at[i] = 100.0f; /* wherever it is */
        assert_true(r->kernels->max(r->x.at, r->n) == 100.0f);
        r->x.at[i] = -INFINITY;
        assert_true(r->kernels->max(r->x.at, r->n) <= want);
        r->x.at[i] = was;
    }
}

static void sums_go_over_every_element_and_no_other(void **state)
{
    (void)state;
    for_rows(1101, check_dot);
    for_rows(1102, check_scale_dot);
    for_rows(1112, check_scale_rows);
    for_rows(1113, check_dot_rows);
    for_rows(1114, check_mix_rows);
    for_rows(1103, check_max);
}

/* ---- element by element ------------------------------------------------- */

static void check_scale(struct rows *r)
{
    r->kernels->scale(r->y.at, r->x.at, -1.3f, r->n);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == -1.3f * r->x.at[i]);
    r->kernels->scale(r->x.at, r->x.at, -1.3f, r->n); /* in place */
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == r->x.at[i]);
}

static void check_axpy(struct rows *r)
{
    r->kernels->axpy(r->y.at, 0.6f, r->x.at, r->n);
    for (size_t i = 0; i < r->n; i++)
        check_near("axpy", r->kernels, r->n, at(&r->y, i),
                   r->y_before[i] + (double)0.6f * at(&r->x, i), 3.0);
}

static void check_exp_sum(struct rows *r)
{
    double sum = 0.0;
    const double got = (double)r->kernels->exp_sum(r->y.at, r->x.at, 0.5f, r->n);

    for (size_t i = 0; i < r->n; i++) {
        const double want = exp(at(&r->x, i) - 0.5);

        sum += want;
        check_near("exp_sum", r->kernels, r->n, at(&r->y, i), want, want);
    }
    check_near("exp_sum", r->kernels, r->n, got, sum, sum + 1e-30);
}

/* As one row, and as rows of one float. */
static void check_elu1(struct rows *r)
{
    r->kernels->elu1(r->y.at, 0, r->x.at, 0, 1, r->n);
    r->kernels->elu1(r->z.at, 1, r->x.at, 1, r->n, 1);
    for (size_t i = 0; i < r->n; i++) {
        const double x = at(&r->x, i), want = x > 0.0 ? x + 1.0 : exp(x);

        check_near("elu1", r->kernels, r->n, at(&r->y, i), want, want);
        assert_true(r->y.at[i] == r->z.at[i]);
    }
}

/* dx = dy min(y, 1), where it is computed over y itself as well. */
static void check_elu1_slope(struct rows *r)
{
    float *const phi = r->x.at;

    for (size_t i = 0; i < r->n; i++)
        phi[i] = fabsf(phi[i]);
    r->kernels->elu1_backward(r->y.at, 0, r->z.at, 0, phi, 0, 1, r->n, false);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == r->z.at[i] * fminf(phi[i], 1.0f));
    r->kernels->elu1_backward(phi, 1, r->z.at, 1, phi, 1, r->n, 1, false);
    for (size_t i = 0; i < r->n; i++)
        assert_true(r->y.at[i] == phi[i]);
}

static void check_softmax_slope(struct rows *r)
{
    const float lse = 0.4f, delta = -0.3f;
    double *const s = copy_of(&r->x);

    r->kernels->softmax_backward(r->x.at, r->y.at, lse, delta, r->n);
    for (size_t i = 0; i < r->n; i++) {
        const double p = exp(s[i] - (double)lse);

        check_near("softmax_backward", r->kernels, r->n, at(&r->x, i), p, p);
        check_near("softmax_backward", r->kernels, r->n, at(&r->y, i),
                   p * (r->y_before[i] - (double)delta), p * (fabs(r->y_before[i]) + 1.0));
    }
    free(s);
}

static void rows_change_in_every_element_and_no_other(void **state)
{
    (void)state;
    for_rows(1104, check_scale);
    for_rows(1105, check_axpy);
    for_rows(1106, check_exp_sum);
    for_rows(1107, check_elu1);
    for_rows(1108, check_elu1_slope);
    for_rows(1109, check_softmax_slope);
}

static void elu1_walks_rows_of_any_stride(void **state)
{
    enum { ROWS = 5, WIDTH = 147, LD = 151 };
    const struct tn_kernels *kernels;
    float x[ROWS * LD], y[ROWS * LD], dx[ROWS * LD];

    (void)state;
    for (size_t i = 0; i < ROWS * LD; i++)
        x[i] = 0.01f * (float)i - 4.0f;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        memset(y, 0, sizeof y);
        memset(dx, 0, sizeof dx);
        kernels->elu1(y + (ROWS - 1) * LD, -LD, x, LD, ROWS, WIDTH);
        kernels->elu1_backward(dx, LD, x, LD, y + (ROWS - 1) * LD, -LD, ROWS, WIDTH, true);
        for (size_t i = 0; i < ROWS * LD; i++) {
            const size_t turned = (ROWS - 1 - i / LD) * LD + i % LD;
            const double in = (double)x[i], want = in > 0.0 ? in + 1.0 : exp(in);
            const bool inside = i % LD < WIDTH;

            check_near("elu1", kernels, WIDTH, (double)y[turned], inside ? want : 0.0,
                       inside ? want : 0.0);
            check_near("elu1_backward", kernels, WIDTH, (double)dx[i],
                       inside ? in * fmin(want, 1.0) : 0.0, inside ? fabs(in) : 0.0);
        }
    }
}

/* ---- exp ---------------------------------------------------------------- */

static float exp_of(const struct tn_kernels *kernels, float x)
{
    float y;

    kernels->exp_sum(&y, &x, 0.0f, 1);
    return y;
}

static void exp_is_accurate_over_its_whole_range(void **state)
{
    enum { COUNT = 1 << 18 };
    const struct tn_kernels *kernels;
    float *const x = take(COUNT, sizeof *x), *const y = take(COUNT, sizeof *y);

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(-87.3 + (88.3 + 87.3) * (double)i / COUNT);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        kernels->exp_sum(y, x, 0.0f, COUNT);
        for (size_t i = 0; i < COUNT; i++) {
            const double want = exp((double)x[i]);

            if (!(fabs((double)y[i] - want) <= 3e-7 * want))
                fail_msg("%s: exp(%.9g) is %.9g, not %.9g", kernels->name, (double)x[i],
                         (double)y[i], want);
        }
    }
    free(x);
    free(y);
}

/* elu1 has loops of its own. */
static void elu1_is_accurate_over_its_whole_range(void **state)
{
    enum { COUNT = 1 << 17 };
    const struct tn_kernels *kernels;
    float *const x = take(COUNT, sizeof *x), *const y = take(COUNT, sizeof *y);

    (void)state;
    for (size_t i = 0; i < COUNT; i++)
        x[i] = (float)(-87.3 * (double)i / COUNT);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        kernels->elu1(y, 0, x, 0, 1, COUNT);
        for (size_t i = 0; i < COUNT; i++)
            check_near("elu1", kernels, COUNT, (double)y[i], exp((double)x[i]),
                       0.3 * exp((double)x[i]));
    }
    free(x);
    free(y);
}

static void exp_is_sane_beyond_its_range(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        assert_true(exp_of(kernels, 0.0f) == 1.0f);
        assert_true(exp_of(kernels, -87.5f) == 0.0f);
        assert_true(exp_of(kernels, -1e30f) == 0.0f);
        assert_true(exp_of(kernels, -INFINITY) == 0.0f);
        assert_true(exp_of(kernels, 89.0f) > 1e38f && isfinite(exp_of(kernels, 89.0f)));
        assert_true(exp_of(kernels, 1e30f) > 1e38f && isfinite(exp_of(kernels, 1e30f)));
        assert_true(isfinite(exp_of(kernels, INFINITY)));
        assert_true(isnan(exp_of(kernels, NAN)));
    }
}

/* A row that saw nothing has an infinite sum: all its weights are 0, of masked scores too. */
static void softmax_slope_of_an_infinite_sum_is_zero(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        float s[3] = {1.0f, -INFINITY, 300.0f}, dp[3] = {2.0f, 3.0f, 4.0f};

        kernels->softmax_backward(s, dp, INFINITY, 1.0f, 3);
        for (size_t i = 0; i < 3; i++)
            assert_true(s[i] == 0.0f && dp[i] == 0.0f);
    }
}

static void elu1_is_positive_far_below_zero_and_keeps_nan(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const float x[4] = {-1e30f, -INFINITY, NAN, 1e30f};
        float y[4];

        kernels->elu1(y, 0, x, 0, 1, 4);
        assert_true(y[0] > 0.0f && y[0] < 2e-38f);
        assert_true(y[1] > 0.0f && y[1] < 2e-38f);
        assert_true(isnan(y[2]));
        assert_true(y[3] == 1e30f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_go_over_every_element_and_no_other),
        cmocka_unit_test(rows_change_in_every_element_and_no_other),
        cmocka_unit_test(elu1_walks_rows_of_any_stride),
        cmocka_unit_test(exp_is_accurate_over_its_whole_range),
        cmocka_unit_test(elu1_is_accurate_over_its_whole_range),
        cmocka_unit_test(exp_is_sane_beyond_its_range),
        cmocka_unit_test(softmax_slope_of_an_infinite_sum_is_zero),
        cmocka_unit_test(elu1_is_positive_far_below_zero_and_keeps_nan),
    };

    return cmocka_run_group_tests_name("kernel rows", tests, NULL, NULL);
}
