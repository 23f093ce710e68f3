/* SPDX-License-Identifier: MIT */
/* test_kernel_few.c - products of few rows by every table of kernels, on arrays that begin or
 * end where memory does, against plain loops in double. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernel/matmul.h"
#include "support/kernel_list.h"
#include "support/testing.h"

/* ---- memory between pages that no one may touch ------------------------- */

struct fenced {
    char *pages;
    size_t bytes;
    void *at;
};

static struct fenced fence(size_t size, bool at_end)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = tn_round_up(size, page);
    struct fenced f = {.bytes = inside + 2 * page};

    f.pages = mmap(NULL, f.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(f.pages != MAP_FAILED);
    assert_int_equal(mprotect(f.pages, page, PROT_NONE), 0);
    assert_int_equal(mprotect(f.pages + page + inside, page, PROT_NONE), 0);
    f.at = f.pages + page + (at_end ? inside - size : 0);
    return f;
}

static void unfence(struct fenced *f)
{
    assert_int_equal(munmap(f->pages, f->bytes), 0);
}

/* ---- one product -------------------------------------------------------- */

struct product {
    size_t m, n, k, ldb, ldc;
    bool bf16, bias, add, relu;
    struct fenced a, b, held, bias_at, c, packed; /* held: b in bf16 */
    float *old, *weights;                         /* b as it is multiplied with */
};

/* The last row of a matrix ends with its last element. */
static size_t extent(size_t rows, size_t cols, size_t ld)
{
    return (rows - 1) * ld + cols;
}

static void draw(float *x, size_t n, struct tn_random *random)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)tn_random_normal(random);
}

static void draw_weights(struct product *p, struct tn_random *random)
{
    const size_t count = extent(p->n, p->k, p->ldb);

    p->weights = take(count, sizeof(float));
    for (size_t i = 0; i < count; i++) {
        const float x = i % p->ldb < p->k ? (float)tn_random_normal(random) : NAN;

        p->weights[i] = p->bf16 ? tn_bf16_to_f32(tn_bf16_from_f32(x)) : x;
        ((float *)p->b.at)[i] = x;
    }
}

static void product_open(struct product *p, const struct tn_kernels *kernels, bool at_end,
                         struct tn_random *random)
{
    const size_t c_floats = extent(p->m, p->n, p->ldc);
    const size_t width = tn_round_up(p->k, 2 * kernels->lanes);

    p->a = fence(p->m * p->k * sizeof(float), at_end);
    p->b = fence(extent(p->n, p->k, p->ldb) * sizeof(float), at_end);
    p->held = fence(tn_few_held(kernels, p->n, p->k), at_end);
    p->bias_at = fence(p->n * sizeof(float), at_end);
    p->c = fence(c_floats * sizeof(float), at_end);
    p->packed = fence(p->m * width * sizeof(float), at_end);
    p->old = take(c_floats, sizeof(float));
    draw(p->a.at, p->m * p->k, random);
    draw(p->bias_at.at, p->n, random);
    draw(p->old, c_floats, random);
    draw_weights(p, random);
    kernels->few_hold(p->held.at, p->b.at, (ptrdiff_t)p->ldb, p->n, p->k);
}

static void product_close(struct product *p)
{
    unfence(&p->a);
    unfence(&p->b);
    unfence(&p->held);
    unfence(&p->bias_at);
    unfence(&p->c);
    unfence(&p->packed);
    free(p->old);
    free(p->weights);
}

/* Rows row .. row + m - 1 and columns col .. col + n - 1 of c; of weights in bf16, a col that is a
 * multiple of TN_FEW_COLS. */
static void run_part(const struct product *p, const struct tn_kernels *kernels, size_t row,
                     size_t m, size_t col, size_t n)
{
    const struct tn_few few = {
        .c = (float *)p->c.at + row * p->ldc + col,
        .a = p->packed.at,
        .b = p->bf16 ? (const char *)p->held.at + tn_few_held(kernels, col, p->k)
                     : (const char *)p->b.at + col * p->ldb * sizeof(float),
        .bias = p->bias ? (const float *)p->bias_at.at + col : NULL,
        .ldc = (ptrdiff_t)p->ldc,
        .ldb = (ptrdiff_t)p->ldb,
        .m = m,
        .n = n,
        .k = p->k,
        .add = p->add,
        .relu = p->relu,
    };

    kernels->few_pack(p->packed.at, (const float *)p->a.at + row * p->k, (ptrdiff_t)p->k, m,
                      p->k, p->bf16);
    (p->bf16 ? kernels->few_bf16 : kernels->few_f32)(&few);
}

static void restore(const struct product *p)
{
    memcpy(p->c.at, p->old, extent(p->m, p->n, p->ldc) * sizeof(float));
}

static void check_element(const struct product *p, const struct tn_kernels *kernels, size_t i,
                          size_t j)
{
    double want = 0.0, size = 1.0;

    if (p->bias)
        want += (double)((const float *)p->bias_at.at)[j];
    if (p->add)
        want += (double)p->old[i * p->ldc + j];
    for (size_t l = 0; l < p->k; l++) {
        const double term =
            (double)((const float *)p->a.at)[i * p->k + l] * (double)p->weights[j * p->ldb + l];

        want += term;
        size += fabs(term);
    }
    want = p->relu && want < 0.0 ? 0.0 : want;
    const double got = (double)((const float *)p->c.at)[i * p->ldc + j];

    if (!(fabs(got - want) <= 1e-6 * size))
        fail_msg("%s %s (%zu, %zu) of %zu x %zu x %zu: %.9g, not %.9g", kernels->name,
                 p->bf16 ? "bf16" : "f32", i, j, p->m, p->n, p->k, got, want);
}

static void check_all(const struct product *p, const struct tn_kernels *kernels)
{
    const float *const c = p->c.at;

    for (size_t i = 0; i < p->m; i++)
        for (size_t j = 0; j < p->n; j++)
            check_element(p, kernels, i, j);
    for (size_t i = 0; i + 1 < p->m; i++)
        for (size_t j = p->n; j < p->ldc; j++)
            assert_true(c[i * p->ldc + j] == p->old[i * p->ldc + j]);
}

/* The whole at once, then row by row, then in two parts of the columns. */
static void check_parts(const struct product *p, const struct tn_kernels *kernels, size_t cut)
{
    const size_t bytes = extent(p->m, p->n, p->ldc) * sizeof(float);
    float *const whole = take(bytes, 1);

    memcpy(whole, p->c.at, bytes);
    restore(p);
    for (size_t i = 0; i < p->m; i++)
        run_part(p, kernels, i, 1, 0, p->n);
    assert_memory_equal(whole, p->c.at, bytes);
    restore(p);
    if (cut > 0)
        run_part(p, kernels, 0, p->m, 0, cut);
    run_part(p, kernels, 0, p->m, cut, p->n - cut);
    assert_memory_equal(whole, p->c.at, bytes);
    free(whole);
}

static void check_product(struct product p, bool at_end, struct tn_random *random)
{
    const struct tn_kernels *kernels;

    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
        product_open(&p, kernels, at_end, random);
        restore(&p);
        run_part(&p, kernels, 0, p.m, 0, p.n);
        check_all(&p, kernels);
        const size_t cut = below(random, p.n);

        check_parts(&p, kernels, p.bf16 ? cut / TN_FEW_COLS * TN_FEW_COLS : cut);
        product_close(&p);
    }
}

static struct product random_product(size_t m, size_t n, size_t k, struct tn_random *random)
{
    return (struct product){
        .m = m,
        .n = n,
        .k = k,
        .ldb = k + (below(random, 2) ? below(random, 20) : 0),
        .ldc = n + (below(random, 2) ? below(random, 20) : 0),
        .bf16 = below(random, 2),
        .bias = below(random, 2),
        .add = below(random, 2),
        .relu = below(random, 2),
    };
}

/* ---- tests -------------------------------------------------------------- */

static void every_depth_gives_the_sums_and_reads_no_further(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2101);
    for (size_t k = 1; k <= 150; k++)
        for (int at_end = 0; at_end < 2; at_end++)
            check_product(
                random_product(1 + below(&random, 9), 1 + below(&random, 40), k, &random),
                at_end, &random);
}

static void every_number_of_rows_and_columns_gives_the_sums(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2102);
    for (size_t m = 1; m <= 17; m++)
        for (size_t n = 1; n <= 35; n += 1 + below(&random, 3))
            check_product(random_product(m, n, 1 + below(&random, 70), &random),
                          below(&random, 2), &random);
}

static void long_rows_give_the_sums(void **state)
{
    static const size_t depths[] = {256, 509, 1024, 1031, 4096};
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2103);
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++)
        for (size_t m = 1; m <= 8; m += 1 + m / 2)
            check_product(random_product(m, 50, depths[i], &random), true, &random);
}

/* What weights that are not finite belong to, and nothing else, is not finite. */
static void infinite_weights_stay_in_their_column(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2104);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (int bf16 = 0; bf16 < 2; bf16++)
            for (size_t at = 0; at < 37; at++) {
                struct product p = {
                    .m = 3, .n = 20, .k = 37, .ldb = 37, .ldc = 20, .bf16 = bf16};

                product_open(&p, kernels, true, &random);
                ((float *)p.b.at)[11 * p.ldb + at] = INFINITY;
                kernels->few_hold(p.held.at, p.b.at, (ptrdiff_t)p.ldb, p.n, p.k);
                run_part(&p, kernels, 0, p.m, 0, p.n);
                for (size_t e = 0; e < p.m * p.n; e++)
                    assert_int_equal(isinf(((float *)p.c.at)[e]) != 0, e % p.n == 11);
                product_close(&p);
            }
}

static void held_weights_come_back_rounded(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2105);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t k = 1; k < 70; k++) {
            struct product p = {
                .m = 1, .n = 1 + below(&random, 40), .k = k, .ldb = k + k % 3, .ldc = 40};

            p.bf16 = true;
            product_open(&p, kernels, k % 2, &random);
            struct fenced back = fence(p.n * k * sizeof(float), k % 2);

            kernels->few_widen(back.at, (ptrdiff_t)k, p.held.at, p.n, k);
            for (size_t j = 0; j < p.n; j++)
                assert_memory_equal((float *)back.at + j * k, p.weights + j * p.ldb,
                                    k * sizeof(float));
            unfence(&back);
            product_close(&p);
        }
}

static void widening_is_exact(void **state)
{
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t width = 1; width < 70; width++) {
            struct fenced x = fence(3 * width * sizeof(uint16_t), width % 2);
            struct fenced y = fence(3 * width * sizeof(float), width % 2);

            for (size_t e = 0; e < 3 * width; e++)
                ((uint16_t *)x.at)[e] = (uint16_t)(e * 613 + width);
            kernels->widen(y.at, (ptrdiff_t)width, x.at, (ptrdiff_t)width, 3, width);
            for (size_t e = 0; e < 3 * width; e++) {
                const float want = tn_bf16_to_f32(((uint16_t *)x.at)[e]);

                assert_memory_equal((float *)y.at + e, &want, sizeof want);
            }
            unfence(&x);
            unfence(&y);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_depth_gives_the_sums_and_reads_no_further),
        cmocka_unit_test(every_number_of_rows_and_columns_gives_the_sums),
        cmocka_unit_test(long_rows_give_the_sums),
        cmocka_unit_test(infinite_weights_stay_in_their_column),
        cmocka_unit_test(held_weights_come_back_rounded),
        cmocka_unit_test(widening_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
