/* SPDX-License-Identifier: MIT */
/* test_kernels.c - the loops over tiles against plain ones in double, at random sizes and
 * strides, with guards between the rows. */
#include <math.h>
#include <stdlib.h>

#include "support/kernel_list.h"
#include "support/testing.h"

/* ---- matrices ----------------------------------------------------------- */

/* Rows `ld` apart, which may be negative; everything between and around them is NaN. */
struct matrix {
    float *memory, *at;
    size_t rows, cols, floats;
    ptrdiff_t ld;
};

enum { AROUND = 19 };

static struct matrix matrix_open(size_t rows, size_t cols, struct tn_random *random)
{
    const size_t ld = cols + ONE_OF(random, 0, 0, 3, 17);
    struct matrix m = {.rows = rows, .cols = cols, .floats = rows * ld + 2 * AROUND};
    const bool backwards = below(random, 3) == 0;

    m.memory = take(m.floats, sizeof(float));
    for (size_t i = 0; i < m.floats; i++)
        m.memory[i] = NAN;
    m.at = m.memory + AROUND + (backwards && rows > 0 ? (rows - 1) * ld : 0);
    m.ld = backwards ? -(ptrdiff_t)ld : (ptrdiff_t)ld;
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            m.at[(ptrdiff_t)i * m.ld + (ptrdiff_t)j] = (float)tn_random_normal(random);
    return m;
}

static float *entry(const struct matrix *m, size_t i, size_t j)
{
    return m->at + (ptrdiff_t)i * m->ld + (ptrdiff_t)j;
}

static double value(const struct matrix *m, size_t i, size_t j)
{
    return (double)*entry(m, i, j);
}

/* Rows one behind the other, in double. */
static double *matrix_copy(const struct matrix *m)
{
    double *const copy = take(m->rows * m->cols, sizeof *copy);

    for (size_t i = 0; i < m->rows; i++)
        for (size_t j = 0; j < m->cols; j++)
            copy[i * m->cols + j] = value(m, i, j);
    return copy;
}

static void matrix_close(struct matrix *m)
{
    size_t numbers = 0;

    for (size_t i = 0; i < m->floats; i++)
        numbers += isnan(m->memory[i]) ? 0 : 1;
    assert_int_equal(numbers, m->rows * m->cols); /* nothing else was written */
    free(m->memory);
}

/* `size` bounds the terms that were summed. */
static void check_entry(const struct tn_kernels *kernels, const char *what,
                        const struct matrix *m, size_t i, size_t j, double want, double size)
{
    if (!(fabs(value(m, i, j) - want) <= 1e-6 * (size + 1.0)))
        fail_msg("%s %s: entry %zu, %zu of %zu x %zu is %g, not %g", kernels->name, what, i, j,
                 m->rows, m->cols, value(m, i, j), want);
}

typedef void check_kernels(const struct tn_kernels *kernels, struct tn_random *random);

static void for_kernels(size_t trials, uint64_t seed, check_kernels *check)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t trial = 0; trial < trials; trial++)
            check(kernels, &random);
}

/* The least, or up to `most` vectors: what tn_padded() gives. */
static size_t tile_width(const struct tn_kernels *kernels, size_t most,
                         struct tn_random *random)
{
    return tn_padded(kernels, below(random, most * kernels->lanes + 1));
}

/* ---- product ------------------------------------------------------------ */

static void check_product(const struct tn_kernels *kernels, struct tn_random *random)
{
    const size_t m = below(random, 22), k = ONE_OF(random, 0, 1, 2, 7, 16, 33, 70);
    const size_t n = below(random, 8) == 0 ? 0 : tile_width(kernels, 5, random);
    const bool turned = below(random, 2), add = below(random, 2);
    struct matrix a = turned ? matrix_open(k, m, random) : matrix_open(m, k, random);
    struct matrix b = matrix_open(k, n, random), c = matrix_open(m, n, random);
    double *const old = matrix_copy(&c);

    kernels->product(c.at, c.ld, a.at, turned ? 1 : a.ld, turned ? a.ld : 1, b.at, b.ld, m, n,
                     k, add);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = add ? old[i * n + j] : 0.0, size = fabs(sum);

            for (size_t p = 0; p < k; p++) {
                const double term =
                    (turned ? value(&a, p, i) : value(&a, i, p)) * value(&b, p, j);

                sum += term;
                size += fabs(term);
            }
            check_entry(kernels, "product", &c, i, j, sum, size);
        }
    free(old);
    matrix_close(&a);
    matrix_close(&b);
    matrix_close(&c);
}

static void product_equals_three_loops(void **state)
{
    (void)state;
    for_kernels(300, 1001, check_product);
}

/* Strides of zero: a column of ones that is one float. */
static void check_column_sum(const struct tn_kernels *kernels, struct tn_random *random)
{
    const size_t n = tile_width(kernels, 3, random), k = below(random, 60);
    struct matrix b = matrix_open(k, n, random), z = matrix_open(1, n, random);
    double *const sum = matrix_copy(&z);
    const float one = 1.0f;

    kernels->product(z.at, 0, &one, 0, 0, b.at, b.ld, 1, n, k, true);
    for (size_t j = 0; j < n; j++) {
        for (size_t p = 0; p < k; p++)
            sum[j] += value(&b, p, j);
        check_entry(kernels, "product", &z, 0, j, sum[j], (double)k);
    }
    free(sum);
    matrix_close(&b);
    matrix_close(&z);
}

static void product_with_ones_sums_columns(void **state)
{
    (void)state;
    for_kernels(30, 1002, check_column_sum);
}

/* ---- recur -------------------------------------------------------------- */

/* The recurrence at sizes n x rows x width against its two lines. */
static void check_recur_sizes(const struct tn_kernels *kernels, size_t n, size_t rows,
                              size_t width, struct tn_random *random)
{
    struct matrix q = matrix_open(n, rows, random), k = matrix_open(n, rows, random);
    struct matrix v = matrix_open(n, width, random), o = matrix_open(n, width, random);
    struct matrix s = matrix_open(rows, width, random);
    double *const S = matrix_copy(&s);

    kernels->recur(&(struct tn_recurrence){.o = o.at,
                                           .S = s.at,
                                           .q = q.at,
                                           .k = k.at,
                                           .v = v.at,
                                           .ldo = o.ld,
                                           .ldS = s.ld,
                                           .ldq = q.ld,
                                           .ldk = k.ld,
                                           .ldv = v.ld,
                                           .n = n,
                                           .rows = rows,
                                           .width = width});
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < width; j++) {
            double sum = 0.0, size = 0.0;

            for (size_t c = 0; c < rows; c++) {
                S[c * width + j] += value(&k, i, c) * value(&v, i, j);
                sum += value(&q, i, c) * S[c * width + j];
                size += fabs(value(&q, i, c)) * (fabs(S[c * width + j]) + (double)i);
            }
            check_entry(kernels, "recur", &o, i, j, sum, size);
        }
    for (size_t c = 0; c < rows; c++)
        for (size_t j = 0; j < width; j++)
            check_entry(kernels, "recur", &s, c, j, S[c * width + j], (double)n);
    struct matrix *const all[] = {&q, &k, &v, &o, &s};

    for (size_t i = 0; i < 5; i++)
        matrix_close(all[i]);
    free(S);
}

static void recur_equals_its_definition(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1003);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t n = 0; n <= 50; n++)
            for (size_t trial = 0; trial < 4; trial++)
                check_recur_sizes(kernels, n, 1 + below(&random, 40),
                                  tile_width(kernels, 5, &random), &random);
}

static void check_recur_sum(const struct tn_kernels *kernels, struct tn_random *random)
{
    const size_t n = below(random, 51), width = tile_width(kernels, 20, random);
    struct matrix q = matrix_open(n, width, random), k = matrix_open(n, width, random);
    struct matrix den = matrix_open(1, n, random), z = matrix_open(1, width, random);
    double *const total = matrix_copy(&z);

    kernels->recur_sum(den.at, z.at, q.at, q.ld, k.at, k.ld, n, width);
    for (size_t i = 0; i < n; i++) {
        double sum = 0.0, size = 0.0;

        for (size_t c = 0; c < width; c++) {
            total[c] += value(&k, i, c);
            sum += value(&q, i, c) * total[c];
            size += fabs(value(&q, i, c)) * (fabs(total[c]) + (double)i);
        }
        check_entry(kernels, "recur_sum", &den, 0, i, sum, size);
    }
    for (size_t c = 0; c < width; c++)
        check_entry(kernels, "recur_sum", &z, 0, c, total[c], (double)n);
    free(total);
    matrix_close(&q);
    matrix_close(&k);
    matrix_close(&den);
    matrix_close(&z);
}

static void recur_sum_equals_its_definition(void **state)
{
    (void)state;
    for_kernels(150, 1004, check_recur_sum);
}

/* ---- transpose ---------------------------------------------------------- */

static void check_transpose(const struct tn_kernels *kernels, struct tn_random *random)
{
    const size_t rows = below(random, 50), cols = below(random, 50);
    struct matrix in = matrix_open(rows, cols, random), out = matrix_open(cols, rows, random);

    kernels->transpose(out.at, out.ld, in.at, in.ld, rows, cols);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            assert_true(*entry(&out, j, i) == *entry(&in, i, j));
    matrix_close(&in);
    matrix_close(&out);
}

static void transpose_turns_rows_into_columns(void **state)
{
    (void)state;
    for_kernels(300, 1005, check_transpose);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_equals_three_loops),
        cmocka_unit_test(product_with_ones_sums_columns),
        cmocka_unit_test(recur_equals_its_definition),
        cmocka_unit_test(recur_sum_equals_its_definition),
        cmocka_unit_test(transpose_turns_rows_into_columns),
    };

    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
