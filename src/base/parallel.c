/* SPDX-License-Identifier: MIT */
/* parallel.c - the only file that knows OpenMP. Without it everything runs, on one thread.
 *
 * Every thread does its own share of the indices first, and the same one when it is called again
 * with as many indices: where cores have caches of their own, what an index reads is then still
 * in the cache of the core that comes back to it. A thread that is done takes from the others'
 * shares, since one of them may have been taken off its core. */
#include "base/base.h"

#ifdef _OPENMP
#include <omp.h>
#include <sched.h>
#include <stdatomic.h>

size_t tn_threads_available(void)
{
    static atomic_size_t answer;
    size_t known = 0;
    const size_t now = tn_min((size_t)omp_get_max_threads(), TN_THREADS_MAX);

    atomic_compare_exchange_strong(&answer, &known, now);
    return known ? known : now;
}

size_t tn_threads_allow(size_t threads)
{
    const size_t before = (size_t)omp_get_max_threads();

    omp_set_num_threads((int)threads);
    return before;
}

/* ---- Shares ------------------------------------------------------------- */

/* Of the indices, on a cache line of its own. */
struct share {
    _Alignas(TN_ALIGN) atomic_size_t next;
    size_t end;
};

enum { SHARES_MAX = 64 }; /* more threads than that begin with another's share */

struct work {
    tn_task *task;
    void *arg;
    size_t threads, shares;
    struct share *share;
};

static struct work cut(struct share *share, size_t threads, size_t count, tn_task *task,
                       void *arg)
{
    const struct work work = {task, arg, threads, tn_min(threads, SHARES_MAX), share};
    const size_t each = count / work.shares, over = count % work.shares;

    for (size_t i = 0; i < work.shares; i++) {
        atomic_init(&share[i].next, i * each + tn_min(i, over));
        share[i].end = (i + 1) * each + tn_min(i + 1, over);
    }
    return work;
}

static void finish(struct share *share, const struct work *work, size_t thread)
{
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);

        if (i >= share->end)
            break;
        work->task(work->arg, i, thread);
    }
}

static void take_part(const struct work *work, size_t thread)
{
    if (thread >= work->threads)
        return;
    for (size_t i = 0; i < work->shares; i++)
        finish(&work->share[(thread + i) % work->shares], work, thread);
}

/* ---- Teams -------------------------------------------------------------- */

/* Threads of one region that wait for work by looking at a counter. What they need to know lies
 * beside it: each line of another core's cache that one has to wait for is some 0.2 us. */
struct team {
    _Alignas(TN_ALIGN) atomic_uint posted;
    struct work work; /* no task: there will be no more */
    _Alignas(TN_ALIGN) atomic_uint done;
    size_t threads;
    struct share shares[SHARES_MAX];
};

/* The team that waits for this thread. */
static _Thread_local struct team *own_team;

enum { LOOKS = 1 << 12 }; /* before a core is left to others: some tens of microseconds */

static void look_again(unsigned looks)
{
    if (looks >= LOOKS)
        sched_yield();
#if defined(__x86_64__) || defined(__i386__)
    else
        __builtin_ia32_pause();
#endif
}

static void wait_until(const atomic_uint *counter, unsigned value)
{
    for (unsigned looks = 0; atomic_load_explicit(counter, memory_order_acquire) != value;
         looks += looks < LOOKS)
        look_again(looks);
}

static void post(struct team *team, struct work work)
{
    team->work = work;
    atomic_fetch_add_explicit(&team->posted, 1, memory_order_release);
}

static void serve(struct team *team, size_t thread)
{
    for (unsigned job = 1;; job++) {
        wait_until(&team->posted, job);
        if (!team->work.task)
            break;
        take_part(&team->work, thread);
        atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
    }
}

static void run_in_team(struct team *team, struct work work)
{
    own_team = NULL; /* a task is not to post another */
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    post(team, work);
    take_part(&work, 0);
    wait_until(&team->done, (unsigned)team->threads - 1);
    own_team = team;
}

void tn_together(size_t threads, void (*part)(void *arg), void *arg)
{
    struct team team;

    if (threads <= 1 || own_team) {
        part(arg);
        return;
    }
    atomic_init(&team.posted, 0);
#pragma omp parallel num_threads((int)threads)
    if (omp_get_thread_num() > 0) {
        serve(&team, (size_t)omp_get_thread_num());
    } else {
        team.threads = (size_t)omp_get_num_threads();
        own_team = &team;
        part(arg);
        own_team = NULL;
        post(&team, (struct work){0});
    }
}

void tn_parallel(size_t threads, size_t count, tn_task *task, void *arg)
{
    const size_t used = tn_min(threads, count);

    if (used <= 1) {
        for (size_t i = 0; i < count; i++)
            task(arg, i, 0);
        return;
    }
    if (own_team) {
        run_in_team(own_team, cut(own_team->shares, used, count, task, arg));
        return;
    }
    struct share shares[SHARES_MAX];
    const struct work work = cut(shares, used, count, task, arg);

#pragma omp parallel num_threads((int)used)
    take_part(&work, (size_t)omp_get_thread_num());
}

#else

size_t tn_threads_available(void)
{
    return 1;
}

size_t tn_threads_allow(size_t threads)
{
    (void)threads;
    return 1;
}

void tn_together(size_t threads, void (*part)(void *arg), void *arg)
{
    (void)threads;
    part(arg);
}

void tn_parallel(size_t threads, size_t count, tn_task *task, void *arg)
{
    (void)threads;
    for (size_t i = 0; i < count; i++)
        task(arg, i, 0);
}

#endif
