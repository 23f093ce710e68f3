/* SPDX-License-Identifier: MIT */
/* test_context.c - symbols some distances back, embedded. */
#include <stdlib.h>
#include <string.h>

#include "layer/context.h"
#include "support/kernel_list.h"
#include "support/layer_case.h"

enum { SYMBOLS = 5, B = 3, N = 23, WIDTH = 19, GAP = 2 };

static struct tn_context context_of(const char *spec)
{
    struct tn_context context;
    tarn_error err;

    if (tn_context_init(&context, spec, SYMBOLS, &err) != TARN_OK)
        fail_msg("%s", err.text);
    return context;
}

static void fill_symbols(int32_t *symbols, size_t n, uint64_t seed)
{
    struct tn_random random;

    tn_random_seed(&random, seed);
    for (size_t i = 0; i < n; i++)
        symbols[i] = (int32_t)below(&random, SYMBOLS);
}

/* ---- The spec ----------------------------------------------------------- */

static void distances_are_read_in_their_order(void **state)
{
    const struct tn_context context = context_of("2,65536,1");

    (void)state;
    assert_int_equal(context.count, 3);
    assert_int_equal(context.distance[0], 2);
    assert_int_equal(context.distance[1], 65536);
    assert_int_equal(context.distance[2], 1);
    assert_int_equal(context.reach, 65536);
    assert_int_equal(tn_context_rows(&context), 3 * (SYMBOLS + 1));
    assert_int_equal(context_of("").count, 0);
    assert_int_equal(context_of("").reach, 0);
}

static void what_is_no_list_of_distances_is_refused(void **state)
{
    static const char *const wrong[] = {
        "0",
        "-1",
        "1,",
        ",1",
        "1,,2",
        "1,2,1",
        "65537",
        "x",
        "1 ,2",
        "1,2 ",
        " 1",
        "1;2",
        "+1",
        "1.5",
        "99999999999999999999",
        "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25",
    };
    struct tn_context context;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(tn_context_init(&context, wrong[i], SYMBOLS, &err), TARN_EINVAL);
        if (strncmp(err.text, "context is '", 12) != 0)
            fail_msg("'%s' is refused with '%s'", wrong[i], err.text);
    }
    assert_int_equal(tn_context_init(&context, "1,2,3", (size_t)1 << 30, &err), TARN_EINVAL);
}

/* ---- Rows --------------------------------------------------------------- */

static void a_sequence_begins_with_a_row_of_its_own(void **state)
{
    static const int32_t symbols[] = {3, 1, 4, 1}, want[] = {5, 5, 3, 1, 11, 9, 7, 10};
    const struct tn_context context = context_of("2,1");
    int32_t rows[8];

    (void)state;
    tn_context_find(&context, rows, &(struct tn_context_place){symbols, 1, 4, NULL, 0});
    assert_memory_equal(rows, want, sizeof want);
}

/* However a sequence is cut: the past is all that a part needs of the parts before it. */
static void parts_find_the_rows_of_the_whole(void **state)
{
    static const size_t cuts[] = {1, 2, 7, 23};
    const struct tn_context context = context_of("1,9,4");
    int32_t symbols[B * N], whole[3 * B * N], rows[3 * B * N], part[B * N], past[B * 9];

    (void)state;
    fill_symbols(symbols, B * N, 11);
    tn_context_find(&context, whole, &(struct tn_context_place){symbols, B, N, NULL, 0});
    for (size_t c = 0; c < sizeof cuts / sizeof cuts[0]; c++) {
        memset(past, 0, sizeof past);
        for (size_t from = 0, n; from < N; from += n) {
            n = tn_min(cuts[c], N - from);
            for (size_t b = 0; b < B; b++)
                memcpy(part + b * n, symbols + b * N + from, n * sizeof *part);
            const struct tn_context_place place = {part, B, n, past, from};

            tn_context_find(&context, rows, &place);
            tn_context_remember(&context, past, &place);
            for (size_t jb = 0; jb < 3 * B; jb++)
                assert_memory_equal(rows + jb * n, whole + jb * N + from, n * sizeof *rows);
        }
    }
}

/* ---- Sums --------------------------------------------------------------- */

struct sums {
    struct floats tables, dtables, y, dy;
    int32_t rows[2 * B * N];
};

static struct sums sums_open(const struct tn_context *context)
{
    const size_t table = tn_context_rows(context) * WIDTH, n = B * N * (WIDTH + GAP);
    struct tn_random random;
    int32_t symbols[B * N];
    struct sums s;

    tn_random_seed(&random, 12);
    fill_symbols(symbols, B * N, 13);
    s.tables = floats_open(table, 1.0, &random);
    s.dtables = floats_open(table, 1.0, &random);
    s.y = floats_open(n, 1.0, &random);
    s.dy = floats_open(n, 1.0, &random);
    tn_context_find(context, s.rows, &(struct tn_context_place){symbols, B, N, NULL, 0});
    return s;
}

static void sums_close(struct sums *s)
{
    floats_close(&s->tables);
    floats_close(&s->dtables);
    floats_close(&s->y);
    floats_close(&s->dy);
}

static void sums_run(struct sums *s, const struct tn_context *context, const struct tn_rows *r)
{
    tn_context_forward(context, r, s->y.at, WIDTH + GAP, s->tables.at, s->rows);
    tn_context_backward(context, r, s->dtables.at, s->dy.at, WIDTH + GAP, s->rows);
}

static void check_sums(struct sums *s, const struct tn_context *context,
                       const struct tn_rows *r)
{
    double *const y = doubles_of(s->y.at, s->y.n);
    double *const dtables = doubles_of(s->dtables.at, s->dtables.n);

    for (size_t i = 0; i < 2 * B * N; i++)
        for (size_t c = 0; c < WIDTH; c++) {
            const size_t at = (size_t)s->rows[i] * WIDTH + c;
            const size_t of = i % (B * N) * (WIDTH + GAP) + c;

            y[of] += (double)s->tables.at[at];
            dtables[at] += (double)s->dy.at[of];
        }
    sums_run(s, context, r);
    check_floats("y", s->y.at, y, s->y.n, 1e-6);
    check_floats("dtables", s->dtables.at, dtables, s->dtables.n, 2e-5);
    free(y);
    free(dtables);
}

static void every_instruction_set_equals_the_definition(void **state)
{
    const struct tn_context context = context_of("7,1");
    const struct tn_kernels *kernels;

    (void)state;
    for (size_t k = 0; (kernels = kernels_at(k)) != NULL; k++) {
        const struct tn_rows r = {kernels, 1 + k % 3, B * N, WIDTH};
        struct sums s = sums_open(&context);

        check_sums(&s, &context, &r);
        sums_close(&s);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    const struct tn_context context = context_of("1,2");
    const struct tn_rows one = {kernels_at(0), 1, B * N, WIDTH};
    struct sums want = sums_open(&context);

    (void)state;
    sums_run(&want, &context, &one);
    for (size_t threads = 2; threads < 6; threads++) {
        const struct tn_rows r = {kernels_at(0), threads, B * N, WIDTH};
        struct sums s = sums_open(&context);

        sums_run(&s, &context, &r);
        assert_memory_equal(s.y.at, want.y.at, s.y.n * sizeof(float));
        assert_memory_equal(s.dtables.at, want.dtables.at, s.dtables.n * sizeof(float));
        sums_close(&s);
    }
    sums_close(&want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_read_in_their_order),
        cmocka_unit_test(what_is_no_list_of_distances_is_refused),
        cmocka_unit_test(a_sequence_begins_with_a_row_of_its_own),
        cmocka_unit_test(parts_find_the_rows_of_the_whole),
        cmocka_unit_test(every_instruction_set_equals_the_definition),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
    };

    return cmocka_run_group_tests_name("context", tests, NULL, NULL);
}
