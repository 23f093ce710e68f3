/* SPDX-License-Identifier: MIT */
/* parallel.c - the only file that knows OpenMP. Without it everything runs, on one thread.
 *
 * Every thread does its own share of the indices first, and the same one when it is called
 * again with as many indices: where cores have caches of their own, what an index reads is then
 * still in the cache of the core that comes back to it. A thread that is done takes from the
 * others' shares, since one of them may have been taken off its core. */
#include "base/base.h"

tarn_status tn_threads_check(size_t threads, tarn_error *err)
{
    if (threads > TN_THREADS_MAX)
        return tn_fail(err, TARN_EINVAL, "threads: %zu; expected 1 to %d, or 0 for all",
                       threads, TN_THREADS_MAX);
    return TARN_OK;
}

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

struct region {
    tn_work *work;
    void *arg;
    size_t threads, count;
};

/* A thread's indices, on a cache line of its own. */
struct share {
    _Alignas(TN_ALIGN) atomic_size_t next;
    size_t end;
    atomic_uint job; /* that these are of */
};

enum { SHARES_MAX = 64 }; /* threads beyond only help */

static size_t shares_of(const struct region *region)
{
    return tn_min(region->threads, SHARES_MAX);
}

static void open_share(struct share *share, const struct region *region, size_t i, unsigned job)
{
    const size_t n = shares_of(region), each = region->count / n, over = region->count % n;

    atomic_store_explicit(&share->next, i * each + tn_min(i, over), memory_order_relaxed);
    share->end = (i + 1) * each + tn_min(i + 1, over);
    atomic_store_explicit(&share->job, job, memory_order_release);
}

static void finish(struct share *share, const struct region *region, size_t thread)
{
    for (;;) {
        const size_t i = atomic_fetch_add_explicit(&share->next, 1, memory_order_relaxed);

        if (i >= share->end)
            break;
        region->work(region->arg, i, thread);
    }
}

/* All shares, from a thread's own on. One that nobody has opened is left to its thread, which
 * is waited for anyway. */
static void finish_all(struct share *shares, const struct region *region, size_t thread,
                       unsigned job)
{
    const size_t n = shares_of(region);

    for (size_t i = 0; i < n; i++) {
        struct share *const share = &shares[(thread + i) % n];

        if (atomic_load_explicit(&share->job, memory_order_acquire) == job)
            finish(share, region, thread);
    }
}

static void take_part(struct share *shares, const struct region *region, size_t thread,
                      unsigned job)
{
    if (thread >= region->threads)
        return;
    if (thread < SHARES_MAX)
        open_share(&shares[thread], region, thread, job);
    finish_all(shares, region, thread, job);
}

/* ---- Teams -------------------------------------------------------------- */

/* Threads of one region of OpenMP that wait for work by looking at a counter. What they need to
 * know lies beside it, and no thread writes where another one has to: each line that another
 * core changed takes some 0.2 us to come. */
struct team {
    _Alignas(TN_ALIGN) atomic_uint job; /* that was posted last */
    struct region region;               /* no work: there will be no more */
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

static void post(struct team *team, const struct region *region)
{
    team->region = *region;
    atomic_fetch_add_explicit(&team->job, 1, memory_order_release);
}

static void serve(struct team *team, size_t thread)
{
    for (unsigned job = 1;; job++) {
        wait_until(&team->job, job);
        if (!team->region.work)
            break;
        __builtin_prefetch(team->region.arg);
        take_part(team->shares, &team->region, thread, job);
        atomic_fetch_add_explicit(&team->done, 1, memory_order_release);
    }
}

static void run_in_team(struct team *team, struct region region)
{
    /* As many as there are to open shares. */
    region.threads = tn_min(region.threads, team->threads);
    own_team = NULL; /* work is not to post more of it */
    atomic_store_explicit(&team->done, 0, memory_order_relaxed);
    post(team, &region);
    take_part(team->shares, &region, 0, atomic_load_explicit(&team->job, memory_order_relaxed));
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
    atomic_init(&team.job, 0);
    for (size_t i = 0; i < SHARES_MAX; i++)
        atomic_init(&team.shares[i].job, 0);
#pragma omp parallel num_threads((int)threads)
    if (omp_get_thread_num() > 0) {
        serve(&team, (size_t)omp_get_thread_num());
    } else {
        team.threads = (size_t)omp_get_num_threads();
        own_team = &team;
        part(arg);
        own_team = NULL;
        post(&team, &(struct region){0});
    }
}

void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    const struct region region = {work, arg, tn_min(threads, count), count};

    if (region.threads <= 1) {
        for (size_t i = 0; i < count; i++)
            work(arg, i, 0);
        return;
    }
    if (own_team) {
        run_in_team(own_team, region);
        return;
    }
    struct share shares[SHARES_MAX];

    for (size_t i = 0; i < shares_of(&region); i++)
        open_share(&shares[i], &region, i, 1);
#pragma omp parallel num_threads((int)region.threads)
    finish_all(shares, &region, (size_t)omp_get_thread_num(), 1);
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

void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    (void)threads;
    for (size_t i = 0; i < count; i++)
        work(arg, i, 0);
}

#endif
