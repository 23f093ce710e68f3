/* SPDX-License-Identifier: MIT */
/* hardware.h - processor, caches, memory and clocks as the operating system reports them, and
 * the choice of an instruction set by TARN_CPU. */
#ifndef HARDWARE_H
#define HARDWARE_H

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

/* Peak resident memory of this process, in bytes. */
double hardware_resident(void);

/* A block in huge pages, where the system has them, and zeroed, so that all pages are mapped
 * before they are measured. NULL: not enough memory. To be freed with free(). */
void *hardware_block(size_t bytes);

#define THREADS_HELP "number of threads, 0 for all cores"
#define CPU_NOTE                                                                               \
    "The environment variable TARN_CPU selects the instruction set, such as portable or avx2."

/* The instruction set that TARN_CPU selects; NULL: the best one. Refuses one that is not
 * supported here. */
const char *hardware_cpu(void);

/* Seconds from any start; of all threads of the program, which other work on the machine
 * changes less. */
double seconds_now(void);
double cpu_seconds_now(void);

#endif
