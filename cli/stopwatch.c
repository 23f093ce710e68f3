/* SPDX-License-Identifier: MIT */
#include "stopwatch.h"

#include <time.h>

double stopwatch_seconds(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double stopwatch_cpu_seconds(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}
