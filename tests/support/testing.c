/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <stdlib.h>

void *take(size_t count, size_t size)
{
    void *const memory = calloc(count ? count : 1, size ? size : 1);

    assert_non_null(memory);
    return memory;
}

size_t below(struct tn_random *random, size_t n)
{
    return (size_t)(tn_random_uniform(random) * (double)n);
}

size_t one_of(const size_t *values, size_t count, struct tn_random *random)
{
    return values[below(random, count)];
}

const char *forced_cpu(void)
{
    const char *const name = getenv("TARN_CPU");

    return name && *name ? name : NULL;
}

const struct tn_host *host_of(const struct tn_kernels *kernels, size_t threads)
{
    static _Thread_local struct tn_host hosts[100];
    const size_t count = threads ? threads : tn_threads_available();
    struct tn_host *host = hosts;

    assert_non_null(kernels);
    while (host->kernels && (host->kernels != kernels || host->threads != count))
        host++;
    assert_true(host < hosts + 99); /* the last stays empty */
    host->kernels = kernels;
    host->threads = count;
    return host;
}

const struct tn_host *forced_host(size_t threads)
{
    return host_of(tn_kernels_pick(forced_cpu()), threads);
}

void check_ok(tarn_status status, const tarn_error *err)
{
    if (status != TARN_OK)
        fail_msg("%s: %s", tarn_status_name(status), err ? err->text : "");
}
