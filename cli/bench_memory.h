/* SPDX-License-Identifier: MIT */
/* bench_memory.h - large blocks of memory, in huge pages where the system has them. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>

#include "tarn/status.h"

/* Zeroed, so that all pages are mapped before they are measured. NULL: not enough memory. To be
 * freed with free(). */
void *bench_block_new(size_t bytes);

/* TARN_ENOMEM, with the message "not enough memory for ..." in *err. */
tarn_status bench_no_memory(tarn_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Peak resident memory of this process, in bytes. */
double bench_resident_bytes(void);

#endif
