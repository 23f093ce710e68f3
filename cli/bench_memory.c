/* SPDX-License-Identifier: MIT */
#define _DEFAULT_SOURCE /* madvise */
#include "bench_memory.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

/* Huge pages, where the system gives them for the asking: walking through many long arrays at
 * once otherwise waits for address translations, which is not what is measured. */
enum { HUGE_PAGE = 2 * 1024 * 1024 };

void *bench_block_new(size_t bytes)
{
    const size_t alignment = bytes >= HUGE_PAGE ? HUGE_PAGE : 64;

    if (bytes > SIZE_MAX - alignment)
        return NULL;
    const size_t rounded = (bytes / alignment + 1) * alignment;
    void *const block = aligned_alloc(alignment, rounded);

    if (!block)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE)
        madvise(block, rounded, MADV_HUGEPAGE);
#endif
    memset(block, 0, bytes);
    return block;
}

tarn_status bench_no_memory(tarn_error *err, const char *format, ...)
{
    const int begun = snprintf(err->text, sizeof err->text, "not enough memory for ");
    va_list args;

    va_start(args, format);
    vsnprintf(err->text + begun, sizeof err->text - (size_t)begun, format, args);
    va_end(args);
    err->status = TARN_ENOMEM;
    return err->status;
}

double bench_resident_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss; /* Linux counts in KiB */
}
