/* SPDX-License-Identifier: MIT */
/* test_kernel_few.c - products of few rows with packed weights by every table of kernels, on
 * arrays that begin or end where memory does, against plain loops in double. */
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
    size_t m, n, k, lda, ldc, piece, width;
    bool bf16, bias, add, relu;
    struct fenced a, b, bias_at, c; /* b: panels */
    float *old, *weights;           /* b as it is multiplied with, k x n */
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

/* Piece after piece; to bf16 in two parts. */
static void pack_piece(const struct product *p, const struct tn_kernels *kernels, size_t first,
                       size_t depth)
{
    const size_t cut = depth / 2, ends[2] = {cut, depth};
    const float *const weights = p->weights + first * p->n;
    float *const panels = take(p->width * depth, sizeof *panels);

    if (!p->bf16)
        kernels->pack((float *)p->b.at + first * p->width, true, weights, (ptrdiff_t)p->n, true,
                      p->n, depth);
    for (size_t i = 0, from = 0; p->bf16 && i < 2; from = ends[i++]) {
        if (from == ends[i])
            continue;
        kernels->pack(panels, true, weights + from * p->n, (ptrdiff_t)p->n, true, p->n,
                      ends[i] - from);
        kernels->narrow_panels((uint16_t *)p->b.at + first * p->width, panels, p->n, depth,
                               from, ends[i] - from);
    }
    free(panels);
}

static void pack_weights(struct product *p, const struct tn_kernels *kernels)
{
    for (size_t l = 0; l < p->k; l += p->piece)
        pack_piece(p, kernels, l, tn_min(p->piece, p->k - l));
    for (size_t i = 0; p->bf16 && i < p->n * p->k; i++)
        p->weights[i] = tn_bf16_to_f32(tn_bf16_from_f32(p->weights[i]));
}

static void product_open(struct product *p, const struct tn_kernels *kernels, bool at_end,
                         struct tn_random *random)
{
    const size_t c_floats = extent(p->m, p->n, p->ldc);

    p->width = tn_round_up(p->n, tn_panel_size(kernels, true));
    p->a = fence(extent(p->m, p->k, p->lda) * sizeof(float), at_end);
    p->b = fence(p->width * p->k * (p->bf16 ? sizeof(uint16_t) : sizeof(float)), at_end);
    p->bias_at = fence(p->n * sizeof(float), at_end);
    p->c = fence(c_floats * sizeof(float), at_end);
    p->old = take(c_floats, sizeof(float));
    p->weights = take(p->n * p->k, sizeof(float));
    draw(p->a.at, extent(p->m, p->k, p->lda), random);
    draw(p->bias_at.at, p->n, random);
    draw(p->old, c_floats, random);
    draw(p->weights, p->n * p->k, random);
    pack_weights(p, kernels);
}

static void product_close(struct product *p)
{
    unfence(&p->a);
    unfence(&p->b);
    unfence(&p->bias_at);
    unfence(&p->c);
    free(p->old);
    free(p->weights);
}

/* Rows row .. row + m - 1 and columns from .. to - 1 of c, with rows of a in place or packed.
 */
static void run_part(const struct product *p, const struct tn_kernels *kernels, size_t row,
                     size_t m, size_t from, size_t to, bool in_place)
{
    const size_t element = p->bf16 ? sizeof(uint16_t) : sizeof(float);
    const float *const a = (const float *)p->a.at + row * p->lda;
    float *const panels = take(
        tn_panels(kernels, false, m) * tn_panel_width(kernels, false) * p->k, sizeof *panels);

    for (size_t l = 0, depth; l < p->k; l += depth) {
        depth = tn_min(p->piece, p->k - l);
        const bool last = l + depth == p->k;

        if (!in_place)
            kernels->pack(panels, false, a + l, (ptrdiff_t)p->lda, false, m, depth);
        kernels->product_packed(&(struct tn_panels){
            .c = (float *)p->c.at + row * p->ldc + from,
            .a = in_place ? a + l : panels,
            .b = (const char *)p->b.at + (l * p->width + from * depth) * element,
            .bias = last && p->bias ? (const float *)p->bias_at.at + from : NULL,
            .ldc = (ptrdiff_t)p->ldc,
            .lda = in_place ? (ptrdiff_t)p->lda : 0,
            .m = m,
            .n = to - from,
            .k = depth,
            .bf16 = p->bf16,
            .add = p->add || l > 0,
            .relu = last && p->relu,
        });
    }
    free(panels);
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
            (double)((const float *)p->a.at)[i * p->lda + l] * (double)p->weights[l * p->n + j];

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

/* Row by row, in two parts of the columns, and with packed rows: the same bits. */
static void check_parts(const struct product *p, const struct tn_kernels *kernels,
                        struct tn_random *random)
{
    const size_t bytes = extent(p->m, p->n, p->ldc) * sizeof(float);
    const size_t wide = tn_panel_size(kernels, true), cut = below(random, p->n) / wide * wide;
    float *const whole = take(bytes, 1);

    memcpy(whole, p->c.at, bytes);
    restore(p);
    for (size_t i = 0; i < p->m; i++)
        run_part(p, kernels, i, 1, 0, p->n, true);
    assert_memory_equal(whole, p->c.at, bytes);
    restore(p);
    if (cut > 0)
        run_part(p, kernels, 0, p->m, 0, cut, true);
    run_part(p, kernels, 0, p->m, cut, p->n, true);
    assert_memory_equal(whole, p->c.at, bytes);
    restore(p);
    run_part(p, kernels, 0, p->m, 0, p->n, false);
    assert_memory_equal(whole, p->c.at, bytes);
    free(whole);
}

static void check_product(struct product p, bool at_end, struct tn_random *random)
{
    const struct tn_kernels *kernels;

    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++) {
        product_open(&p, kernels, at_end, random);
        restore(&p);
        run_part(&p, kernels, 0, p.m, 0, p.n, true);
        check_all(&p, kernels);
        check_parts(&p, kernels, random);
        product_close(&p);
    }
}

static struct product random_product(size_t m, size_t n, size_t k, struct tn_random *random)
{
    return (struct product){
        .m = m,
        .n = n,
        .k = k,
        .lda = k + (below(random, 2) ? below(random, 20) : 0),
        .ldc = n + (below(random, 2) ? below(random, 20) : 0),
        .piece = below(random, 2) ? k : 1 + below(random, k),
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
    for (size_t m = 1; m <= 29; m++)
        for (size_t n = 1; n <= 150; n += 1 + below(&random, 9))
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
                    .m = 3, .n = 20, .k = 37, .lda = 37, .ldc = 20, .piece = 37, .bf16 = bf16};

                product_open(&p, kernels, true, &random);
                p.weights[at * p.n + 11] = INFINITY;
                pack_weights(&p, kernels);
                run_part(&p, kernels, 0, p.m, 0, p.n, true);
                for (size_t e = 0; e < p.m * p.n; e++)
                    assert_int_equal(isinf(((float *)p.c.at)[e]) != 0, e % p.n == 11);
                product_close(&p);
            }
}

/* Columns of a panel's second vector are in the upper halves of words. */
static void panels_are_rounded_to_bf16(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 2105);
    for (size_t i = 0; (kernels = kernels_at(i)) != NULL; i++)
        for (size_t steps = 1; steps < 40; steps++) {
            const size_t lanes = kernels->lanes, n = steps * 2 * lanes;
            struct fenced x = fence(n * sizeof(float), steps % 2);
            struct fenced y = fence(n * sizeof(uint16_t), steps % 2);

            draw(x.at, n, &random);
            kernels->narrow_panels(y.at, x.at, 2 * lanes, steps, 0, steps);
            for (size_t e = 0; e < n; e++) {
                const size_t step = e / (2 * lanes), col = e % (2 * lanes);
                const size_t at = step * 2 * lanes + 2 * (col % lanes) + col / lanes;

                assert_int_equal(((uint16_t *)y.at)[at], tn_bf16_from_f32(((float *)x.at)[e]));
            }
            unfence(&x);
            unfence(&y);
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
        cmocka_unit_test(panels_are_rounded_to_bf16),
        cmocka_unit_test(widening_is_exact),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
