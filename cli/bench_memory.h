/* SPDX-License-Identifier: MIT */
/* bench_memory.h - large blocks as a program would have them that cares about speed. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

#include "tarn/status.h"

/* Zeroed, and there: a page that was never written does not exist yet. NULL if there is no such
 * memory. free() ends it. */
void *bench_block_new(size_t bytes);

/* TARN_ENOMEM, and the sentence "no memory for ..." into *err. */
tarn_status bench_no_memory(tarn_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The most that this process has had in memory, in bytes. */
double bench_resident_bytes(void);

#endif
