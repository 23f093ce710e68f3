/* SPDX-License-Identifier: MIT */
/* time_slice.c - Linux from 6.12 on lets a thread that wakes up, and wants to run shorter than
 * the one that runs, run at once; without that it waits for up to 3 ms beside threads that
 * compute. Other systems go without: nothing here can fail. */
#define _GNU_SOURCE /* syscall() */
#include "base/base.h"

#if defined(__linux__) && !defined(__EMSCRIPTEN__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(SYS_sched_setattr) && defined(SYS_sched_getattr)

/* The system's `struct sched_attr`, which only some C libraries have. */
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

void tn_time_slice(double seconds)
{
    struct attributes now = {0};

    if (syscall(SYS_sched_getattr, 0, &now, sizeof now, 0) != 0)
        return;
    now.runtime = (uint64_t)(1e9 * seconds);
    (void)syscall(SYS_sched_setattr, 0, &now, 0);
}

#else

void tn_time_slice(double seconds)
{
    (void)seconds;
}

#endif
