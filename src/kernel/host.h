/* SPDX-License-Identifier: MIT */
/* host.h - what objects compute with: vector loops, threads and memory. Made once from what a
 * caller gave, and passed on by pointer; it must live as long as the plans made with it. */
#ifndef TN_HOST_H
#define TN_HOST_H

#include "base/base.h"
#include "kernel/kernels.h"
#include "tarn/machine.h"

struct tn_host {
    const struct tn_kernels *kernels;
    size_t threads;           /* at least 1 */
    tarn_allocator allocator; /* zeros: malloc() */
};

/* Refuses an instruction set that is not supported here, too many threads and an incomplete
 * allocator. */
tarn_status tn_host_init(struct tn_host *host, const tarn_host *given, tarn_error *err);

/* The same with another number of threads. */
static inline struct tn_host tn_host_with(const struct tn_host *host, size_t threads)
{
    return (struct tn_host){host->kernels, threads, host->allocator};
}

/* As a caller would have given it; valid as long as the host. */
static inline tarn_host tn_host_given(const struct tn_host *host)
{
    return (tarn_host){host->threads, host->kernels->name,
                       host->allocator.allocate ? &host->allocator : NULL};
}

#endif
