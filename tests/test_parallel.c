/* SPDX-License-Identifier: MIT */
/* test_parallel.c - every index once, whoever runs it: with more threads than cores, from many
 * callers at once, in loops inside loops, in forked children, and beside other processes. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "support/testing.h"

enum { MOST = 1000 };

/* Marks that are wrong are counted, because only the test's own thread may fail it. */
struct tally {
    size_t threads, count;
    atomic_uint seen[MOST];
    atomic_bool in_use[TN_THREADS_MAX];
    atomic_uint strange; /* thread numbers that are out of range, or in use twice */
};

static void mark(void *arg, size_t i, size_t thread)
{
    struct tally *const tally = arg;

    if (thread >= tn_min(tally->threads, tally->count) ||
        atomic_exchange(&tally->in_use[thread], true)) {
        atomic_fetch_add(&tally->strange, 1);
        return;
    }
    atomic_fetch_add(&tally->seen[i], 1);
    atomic_store(&tally->in_use[thread], false);
}

/* How many indices were not run exactly once, or were run with a wrong thread number. */
static size_t wrong_indices(struct tally *tally, size_t threads, size_t count)
{
    size_t wrong;

    memset(tally, 0, sizeof *tally);
    tally->threads = threads;
    tally->count = count;
    tn_parallel(threads, count, mark, tally);
    wrong = atomic_load(&tally->strange);
    for (size_t i = 0; i < MOST; i++)
        wrong += atomic_load(&tally->seen[i]) != (i < count);
    return wrong;
}

static const size_t counts[] = {0, 1, 2, 3, 7, 64, 65, 999};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void every_index_is_run_once(void **state)
{
    static struct tally tally;

    (void)state;
    for (size_t threads = 1; threads <= 100; threads += threads < 5 ? 1 : 19)
        for (size_t i = 0; i < COUNTS; i++)
            assert_int_equal(wrong_indices(&tally, threads, counts[i]), 0);
}

/* A thread that is late for a loop of many threads must keep out of the next one of few. */
static size_t wrong_in_short_loops(struct tally *tally, size_t loops)
{
    static const size_t threads[] = {2, 9, 3, 1, 2, 4, 2};
    size_t wrong = 0;

    for (size_t i = 0; i < loops; i++)
        wrong += wrong_indices(tally, threads[i % 7], counts[i % COUNTS]);
    return wrong;
}

static void many_short_loops_of_changing_width(void **state)
{
    static struct tally tally;

    (void)state;
    assert_int_equal(wrong_in_short_loops(&tally, 3000), 0);
}

/* ---- Loops of many indices ---------------------------------------------- */

struct sum {
    atomic_size_t indices, total;
};

static void add_index(void *arg, size_t i, size_t thread)
{
    struct sum *const sum = arg;

    (void)thread;
    atomic_fetch_add_explicit(&sum->indices, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->total, i, memory_order_relaxed);
}

/* More than fit into the 20 bits that parallel.c has for an index. */
static void a_loop_may_have_millions_of_indices(void **state)
{
    const size_t count = ((size_t)1 << 21) + 3;
    struct sum sum = {0};

    (void)state;
    tn_parallel(3, count, add_index, &sum);
    assert_int_equal(atomic_load(&sum.indices), count);
    assert_int_equal(atomic_load(&sum.total), count * (count - 1) / 2);
}

/* ---- Loops inside loops ------------------------------------------------- */

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

static void a_loop_inside_a_loop_runs_every_index_once(void **state)
{
    atomic_uint calls = 0;

    (void)state;
    for (size_t i = 0; i < 100; i++)
        tn_parallel(3, 8, outer, &calls);
    assert_int_equal(atomic_load(&calls), 100 * 8 * 10);
}

/* ---- A thread that is held up ------------------------------------------- */

struct meeting {
    atomic_uint others; /* indices that are done, besides the first */
    size_t count;
};

static void wait_for_the_rest(void *arg, size_t i, size_t thread)
{
    struct meeting *const meeting = arg;

    (void)thread;
    if (i > 0)
        atomic_fetch_add(&meeting->others, 1);
    while (i == 0 && atomic_load(&meeting->others) < meeting->count - 1)
        sched_yield();
}

/* Whoever has the first index, the other takes over all that is left: otherwise this does not
 * end. On a single core there is no other. */
static void a_thread_that_is_held_up_holds_up_no_other_index(void **state)
{
    (void)state;
    if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
        skip();
    for (size_t i = 0; i < 20; i++) {
        struct meeting meeting = {.count = 50};

        tn_parallel(2, meeting.count, wait_for_the_rest, &meeting);
    }
}

/* ---- Several callers ---------------------------------------------------- */

enum { CALLERS = 80 }; /* more than there are pools for */

static void *call_often(void *arg)
{
    struct tally *const tally = malloc(sizeof *tally);

    *(size_t *)arg = tally ? wrong_in_short_loops(tally, 30) : 1;
    free(tally);
    return NULL;
}

static void callers_at_once_do_not_meet(void **state)
{
    pthread_t threads[CALLERS];
    size_t wrong[CALLERS] = {0};

    (void)state;
    for (size_t i = 0; i < CALLERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &wrong[i]), 0);
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(wrong[i], 0);
    }
}

/* ---- Other processes ---------------------------------------------------- */

static void a_forked_child_has_threads_of_its_own(void **state)
{
    static struct tally tally;
    int status = -1;

    (void)state;
    assert_int_equal(wrong_indices(&tally, 5, 999), 0);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        alarm(60); /* where it would wait for its parent's threads */
        a_thread_that_is_held_up_holds_up_no_other_index(NULL); /* which takes two threads */
        _exit(wrong_in_short_loops(&tally, 100) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(wrong_in_short_loops(&tally, 100), 0); /* the parent keeps its threads */
}

enum { BUSY = 6 };

static pid_t start_busy_process(void)
{
    const pid_t child = fork();

    if (child == 0) {
        alarm(120);
        for (volatile unsigned i = 0;; i++)
            ;
    }
    return child;
}

static void every_index_is_run_once_beside_busy_processes(void **state)
{
    static struct tally tally;
    pid_t busy[BUSY];

    (void)state;
    for (size_t i = 0; i < BUSY; i++)
        busy[i] = start_busy_process();
    const size_t wrong = wrong_in_short_loops(&tally, 500);

    for (size_t i = 0; i < BUSY; i++) {
        assert_true(busy[i] > 0);
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_index_is_run_once),
        cmocka_unit_test(many_short_loops_of_changing_width),
        cmocka_unit_test(a_loop_may_have_millions_of_indices),
        cmocka_unit_test(a_loop_inside_a_loop_runs_every_index_once),
        cmocka_unit_test(a_thread_that_is_held_up_holds_up_no_other_index),
        cmocka_unit_test(callers_at_once_do_not_meet),
        cmocka_unit_test(a_forked_child_has_threads_of_its_own),
        cmocka_unit_test(every_index_is_run_once_beside_busy_processes),
    };

    return cmocka_run_group_tests_name("parallel", tests, NULL, NULL);
}
