/* SPDX-License-Identifier: MIT */
/* test_parallel.c - every index once, whoever runs it, in teams and out of them. */
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "support/testing.h"

enum { MOST = 1000 };

struct tally {
    size_t threads, count;
    atomic_uint seen[MOST];
    atomic_bool strange; /* a thread's name that is out of range */
};

static void mark(void *arg, size_t i, size_t thread)
{
    struct tally *const tally = arg;

    if (thread >= tally->threads)
        atomic_store(&tally->strange, true);
    atomic_fetch_add(&tally->seen[i], 1);
}

static void count_once(size_t threads, size_t count)
{
    static struct tally tally;

    memset(&tally, 0, sizeof tally);
    tally.threads = threads;
    tn_parallel(threads, count, mark, &tally);
    assert_false(atomic_load(&tally.strange));
    for (size_t i = 0; i < MOST; i++)
        assert_int_equal(atomic_load(&tally.seen[i]), i < count);
}

static const size_t counts[] = {0, 1, 2, 3, 7, 64, 65, 999};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void every_index_is_run_once(void **state)
{
    (void)state;
    for (size_t threads = 1; threads <= 100; threads += threads < 5 ? 1 : 19)
        for (size_t i = 0; i < COUNTS; i++)
            count_once(threads, counts[i]);
}

static void many_short_ones(void *arg)
{
    const size_t *const threads = arg;

    for (size_t round = 0; round < 200; round++)
        count_once(1 + round % *threads, counts[round % COUNTS]);
}

static void a_team_runs_every_index_once(void **state)
{
    (void)state;
    for (size_t threads = 1; threads <= 5; threads++)
        tn_together(threads, many_short_ones, &threads);
}

static void a_team_within_a_team(void *arg)
{
    tn_together(3, many_short_ones, arg);
}

static void teams_may_be_asked_for_twice(void **state)
{
    size_t threads = 2;

    (void)state;
    tn_together(threads, a_team_within_a_team, &threads);
    count_once(2, 65); /* and it is over afterwards */
}

static void inner(void *arg, size_t i, size_t thread)
{
    (void)i;
    (void)thread;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

static void outer(void *arg, size_t i, size_t thread)
{
    (void)i;
    (void)thread;
    tn_parallel(2, 10, inner, arg);
}

static void nested(void *arg)
{
    tn_parallel(2, 8, outer, arg);
}

static void a_task_may_run_tasks_of_its_own(void **state)
{
    atomic_uint calls = 0;

    (void)state;
    nested(&calls);
    tn_together(2, nested, &calls);
    assert_int_equal(atomic_load(&calls), 2 * 8 * 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_run_once),
        cmocka_unit_test(a_team_runs_every_index_once),
        cmocka_unit_test(teams_may_be_asked_for_twice),
        cmocka_unit_test(a_task_may_run_tasks_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
