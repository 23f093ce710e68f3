/* SPDX-License-Identifier: MIT */
/* threads.c - how many threads there are to use. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getaffinity() */
#else
#define _POSIX_C_SOURCE 200809L
#endif
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"

static size_t processors(void)
{
#ifdef __linux__
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0)
        return (size_t)CPU_COUNT(&set);
#endif
    const long online = sysconf(_SC_NPROCESSORS_ONLN);

    return online > 0 ? (size_t)online : 1;
}

/* The first number of OMP_NUM_THREADS, which other libraries obey too; 0: it is not set. */
static size_t wanted_by_user(void)
{
    const char *const text = getenv("OMP_NUM_THREADS");
    const long number = text ? strtol(text, NULL, 10) : 0;

    return number > 0 ? (size_t)number : 0;
}

size_t tn_threads_available(void)
{
    static atomic_size_t answer;
    size_t known = atomic_load(&answer);

    if (known)
        return known;
    const size_t wanted = wanted_by_user();
    const size_t now = tn_min(wanted ? wanted : processors(), TN_THREADS_MAX);

    return atomic_compare_exchange_strong(&answer, &known, now) ? now : known;
}
