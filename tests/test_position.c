/* SPDX-License-Identifier: MIT */
/* test_position.c - every kind of position, by looping over the table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/position.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"
#include "tarn/model.h"

static struct tn_position open_kind(const char *spec, size_t F)
{
    struct tn_position position;
    tarn_error err = {0};

    check_ok(tn_position_init(&position, spec, F, &err), &err);
    return position;
}

/* ---- sizes -------------------------------------------------------------- */

static void widths_are_as_documented(void **state)
{
    static const struct {
        const char *spec;
        size_t embedding, table;
        bool learned;
    } cases[] = {
        {"concat", 32, 32, false},
        {"add", 64, 64, false},
        {"learned", 64, 64, true},
        {"none", 64, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tn_position position = open_kind(cases[i].spec, 64);

        assert_int_equal(position.embedding, cases[i].embedding);
        assert_int_equal(position.table, cases[i].table);
        assert_true(position.row->learned == cases[i].learned);
    }
}

static void bad_specs_are_refused(void **state)
{
    static const struct {
        const char *spec;
        size_t F;
    } cases[] = {{"concat", 6}, {"concat", 0}, {"concat", 1}, {"add", 7},
                 {"none", 0},   {"rotary", 8}, {"", 8},       {"concat:base=2", 8}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tn_position position;
        tarn_error err = {0};

        if (tn_position_init(&position, cases[i].spec, cases[i].F, &err) == TARN_OK)
            fail_msg("'%s' of %zu was accepted", cases[i].spec, cases[i].F);
        assert_non_null(strstr(err.text, "position"));
    }
}

/* ---- the sinusoid ------------------------------------------------------- */

/* Vaswani et al., in long double; positions beyond millions too. */
static void sinusoids_are_as_defined(void **state)
{
    static const size_t from[] = {0, 1, 783, 65535, 1000000, 123456789};
    const struct tn_position position = open_kind("add", 64);
    float row[64];

    (void)state;
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        tn_position_fill(&position, row, from[i], 1);
        for (size_t j = 0; j < 64; j++) {
            const long double angle =
                (long double)from[i] * powl(10000.0L, -(long double)(j / 2 * 2) / 64.0L);
            const double want = (double)(j % 2 ? cosl(angle) : sinl(angle));

            assert_true(fabs((double)row[j] - want) <= 1e-7);
        }
    }
    tn_position_fill(&position, row, 0, 1);
    for (size_t j = 0; j < 64; j++)
        assert_true(row[j] == (float)(j % 2)); /* sin 0, cos 0 */
}

static void a_position_alone_equals_its_row_of_a_table(void **state)
{
    static const char *const specs[] = {"concat", "add"};
    enum { N = 777, FIRST = 3000000 };

    (void)state;
    for (size_t s = 0; s < 2; s++) {
        const struct tn_position position = open_kind(specs[s], 52);
        const size_t d = position.table;
        float *const table = take(N * d, sizeof *table), *const row = take(d, sizeof *row);

        tn_position_fill(&position, table, FIRST, N);
        for (size_t p = 0; p < N; p++) {
            tn_position_fill(&position, row, FIRST + p, 1);
            check_bits("a row", row, table + p * d, d);
        }
        free(table);
        free(row);
    }
}

/* ---- apply and its gradient --------------------------------------------- */

struct position_case {
    struct tn_position position;
    struct tn_rows r;
    size_t n, ld;
    struct floats y, dy, table, dtable;
};

static struct position_case case_open(const char *spec, struct tn_rows r, size_t n, size_t gap,
                                      struct tn_random *random)
{
    struct position_case c = {
        .position = open_kind(spec, r.width), .r = r, .n = n, .ld = r.width + gap};
    const size_t floats = (r.rows - 1) * c.ld + r.width;

    c.y = floats_open(floats, 1.0, random);
    c.dy = floats_open(floats, 1.0, random);
    c.table = floats_open(n * c.position.table, 1.0, random);
    c.dtable = floats_open(n * c.position.table, 1.0, random);
    tn_position_fill(&c.position, c.table.at, 5, n);
    return c;
}

static void case_close(struct position_case *c)
{
    floats_close(&c->y);
    floats_close(&c->dy);
    floats_close(&c->table);
    floats_close(&c->dtable);
}

static void run(struct position_case *c)
{
    tn_position_apply(&c->position, &c->r, c->y.at, c->ld, c->table.at, c->n);
    tn_position_backward(&c->position, &c->r, c->dtable.at, c->dy.at, c->ld, c->n);
}

static void check(struct position_case *c)
{
    const char *const name = c->position.row->about.name;
    const size_t d = c->position.table, behind = c->position.F - d;
    double *const y = doubles_of(c->y.at, c->y.n);
    double *const dtable = doubles_of(c->dtable.at, c->dtable.n);

    for (size_t i = 0; i < c->r.rows; i++)
        for (size_t j = 0; j < d; j++) {
            double *const at = &y[i * c->ld + behind + j];
            const size_t entry = i % c->n * d + j;

            *at = (double)c->table.at[entry] + (behind ? 0.0 : *at);
            if (c->position.row->learned)
                dtable[entry] += (double)c->dy.at[i * c->ld + j];
        }
    run(c);
    check_floats(name, c->y.at, y, c->y.n, 1e-7);
    check_floats(name, c->dtable.at, dtable, c->dtable.n, 1e-5);
    free(y);
    free(dtable);
}

static void every_kind_equals_its_definition(void **state)
{
    static const size_t widths[] = {4, 12, 64, 148}, lengths[] = {1, 3, 31, 100};
    const struct tn_kernels *kernels;
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 441);
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++)
        for (size_t kind = 0; tarn_position_kind(kind); kind++)
            for (size_t i = 0; i < 16; i++) {
                const size_t n = lengths[i / 4], rows = n * (1 + below(&random, 6));
                const struct tn_rows r = {kernels, 1 + i % 3, rows, widths[i % 4]};
                struct position_case c =
                    case_open(tarn_position_kind(kind)->name, r, n, below(&random, 9), &random);

                check(&c);
                case_close(&c);
            }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    struct tn_random random;

    (void)state;
    for (size_t kind = 0; tarn_position_kind(kind); kind++)
        for (size_t i = 0; i < AWKWARD_THREADS; i++) {
            struct tn_rows r = {tn_kernels_pick(forced_cpu()), 1, 31 * 67, 148};

            tn_random_seed(&random, 442);
            struct position_case one =
                case_open(tarn_position_kind(kind)->name, r, 67, 0, &random);

            r.threads = awkward_threads[i];
            tn_random_seed(&random, 442);
            struct position_case many =
                case_open(tarn_position_kind(kind)->name, r, 67, 0, &random);

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
        cmocka_unit_test(widths_are_as_documented),
        cmocka_unit_test(bad_specs_are_refused),
        cmocka_unit_test(sinusoids_are_as_defined),
        cmocka_unit_test(a_position_alone_equals_its_row_of_a_table),
        cmocka_unit_test(every_kind_equals_its_definition),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
    };

    return cmocka_run_group_tests_name("positions", tests, NULL, NULL);
}
