/* SPDX-License-Identifier: MIT */
/* hardware.h - processor, caches and memory as the operating system reports them, and the
 * choice of an instruction set by TARN_CPU. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

/* "AMD EPYC 7713", or "unknown processor". */
void hardware_name(char *name, size_t size);

/* Size of the cache at a level, 2 or 3, and the number of processors that share it. A common
 * size if the system does not report it; 0 bytes if there is no such level. */
struct hardware_cache {
    size_t bytes, sharers;
};
struct hardware_cache hardware_cache(int level);

/* Bytes of memory; 8 GiB if the system does not report it. */
size_t hardware_memory(void);

#define THREADS_HELP "number of threads, 0 for all cores"
#define CPU_NOTE                                                                               \
    "The environment variable TARN_CPU selects the instruction set, such as portable or avx2."

/* The instruction set that TARN_CPU selects; NULL: the best one. False, after a message, if it
 * is not supported here. */
bool hardware_cpu(const char **cpu);

#endif
