/* SPDX-License-Identifier: MIT */
/* cores.c - which core a thread runs on, and moving it to another one. */
#ifdef __linux__
#define _GNU_SOURCE /* sched_getcpu(), sched_setaffinity() */
#endif
#include "base/base.h"

#ifdef __linux__
#include <sched.h>

int tn_core(void)
{
    return sched_getcpu();
}

/* Where this thread might run before it left a core, and where it may run since. */
static _Thread_local struct {
    bool used;
    cpu_set_t all, left;
} cores;

/* What somebody else has changed meanwhile, as taskset(1) does, counts. */
static bool find_cores(void)
{
    cpu_set_t now;

    if (sched_getaffinity(0, sizeof now, &now) != 0)
        return false;
    if (!cores.used || !CPU_EQUAL(&now, &cores.left))
        cores.all = now;
    cores.used = true;
    return true;
}

bool tn_core_leave(int core)
{
    if (core < 0 || core >= CPU_SETSIZE || !find_cores())
        return true; /* nothing is known of other cores */
    cores.left = cores.all;
    CPU_CLR((size_t)core, &cores.left);
    if (CPU_COUNT(&cores.left) == 0)
        return false;
    sched_setaffinity(0, sizeof cores.left, &cores.left); /* refused: it stays where it is */
    return true;
}

#else

int tn_core(void)
{
    return -1;
}

bool tn_core_leave(int core)
{
    (void)core;
    return true;
}

#endif
