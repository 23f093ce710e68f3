/* SPDX-License-Identifier: MIT */
/* test_batch.c - batches in an arena, and random numbers by seed, split, index and sequence. */
#include <stdlib.h>
#include <string.h>

#include "support/batches.h"

static void arrays_do_not_overlap_and_are_aligned(void **state)
{
    struct owned_batch owned = batch_open(3, 5);
    const struct tn_batch *const batch = &owned.batch;

    (void)state;
    assert_int_equal(batch->B, 3);
    assert_int_equal(batch->N, 5);
    assert_int_equal((uintptr_t)batch->inputs % 64, 0);
    assert_true((char *)batch->targets - (char *)batch->inputs >= 60);
    assert_true((char *)batch->weights - (char *)batch->targets >= 60);
    assert_true((char *)owned.memory + owned.bytes - (char *)batch->weights >= 60);
    batch_close(&owned);
}

static void sizes_that_do_not_fit_are_seen_while_measuring(void **state)
{
    static const size_t sizes[][2] = {{SIZE_MAX, 2}, {SIZE_MAX / 2, 1}, {SIZE_MAX / 8, 3}};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct tn_arena arena = tn_arena_over(NULL);
        struct tn_batch batch;

        tn_batch_lay_out(&batch, sizes[i][0], sizes[i][1], &arena);
        assert_true(tn_arena_bytes(&arena) == SIZE_MAX);
    }
}

static void clearing_touches_one_sequence(void **state)
{
    struct owned_batch owned = batch_open(3, 5);
    struct tn_batch *const batch = &owned.batch;

    (void)state;
    tn_batch_clear(batch, 1);
    for (size_t i = 0; i < 15; i++) {
        assert_int_equal(batch->inputs[i] == 0, i / 5 == 1);
        assert_int_equal(batch->targets[i] == 0, i / 5 == 1);
        assert_int_equal(batch->weights[i] == 0.0f, i / 5 == 1);
    }
    batch_close(&owned);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* Small and neighbouring numbers are what programs use; none may collide with another place. */
static void every_place_has_numbers_of_its_own(void **state)
{
    enum { SEEDS = 8, INDICES = 64, B = 16, ALL = SEEDS * 2 * INDICES * B };
    uint64_t *const first = take(ALL, sizeof *first);
    size_t n = 0;

    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        for (int split = 0; split < 2; split++)
            for (uint64_t index = 0; index < INDICES; index++)
                for (size_t b = 0; b < B; b++) {
                    struct tn_random random, again;

                    tn_batch_random(&random, seed, (enum tn_split)split, index, b);
                    tn_batch_random(&again, seed, (enum tn_split)split, index, b);
                    first[n] = tn_random_bits(&random);
                    assert_true(tn_random_bits(&again) == first[n++]);
                }
    qsort(first, n, sizeof *first, by_value);
    for (size_t i = 1; i < n; i++)
        assert_true(first[i - 1] != first[i]);
    free(first);
}

static void below_reaches_every_number_alike(void **state)
{
    enum { N = 7, DRAWS = 70000 };
    struct tn_random random;
    size_t seen[N] = {0};

    (void)state;
    tn_random_seed(&random, 3);
    for (size_t i = 0; i < DRAWS; i++) {
        const size_t drawn = tn_random_below(&random, N);

        assert_true(drawn < N);
        seen[drawn]++;
    }
    for (size_t i = 0; i < N; i++) /* 10000 with a standard deviation of 93 */
        assert_true(seen[i] > 9500 && seen[i] < 10500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_do_not_overlap_and_are_aligned),
        cmocka_unit_test(sizes_that_do_not_fit_are_seen_while_measuring),
        cmocka_unit_test(clearing_touches_one_sequence),
        cmocka_unit_test(every_place_has_numbers_of_its_own),
        cmocka_unit_test(below_reaches_every_number_alike),
    };

    return cmocka_run_group_tests_name("batches", tests, NULL, NULL);
}
