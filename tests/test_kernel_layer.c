/* SPDX-License-Identifier: MIT */
/* test_kernel_layer.c - loops of the layers that no layer's own test sees alone: rounding to
 * bf16, sums over rows, and the packed product at every remainder. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/matmul.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

enum { WIDTHS = 4 * 16 + 3 };

/* ---- bf16 --------------------------------------------------------------- */

/* Some of the floats that round in a special way. */
static float special(size_t i)
{
    static const uint32_t bits[] = {0x3f808000, 0x3f818000, 0x3f807fff, 0x3f808001, 0x7f800000,
                                    0xff800000, 0x7f800001, 0x7fffffff, 0xffffffff, 0x7f7fffff,
                                    0x00000001, 0x80000000, 0x00008000, 0x00018000};
    float x;

    memcpy(&x, &bits[i % (sizeof bits / sizeof bits[0])], sizeof x);
    return x;
}

static void bf16_rounds_as_its_definition_says(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 471);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t width = 1; width <= WIDTHS; width++) {
            const size_t rows = 1 + below(&random, 4);
            struct floats x = floats_open(rows * width, 1.0, &random);
            struct floats back = floats_open(rows * width, 1.0, &random);
            uint16_t *const y = take(rows * width, sizeof *y);

            for (size_t i = 0; i < x.n; i++)
                if (below(&random, 4) == 0)
                    x.at[i] = special(below(&random, 100));
            kernels->narrow(y, (ptrdiff_t)width, x.at, (ptrdiff_t)width, rows, width);
            kernels->widen(back.at, (ptrdiff_t)width, y, (ptrdiff_t)width, rows, width);
            for (size_t i = 0; i < x.n; i++) {
                const float want = tn_bf16_to_f32(tn_bf16_from_f32(x.at[i]));

                assert_int_equal(y[i], tn_bf16_from_f32(x.at[i]));
                assert_memory_equal(&back.at[i], &want, sizeof want);
            }
            floats_close(&x);
            floats_close(&back);
            free(y);
        }
}

/* ---- sums --------------------------------------------------------------- */

static void sums_of_rows_go_over_every_row(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 472);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t width = 1; width <= WIDTHS; width++) {
            const size_t rows = below(&random, 14), ld = width + below(&random, 5);
            struct floats x = floats_open(rows ? (rows - 1) * ld + width : 0, 1.0, &random);
            struct floats sum = floats_open(width, 1.0, &random);
            double *const want = doubles_of(sum.at, width);

            for (size_t i = 0; i < rows; i++)
                for (size_t j = 0; j < width; j++)
                    want[j] += (double)x.at[i * ld + j];
            kernels->sum_rows(sum.at, x.at, (ptrdiff_t)ld, rows, width);
            check_floats("sum_rows", sum.at, want, width, 1e-5);
            floats_close(&x);
            floats_close(&sum);
            free(want);
        }
}

/* ---- the packed product ------------------------------------------------- */

struct packed_case {
    const struct tn_kernels *kernels;
    size_t m, n, k;
    bool a_across, b_across; /* stored with the sum running down */
    struct floats a, b, c, bias;
};

static double entry(const float *x, size_t item, size_t p, size_t items, size_t k, bool across)
{
    return (double)(across ? x[p * items + item] : x[item * k + p]);
}

static float *packed(const struct packed_case *c, bool of_b)
{
    const size_t items = of_b ? c->n : c->m, size = tn_panel_size(c->kernels, of_b);
    const bool across = of_b ? c->b_across : c->a_across;
    const size_t floats = tn_blocks(items, size) * tn_panel_width(c->kernels, of_b) * c->k;
    float *const panels = take(floats, sizeof *panels);

    for (size_t i = 0; i < floats; i++)
        panels[i] = NAN;
    c->kernels->pack(panels, of_b, of_b ? c->b.at : c->a.at, (ptrdiff_t)(across ? items : c->k),
                     across, items, c->k);
    return panels;
}

static void check_product(struct packed_case *c, bool add, bool bias, bool relu)
{
    double *const want = doubles_of(c->c.at, c->c.n);
    float *const a = packed(c, false), *const b = packed(c, true);
    struct tn_ahead ahead[3] = {{c->a.at, 1, c->m, c->k, 0}, {c->b.at, 1, 1, 1, 0}, {0}};

    for (size_t i = 0; i < c->m * c->n; i++) {
        want[i] = add ? want[i] : 0.0;
        for (size_t p = 0; p < c->k; p++)
            want[i] += entry(c->a.at, i / c->n, p, c->m, c->k, c->a_across) *
                       entry(c->b.at, i % c->n, p, c->n, c->k, c->b_across);
        want[i] += bias ? (double)c->bias.at[i % c->n] : 0.0;
        want[i] = relu && want[i] < 0.0 ? 0.0 : want[i];
    }
    c->kernels->product_packed(&(struct tn_panels){.c = c->c.at,
                                                   .a = a,
                                                   .b = b,
                                                   .ldc = (ptrdiff_t)c->n,
                                                   .m = c->m,
                                                   .n = c->n,
                                                   .k = c->k,
                                                   .bias = bias ? c->bias.at : NULL,
                                                   .add = add,
                                                   .relu = relu,
                                                   .ahead = ahead});
    check_floats("product_packed", c->c.at, want, c->c.n, 1e-5);
    free(want);
    free(a);
    free(b);
}

static void packed_products_equal_the_plain_loops(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 473);
    for (size_t t = 0; (kernels = kernels_at(t)) != NULL; t++)
        for (size_t i = 0; i < 400; i++) {
            struct packed_case c = {.kernels = kernels,
                                    .m = 1 + i % 20,
                                    .n = 1 + below(&random, 70),
                                    .k = 1 + below(&random, 40),
                                    .a_across = i & 1,
                                    .b_across = i >> 1 & 1};

            c.a = floats_open(c.m * c.k, 1.0, &random);
            c.b = floats_open(c.n * c.k, 1.0, &random);
            c.c = floats_open(c.m * c.n, 1.0, &random);
            c.bias = floats_open(c.n, 1.0, &random);
            check_product(&c, i >> 2 & 1, i >> 3 & 1, i >> 4 & 1);
            floats_close(&c.bias);
            floats_close(&c.a);
            floats_close(&c.b);
            floats_close(&c.c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bf16_rounds_as_its_definition_says),
        cmocka_unit_test(sums_of_rows_go_over_every_row),
        cmocka_unit_test(packed_products_equal_the_plain_loops),
    };

    return cmocka_run_group_tests_name("kernels of layers", tests, NULL, NULL);
}
