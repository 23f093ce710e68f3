/* SPDX-License-Identifier: MIT */
/* test_cores.c - a thread leaves a core for another one that it may run on, and loops run on a
 * single core, too. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_setaffinity() */
#endif
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/base.h"
#include "support/testing.h"

#ifdef __linux__

static cpu_set_t allowed(void)
{
    cpu_set_t set;

    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

static void allow(const cpu_set_t *set)
{
    assert_int_equal(sched_setaffinity(0, sizeof *set, set), 0);
}

static cpu_set_t only(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    return set;
}

/* Each in a thread of its own, which begins with all that the process may use. */
static void in_a_thread(void *(*test)(void *failed))
{
    pthread_t thread;
    bool failed = true;

    assert_int_equal(pthread_create(&thread, NULL, test, &failed), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(failed);
}

static void *leave_and_return(void *failed)
{
    cpu_set_t before = allowed(), after;
    const int first = tn_core();
    const bool left = tn_core_leave(first) && tn_core() != first;
    const int second = tn_core();
    const bool returned = tn_core_leave(second) && tn_core() != second;

    CPU_CLR((size_t)second, &before);
    after = allowed();
    *(bool *)failed = !(left && returned && CPU_EQUAL(&before, &after));
    return NULL;
}

static void a_thread_leaves_a_core_and_may_return_from_the_next(void **state)
{
    const cpu_set_t here = allowed();

    (void)state;
    if (CPU_COUNT(&here) < 2)
        skip();
    in_a_thread(leave_and_return);
}

static void *stay(void *failed)
{
    const int core = tn_core();
    const cpu_set_t one = only(core);

    allow(&one);
    *(bool *)failed = tn_core_leave(core) || tn_core() != core;
    return NULL;
}

static void a_thread_stays_where_it_may_not_leave(void **state)
{
    (void)state;
    in_a_thread(stay);
}

static void *obey(void *failed)
{
    const int core = tn_core();
    const cpu_set_t one = only(core);
    const bool left = tn_core_leave(core);

    allow(&one); /* as a user might */
    *(bool *)failed = !left || tn_core_leave(core) || tn_core() != core;
    return NULL;
}

static void a_thread_keeps_to_what_others_allow_it_later(void **state)
{
    const cpu_set_t here = allowed();

    (void)state;
    if (CPU_COUNT(&here) < 2)
        skip();
    in_a_thread(obey);
}

static void an_unknown_core_does_not_stop_a_worker(void **state)
{
    (void)state;
    assert_true(tn_core_leave(-1));
    assert_true(tn_core_leave(CPU_SETSIZE));
}

/* ---- Loops on one core -------------------------------------------------- */

static void count(void *arg, size_t i, size_t thread)
{
    (void)i;
    (void)thread;
    atomic_fetch_add((atomic_uint *)arg, 1);
}

/* The workers are started where they may not leave, find the caller on their core, and sleep;
 * then the caller moves, if there is another core. */
static void *loop_on_one_core(void *failed)
{
    const cpu_set_t all = allowed(), one = only(tn_core());
    atomic_uint calls = 0;

    allow(&one);
    for (size_t i = 0; i < 1000; i++)
        tn_parallel(4, 10, count, &calls);
    allow(&all);
    tn_core_leave(tn_core());
    for (size_t i = 0; i < 1000; i++)
        tn_parallel(4, 10, count, &calls);
    *(bool *)failed = atomic_load(&calls) != 2 * 1000 * 10;
    return NULL;
}

static void loops_on_one_core_run_every_index(void **state)
{
    (void)state;
    in_a_thread(loop_on_one_core);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_leaves_a_core_and_may_return_from_the_next),
        cmocka_unit_test(a_thread_stays_where_it_may_not_leave),
        cmocka_unit_test(a_thread_keeps_to_what_others_allow_it_later),
        cmocka_unit_test(an_unknown_core_does_not_stop_a_worker),
        cmocka_unit_test(loops_on_one_core_run_every_index),
    };

    return cmocka_run_group_tests_name("cores", tests, NULL, NULL);
}

#else

int main(void)
{
    return 77; /* skipped: the system does not say which core a thread runs on */
}

#endif
