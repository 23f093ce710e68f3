/* SPDX-License-Identifier: MIT */
#include "kernel/host.h"

#include <stdio.h>
#include <string.h>

static tarn_status refuse_cpu(const char *name, tarn_error *err)
{
    char known[80] = "";

    for (size_t i = 0; tn_kernels_row(i); i++) {
        const size_t used = strlen(known);

        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "",
                 tn_kernels_row(i)->name);
    }
    return tn_fail(err, TARN_EUNKNOWN, "cpu: '%.40s' is not supported here; available: %s",
                   name, known);
}

tarn_status tn_host_init(struct tn_host *host, const tarn_host *given, tarn_error *err)
{
    *host =
        (struct tn_host){.kernels = tn_kernels_pick(given->cpu),
                         .threads = given->threads ? given->threads : tn_threads_available()};
    if (!host->kernels)
        return refuse_cpu(given->cpu, err);
    if (given->threads > TN_THREADS_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "threads is %zu; it must be from 1 to %d, or 0 for all", given->threads,
                       TN_THREADS_MAX);
    if (given->allocator)
        host->allocator = *given->allocator;
    return tn_allocator_check(given->allocator, err);
}
