/* SPDX-License-Identifier: MIT */
/* serial.c - parallel loops where there is one thread, and the clock where nothing waits. */
#include "base/base.h"

void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg)
{
    (void)threads;
    for (size_t i = 0; i < count; i++)
        work(arg, i, 0);
}

/* Only who waits for another process looks at the clock, and here there is none. */
double tn_seconds(void)
{
    return 0.0;
}
