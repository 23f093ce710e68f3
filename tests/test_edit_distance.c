/* SPDX-License-Identifier: MIT */
/* test_edit_distance.c - edits against the definition, tried out recursively, and against pairs
 * whose edits are known. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/edit_distance.h"
#include "support/testing.h"

enum { MOST = 24 };

struct trial {
    const int32_t *wanted, *found;
    size_t n, m;
    bool known[MOST + 1][MOST + 1];
    size_t cost[MOST + 1][MOST + 1];
};

/* Of what is left from i and j on: the fewest edits, and the fewest of them that are no
 * substitutions, as one number. */
static size_t solve(struct trial *t, size_t i, size_t j)
{
    enum { EDIT = 1000 };

    if (i == t->n || j == t->m)
        return ((t->n - i) + (t->m - j)) * (EDIT + 1);
    if (!t->known[i][j]) {
        const size_t both = solve(t, i + 1, j + 1) + (t->wanted[i] != t->found[j] ? EDIT : 0);
        const size_t drop = solve(t, i + 1, j) + EDIT + 1, put = solve(t, i, j + 1) + EDIT + 1;

        t->known[i][j] = true;
        t->cost[i][j] = tn_min(both, tn_min(drop, put));
    }
    return t->cost[i][j];
}

static struct tn_edits edits_of(const int32_t *wanted, size_t n, const int32_t *found, size_t m)
{
    void *const scratch = take(tn_edit_scratch_size(m), 1);
    const struct tn_edits edits = tn_edit_distance(wanted, n, found, m, scratch);

    free(scratch);
    return edits;
}

static void edits_are_the_fewest(void **state)
{
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 491);
    for (size_t i = 0; i < 3000; i++) {
        const size_t symbols = 1 + below(&random, 5);
        int32_t wanted[MOST], found[MOST];
        struct trial t = {.wanted = wanted,
                          .found = found,
                          .n = below(&random, MOST),
                          .m = below(&random, MOST)};

        for (size_t k = 0; k < MOST; k++) {
            wanted[k] = (int32_t)below(&random, symbols);
            found[k] = below(&random, 3) ? wanted[k] : (int32_t)below(&random, symbols);
        }
        const struct tn_edits got = edits_of(wanted, t.n, found, t.m);

        assert_int_equal(tn_edits_sum(got) * 1000 + got.insertions + got.deletions,
                         solve(&t, 0, 0));
        assert_int_equal(t.n + got.insertions, t.m + got.deletions);
    }
}

static void known_pairs_have_their_edits(void **state)
{
    static const struct {
        const char *wanted, *found;
        struct tn_edits edits;
    } pairs[] = {
        {"", "", {0, 0, 0}},
        {"", "abc", {0, 3, 0}},
        {"abc", "", {0, 0, 3}},
        {"abc", "abc", {0, 0, 0}},
        {"kitten", "sitting", {2, 1, 0}},
        {"sitting", "kitten", {2, 0, 1}},
        {"saturday", "sunday", {1, 0, 2}},
        {"flaw", "lawn", {0, 1, 1}},
        {"ab", "ba", {2, 0, 0}},
        {"intention", "execution", {5, 0, 0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        int32_t wanted[16], found[16];
        const size_t n = strlen(pairs[i].wanted), m = strlen(pairs[i].found);

        for (size_t k = 0; k < n; k++)
            wanted[k] = pairs[i].wanted[k];
        for (size_t k = 0; k < m; k++)
            found[k] = pairs[i].found[k];
        const struct tn_edits got = edits_of(wanted, n, found, m), want = pairs[i].edits;

        assert_memory_equal(&got, &want, sizeof want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_the_fewest),
        cmocka_unit_test(known_pairs_have_their_edits),
    };

    return cmocka_run_group_tests_name("edit distance", tests, NULL, NULL);
}
