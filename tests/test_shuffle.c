/* SPDX-License-Identifier: MIT */
/* test_shuffle.c - a permutation, and one that cannot be told from chance by these measures. */
#include <stdlib.h>

#include "data/batch.h"
#include "support/testing.h"

static void every_number_comes_once(void **state)
{
    bool *const seen = take(70000, sizeof *seen);

    (void)state;
    for (size_t n = 1; n <= 70000; n += n < 300 ? 1 : 17428) {
        for (size_t i = 0; i < n; i++)
            seen[i] = false;
        for (size_t i = 0; i < n; i++) {
            const size_t to = tn_shuffle(n, n, i);

            assert_true(to < n);
            assert_false(seen[to]);
            seen[to] = true;
        }
    }
    free(seen);
}

/* Each of 13 places gets each of 13 numbers, 1000 times of 13000 keys, give or take 30. */
static void every_number_comes_everywhere(void **state)
{
    size_t counts[13][13] = {{0}};

    (void)state;
    for (uint64_t key = 0; key < 13000; key++)
        for (size_t i = 0; i < 13; i++)
            counts[i][tn_shuffle(key, 13, i)]++;
    for (size_t i = 0; i < 13; i++)
        for (size_t to = 0; to < 13; to++)
            assert_in_range(counts[i][to], 850, 1150);
}

/* What stands behind a number says nothing of it: in a permutation of n by chance n / 12 of the
 * differences between neighbours, modulo n, are in each twelfth, give or take 64. */
static void neighbours_are_strangers(void **state)
{
    const size_t n = 60000;
    size_t counts[12] = {0};

    (void)state;
    for (size_t i = 0; i + 1 < n; i++)
        counts[(tn_shuffle(5, n, i + 1) + n - tn_shuffle(5, n, i)) % n * 12 / n]++;
    for (size_t c = 0; c < 12; c++)
        assert_in_range(counts[c], 4650, 5350);
}

static void keys_differ_everywhere(void **state)
{
    size_t same = 0;

    (void)state;
    for (size_t i = 0; i < 60000; i++)
        same += tn_shuffle(1, 60000, i) == tn_shuffle(2, 60000, i);
    assert_true(same < 12); /* one is expected */
}

static void large_numbers_do(void **state)
{
    (void)state;
    assert_true(tn_shuffle(1, SIZE_MAX, SIZE_MAX - 1) < SIZE_MAX);
    assert_true(tn_shuffle(1, (size_t)1 << 40, 12345) < (size_t)1 << 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_comes_once),
        cmocka_unit_test(every_number_comes_everywhere),
        cmocka_unit_test(neighbours_are_strangers),
        cmocka_unit_test(keys_differ_everywhere),
        cmocka_unit_test(large_numbers_do),
    };

    return cmocka_run_group_tests_name("shuffle", tests, NULL, NULL);
}
