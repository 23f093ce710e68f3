/* SPDX-License-Identifier: MIT */
/* parallel.c - parallel loops on a pool of threads that sleep when they are not needed.
 *
 * A loop's indices are cut into one range per thread. A thread runs its own range first, and
 * the same one whenever a loop has as many indices: what an index reads is then still in the
 * cache of the core that comes back to it. Then it takes indices from the other ranges, so that
 * a thread that sleeps, or that another process has taken the core from, holds nobody up except
 * by the one index it is at.
 *
 * A loop ends when all indices are done. Nobody waits for threads that have not begun: one that
 * wakes up late finds its range taken. To claim an index and to learn which loop it belongs to
 * is one atomic operation, because a range is one word; the loop cannot end before the index is
 * done, so what the range says about it stays true until then.
 *
 * Threads that wait look at one word for a while, then they sleep: where other processes want
 * the cores, a thread that keeps looking takes them from the very thread it waits for.
 *
 * A worker on the caller's core only takes it from the caller. The system puts it there beside
 * busy processes, because two threads of which one sleeps count as one, and then leaves it
 * there: so a worker that is woken on the caller's core moves to another one, or, if it may run
 * on no other, sleeps again and is not woken before the caller has moved. */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/base.h"

/* ---- Ranges ------------------------------------------------------------- */

/* A range in one word: its next index and its end, how many threads the loop is for, and
 * whether the owner sleeps. */
enum { INDEX_BITS = 20, THREADS_AT = 2 * INDEX_BITS, MOST = (1 << INDEX_BITS) - 2 };
static const uint64_t index_mask = (1 << INDEX_BITS) - 1;
static const uint64_t asleep = (uint64_t)1 << 63;

/* On a cache line of its own: a line that another core changed takes some 0.2 us to come. What
 * two threads tell each other about a loop is in this one line, from the caller to the worker
 * and back. */
struct range {
    _Alignas(TN_ALIGN) _Atomic(uint64_t) word;
    _Atomic(uint64_t) ran; /* indices that this worker has run since it began, in any range */
    tn_work *work; /* these three are valid while an index is claimed and not yet done */
    void *arg;
    size_t first; /* which of the call the indices are counted from */
};

static uint64_t range_word(size_t first, size_t end, size_t threads)
{
    return (uint64_t)threads << THREADS_AT | (uint64_t)end << INDEX_BITS | first;
}

static size_t next_of(uint64_t word)
{
    return word & index_mask;
}

static bool has_indices(uint64_t word)
{
    return next_of(word) < (word >> INDEX_BITS & index_mask);
}

static size_t threads_of(uint64_t word)
{
    return (word & ~asleep) >> THREADS_AT;
}

static void run_claimed(const struct range *range, uint64_t word, size_t thread)
{
    range->work(range->arg, range->first + next_of(word), thread);
}

/* Only the owner may call it: a range is never given to a thread that its loop is not for. */
static size_t run_own(struct range *range, size_t thread)
{
    size_t ran = 0;

    while (has_indices(atomic_load_explicit(&range->word, memory_order_relaxed))) {
        const uint64_t word = atomic_fetch_add_explicit(&range->word, 1, memory_order_acquire);

        if (!has_indices(word))
            break;
        run_claimed(range, word, thread);
        ran++;
    }
    return ran;
}

/* The range may meanwhile belong to a later loop, also to one for fewer threads. */
static size_t run_others(struct range *range, size_t thread)
{
    uint64_t word = atomic_load_explicit(&range->word, memory_order_relaxed);
    size_t ran = 0;

    while (has_indices(word) && thread < threads_of(word)) {
        if (!atomic_compare_exchange_weak_explicit(&range->word, &word, word + 1,
                                                   memory_order_acquire, memory_order_relaxed))
            continue;
        run_claimed(range, word, thread);
        ran++;
        word = atomic_load_explicit(&range->word, memory_order_relaxed);
    }
    return ran;
}

/* ---- Waiting ------------------------------------------------------------ */

/* How long a thread looks before it sleeps, which costs more than a short wait: several times
 * as long as waits lately took. Where looking was in vain, as it mostly is while other
 * processes have the cores, it looks half as long next time; now and then it looks for long all
 * the same, to learn that the cores are free again. */
struct patience {
    double seconds;
    unsigned waits;
};
static const double patience_least = 5e-6, patience_most = 200e-6, patience_factor = 4.0;
enum { PATIENT_WAIT = 64 }; /* one in so many */
enum { LOOKS = 32 };        /* between two looks at the clock: about a microsecond */

/* A worker wakes up when the caller runs, and is of use only while it does: with a short time
 * slice it takes its turn at once, instead of when the process that has the core ends its own.
 */
static const double worker_slice = 5e-4;

static void pause_core(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

static double patience_for_now(struct patience *patience)
{
    return ++patience->waits % PATIENT_WAIT == 0 ? patience_most : patience->seconds;
}

/* Looks until it is so, but not for long. Returns whether it is. */
static bool spin(bool (*is_so)(const void *arg), const void *arg, struct patience *patience)
{
    double start = 0.0, waited = 0.0, limit = 0.0;

    for (int looks = 1; !is_so(arg); looks++) {
        if (looks % LOOKS == 0) {
            const double now = tn_seconds();

            if (looks == LOOKS) {
                start = now;
                limit = patience_for_now(patience);
            }
            waited = now - start;
            if (waited >= limit) {
                patience->seconds = fmax(patience_least, patience->seconds / 2.0);
                return false;
            }
        }
        pause_core();
    }
    patience->seconds = fmin(patience_most, fmax(patience->seconds, patience_factor * waited));
    return true;
}

/* ---- Pools -------------------------------------------------------------- */

struct pool;

/* Each line of the cache is written by one thread at every loop, or by none. */
struct worker {
    struct range range;
    _Alignas(TN_ALIGN) bool slept; /* and was not woken since; only the caller looks at it */
    _Atomic(int) kept_by;          /* the caller's core, which it could not leave, or -1 */
    _Alignas(TN_ALIGN) struct patience patience;
    struct pool *pool;
    size_t thread;
    pthread_mutex_t lock;
    pthread_cond_t woken;
};

/* The threads that one caller uses at a time; the caller is the first of them. Workers read
 * what seldom changes, from the second line of the cache on. */
struct pool {
    _Alignas(TN_ALIGN) atomic_bool taken;
    bool refused;             /* the system gives no more threads */
    size_t threads;           /* with the caller; 0: nobody has used it yet */
    uint64_t ran;             /* indices, by workers, in all loops before this one */
    struct patience patience; /* of the caller */
    _Alignas(TN_ALIGN) _Atomic(int) core; /* of the caller */
    struct worker *workers[TN_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t finished;
};

static const uint64_t waiting = (uint64_t)1 << 63; /* in a worker's `ran`: the caller sleeps */

/* As many as there are callers at the same time; the caller that finds none works alone. */
enum { POOLS = 64 };
static struct pool pools[POOLS];

/* A thread comes back to the pool it used last, whose caches know its data. */
static _Thread_local size_t last_pool;

/* In a loop of this thread, or of one that it works for: loops inside run on it alone. */
static _Thread_local bool inside;

/* ---- Workers ------------------------------------------------------------ */

/* Signals when the lock is free again: the thread may run at once, on this very core, and would
 * have to wait for it. */
static void wake(pthread_mutex_t *lock, pthread_cond_t *sleeping)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    pthread_cond_signal(sleeping);
}

static void report(struct worker *self, size_t ran)
{
    if (!(atomic_fetch_add_explicit(&self->range.ran, ran, memory_order_acq_rel) & waiting))
        return;
    wake(&self->pool->lock, &self->pool->finished);
}

static bool is_posted(const void *arg)
{
    const struct worker *const self = arg;

    return has_indices(atomic_load_explicit(&self->range.word, memory_order_acquire));
}

/* Sleeps unless the range has changed from `word`. Returns the word of a range that may have
 * been emptied by others since. */
static uint64_t sleep_on(struct worker *self, uint64_t word)
{
    if (!atomic_compare_exchange_strong_explicit(&self->range.word, &word, word | asleep,
                                                 memory_order_acq_rel, memory_order_acquire))
        return word;
    pthread_mutex_lock(&self->lock);
    while ((word = atomic_load_explicit(&self->range.word, memory_order_acquire)) & asleep)
        pthread_cond_wait(&self->woken, &self->lock);
    pthread_mutex_unlock(&self->lock);
    return word;
}

static uint64_t await_work(struct worker *self)
{
    spin(is_posted, self, &self->patience);
    const uint64_t word = atomic_load_explicit(&self->range.word, memory_order_acquire);

    return has_indices(word) ? word : sleep_on(self, word);
}

/* False if this thread runs on the caller's core and may run on no other. */
static bool leave_to_caller(struct worker *self)
{
    const int core = atomic_load_explicit(&self->pool->core, memory_order_relaxed);

    return core < 0 || tn_core() != core || tn_core_leave(core);
}

static void run_loop(struct worker *self, size_t threads)
{
    struct pool *const pool = self->pool;
    size_t ran = run_own(&self->range, self->thread);

    if (ran)
        report(self, ran);
    for (size_t i = 1; i < threads; i++) {
        ran = run_others(&pool->workers[(self->thread + i) % threads]->range, self->thread);
        if (ran)
            report(self, ran);
    }
}

static void *serve(void *arg)
{
    struct worker *const self = arg;

    inside = true;
    tn_time_slice(worker_slice);
    for (;;) {
        const uint64_t word = await_work(self);

        if (leave_to_caller(self)) {
            run_loop(self, threads_of(word));
            continue;
        }
        atomic_store_explicit(&self->kept_by, tn_core(), memory_order_relaxed);
        sleep_on(self, word);
        atomic_store_explicit(&self->kept_by, -1, memory_order_relaxed);
    }
    return NULL;
}

/* Signals are for the threads of the program, not for ours. */
static bool start_thread(struct worker *worker)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&thread, NULL, serve, worker) == 0;

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        pthread_detach(thread);
    return started;
}

/* The next worker; in a forked child there may already be memory for it. The first one is the
 * caller's and has no thread. */
static bool add_worker(struct pool *pool)
{
    struct worker **const place = &pool->workers[pool->threads];

    if (!*place)
        *place = aligned_alloc(TN_ALIGN, sizeof **place);
    if (!*place)
        return false;
    struct worker *const worker = *place;

    worker->pool = pool;
    worker->thread = pool->threads;
    worker->patience = (struct patience){patience_most, 0};
    worker->slept = false;
    atomic_init(&worker->kept_by, -1);
    atomic_init(&worker->range.word, 0);
    atomic_init(&worker->range.ran, 0);
    if (pool->threads == 0)
        return true;
    pthread_mutex_init(&worker->lock, NULL);
    pthread_cond_init(&worker->woken, NULL);
    return start_thread(worker);
}

/* ---- Callers ------------------------------------------------------------ */

/* A forked child has none of the threads. */
static void forget_threads(void)
{
    for (size_t i = 0; i < POOLS; i++) {
        atomic_store(&pools[i].taken, false);
        pools[i].threads = 0;
        pools[i].refused = false;
    }
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_threads);
}

static void pool_grow(struct pool *pool, size_t threads)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (pool->threads >= threads || pool->refused)
        return;
    pthread_once(&once, watch_forks);
    if (pool->threads == 0) {
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->finished, NULL);
        pool->patience = (struct patience){patience_most, 0};
        pool->ran = 0;
    }
    while (pool->threads < threads && !pool->refused) {
        if (add_worker(pool))
            pool->threads++;
        else
            pool->refused = true;
    }
}

static struct pool *pool_take(void)
{
    for (size_t i = 0; i < POOLS; i++) {
        const size_t at = (last_pool + i) % POOLS;

        if (!atomic_load_explicit(&pools[at].taken, memory_order_relaxed) &&
            !atomic_exchange_explicit(&pools[at].taken, true, memory_order_acquire)) {
            last_pool = at;
            return &pools[at];
        }
    }
    return NULL;
}

struct loop {
    tn_work *work;
    void *arg;
    size_t first, threads, count; /* not more threads than indices */
};

static void post(struct worker *worker, const struct loop *loop)
{
    const size_t i = worker->thread, n = loop->threads, each = loop->count / n,
                 over = loop->count % n;
    const size_t first = i * each + tn_min(i, over), end = (i + 1) * each + tn_min(i + 1, over);
    const uint64_t word = range_word(first, end, n);

    worker->range.work = loop->work;
    worker->range.arg = loop->arg;
    worker->range.first = loop->first;
    if (atomic_exchange_explicit(&worker->range.word, word, memory_order_acq_rel) & asleep)
        worker->slept = true;
}

static void wake_worker(struct worker *worker, int core)
{
    if (!worker->slept ||
        (core >= 0 && atomic_load_explicit(&worker->kept_by, memory_order_relaxed) == core))
        return;
    worker->slept = false;
    wake(&worker->lock, &worker->woken);
}

/* How many indices of this loop its workers have run; they run all that the caller does not. */
struct rest {
    struct pool *pool;
    uint64_t wanted;
};

static bool is_run(const void *arg)
{
    const struct rest *const rest = arg;
    uint64_t ran = 0;

    for (size_t i = 1; i < rest->pool->threads; i++)
        ran += atomic_load_explicit(&rest->pool->workers[i]->range.ran, memory_order_acquire) &
               ~waiting;
    return ran == rest->wanted;
}

static void await_workers(const struct rest *rest)
{
    struct pool *const pool = rest->pool;

    if (spin(is_run, rest, &pool->patience))
        return;
    pthread_mutex_lock(&pool->lock);
    for (size_t i = 1; i < pool->threads; i++)
        atomic_fetch_or_explicit(&pool->workers[i]->range.ran, waiting, memory_order_acq_rel);
    while (!is_run(rest))
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    for (size_t i = 1; i < pool->threads; i++)
        atomic_fetch_and_explicit(&pool->workers[i]->range.ran, ~waiting, memory_order_relaxed);
}

static void run_in_pool(struct pool *pool, struct loop loop)
{
    const int core = tn_core();

    loop.threads = tn_min(loop.threads, pool->threads);
    if (atomic_load_explicit(&pool->core, memory_order_relaxed) != core)
        atomic_store_explicit(&pool->core, core, memory_order_relaxed);
    /* The caller's first, and all before the first wake-up: a worker looks at each of the
     * others once. */
    for (size_t i = 0; i < loop.threads; i++)
        post(pool->workers[i], &loop);
    for (size_t i = 1; i < loop.threads; i++)
        wake_worker(pool->workers[i], core);
    size_t ran = run_own(&pool->workers[0]->range, 0);

    for (size_t i = 1; i < loop.threads; i++)
        ran += run_others(&pool->workers[i]->range, 0);
    pool->ran += loop.count - ran;
    await_workers(&(struct rest){pool, pool->ran});
}

static void run_alone(const struct loop *loop)
{
    for (size_t i = 0; i < loop->count; i++)
        loop->work(loop->arg, loop->first + i, 0);
}

static void run(const struct loop *loop)
{
    struct pool *const pool = loop->threads > 1 && !inside ? pool_take() : NULL;

    if (!pool) {
        run_alone(loop);
        return;
    }
    pool_grow(pool, loop->threads);
    inside = true;
    if (pool->threads > 1)
        run_in_pool(pool, *loop);
    else
        run_alone(loop);
    inside = false;
    atomic_store_explicit(&pool->taken, false, memory_order_release);
}

/* More indices than a range can have are several loops. */
void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    for (size_t first = 0; first < count; first += MOST) {
        const size_t n = tn_min(MOST, count - first);

        run(&(struct loop){work, arg, first, tn_min(threads, n), n});
    }
}
