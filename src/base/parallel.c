/* SPDX-License-Identifier: MIT */
/* parallel.c - the only file that knows OpenMP. Without it everything runs, on one thread. */
#include "base/base.h"

#ifdef _OPENMP
#include <omp.h>
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

void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    const int team = (int)tn_min(threads, count);

    if (team <= 1) {
        for (size_t i = 0; i < count; i++)
            work(arg, i, 0);
        return;
    }
    size_t next = 0;

    /* As schedule(dynamic, 1) does, for which clang's runtime allocates memory at every i. */
#pragma omp parallel num_threads(team)
    for (;;) {
        size_t i;

#pragma omp atomic capture
        i = next++;
        if (i >= count)
            break;
        work(arg, i, (size_t)omp_get_thread_num());
    }
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

void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    (void)threads;
    for (size_t i = 0; i < count; i++)
        work(arg, i, 0);
}

#endif
