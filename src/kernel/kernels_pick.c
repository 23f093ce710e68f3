/* SPDX-License-Identifier: MIT */
/* kernels_pick.c - which table runs here. */
#include <string.h>

#include "kernel/kernels.h"
#include "tarn/machine.h"

extern const struct tn_kernels tn_kernels_avx512, tn_kernels_avx2, tn_kernels_neon,
    tn_kernels_wasm, tn_kernels_portable;

/* __builtin_cpu_supports asks the operating system too: it must save the wide registers. */
#ifdef TN_HAVE_AVX512
static bool has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("fma");
}
#endif

#ifdef TN_HAVE_AVX2
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}
#endif

static bool always(void)
{
    return true;
}

/* Best first; the last row runs everywhere. */
static const struct {
    const struct tn_kernels *table;
    bool (*runs)(void);
} rows[] = {
#ifdef TN_HAVE_AVX512
    {&tn_kernels_avx512, has_avx512},
#endif
#ifdef TN_HAVE_AVX2
    {&tn_kernels_avx2, has_avx2},
#endif
#ifdef TN_HAVE_NEON
    {&tn_kernels_neon, always},
#endif
#ifdef TN_HAVE_WASM
    {&tn_kernels_wasm, always},
#endif
    {&tn_kernels_portable, always},
};

const struct tn_kernels *tn_kernels_row(size_t index)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].runs() && index-- == 0)
            return rows[i].table;
    return NULL;
}

const struct tn_kernels *tn_kernels_pick(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].runs() && (!name || strcmp(name, rows[i].table->name) == 0))
            return rows[i].table;
    return NULL;
}

const char *tarn_cpu_name(size_t index)
{
    const struct tn_kernels *const table = tn_kernels_row(index);

    return table ? table->name : NULL;
}
