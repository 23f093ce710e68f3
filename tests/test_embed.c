/* SPDX-License-Identifier: MIT */
/* test_embed.c - rows of a table, and the sums that go back into it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/embed.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

struct embed_case {
    struct tn_rows r;
    size_t symbols, ld;
    struct floats table, dtable, y, dy;
    int32_t *symbol;
};

/* Between the rows of y and dy lies something that is not theirs. */
static struct embed_case case_open(struct tn_rows r, size_t symbols, size_t gap,
                                   struct tn_random *random)
{
    struct embed_case c = {.r = r, .symbols = symbols, .ld = r.width + gap};
    const size_t n = (r.rows - 1) * c.ld + r.width;

    c.table = floats_open(symbols * r.width, 1.0, random);
    c.dtable = floats_open(symbols * r.width, 1.0, random);
    c.y = floats_open(n, 1.0, random);
    c.dy = floats_open(n, 1.0, random);
    c.symbol = take(r.rows, sizeof *c.symbol);
    for (size_t i = 0; i < r.rows; i++)
        c.symbol[i] = (int32_t)below(random, symbols);
    return c;
}

static void case_close(struct embed_case *c)
{
    floats_close(&c->table);
    floats_close(&c->dtable);
    floats_close(&c->y);
    floats_close(&c->dy);
    free(c->symbol);
}

static void run(struct embed_case *c)
{
    tn_embed_forward(&c->r, c->y.at, c->ld, c->table.at, c->symbol);
    tn_embed_backward(&c->r, c->dtable.at, c->dy.at, c->ld, c->symbol);
}

static void check(struct embed_case *c)
{
    const size_t width = c->r.width;
    double *const want = doubles_of(c->dtable.at, c->dtable.n);
    double *const y = doubles_of(c->y.at, c->y.n);

    for (size_t i = 0; i < c->r.rows; i++)
        for (size_t j = 0; j < width; j++) {
            const size_t at = (size_t)c->symbol[i] * width + j;

            y[i * c->ld + j] = (double)c->table.at[at];
            want[at] += (double)c->dy.at[i * c->ld + j];
        }
    run(c);
    check_floats("y", c->y.at, y, c->y.n, 0.0); /* and nothing between rows */
    check_floats("dtable", c->dtable.at, want, c->dtable.n, 2e-5);
    free(want);
    free(y);
}

static void every_instruction_set_equals_the_definition(void **state)
{
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 431);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t i = 0; i < AWKWARD_ROWS * AWKWARD_WIDTHS; i++) {
            const struct tn_rows r = {kernels, 1 + i % 3, awkward_rows[i / AWKWARD_WIDTHS],
                                      awkward_widths[i % AWKWARD_WIDTHS]};
            struct embed_case c =
                case_open(r, 1 + below(&random, 40), below(&random, 20), &random);

            check(&c);
            case_close(&c);
        }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    struct tn_random random;

    (void)state;
    for (size_t i = 0; i < AWKWARD_THREADS; i++) {
        struct tn_rows r = {tn_kernels_pick(forced_cpu()), 1, 2003, 149};

        tn_random_seed(&random, 432);
        struct embed_case one = case_open(r, 5, 3, &random);

        r.threads = awkward_threads[i];
        tn_random_seed(&random, 432);
        struct embed_case many = case_open(r, 5, 3, &random);

        run(&one);
        run(&many);
        check_bits("y", one.y.at, many.y.at, one.y.n);
        check_bits("dtable", one.dtable.at, many.dtable.at, one.dtable.n);
        case_close(&one);
        case_close(&many);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_instruction_set_equals_the_definition),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
    };

    return cmocka_run_group_tests_name("embedding", tests, NULL, NULL);
}
