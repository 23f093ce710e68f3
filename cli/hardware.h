/* SPDX-License-Identifier: MIT */
/* hardware.h - what the operating system says of the machine, and what TARN_CPU says of it. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <stdbool.h>
#include <stddef.h>

/* "AMD EPYC 7713", or "unknown processor". */
void hardware_name(char *name, size_t size);

/* The cache of a level, 2 or 3, and how many processors share one. A common size if nobody
 * tells; 0 bytes where there is no such level. */
struct hardware_cache {
    size_t bytes, sharers;
};
struct hardware_cache hardware_cache(int level);

/* Bytes of memory; 8 GiB if nobody tells. */
size_t hardware_memory(void);

/* The instruction set that TARN_CPU asks for, NULL: none. False, after a message, if this
 * machine has none such. */
bool hardware_cpu(const char **cpu);

#endif
