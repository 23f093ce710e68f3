/* SPDX-License-Identifier: MIT */
#include "support/kernel_list.h"

#ifdef TN_HAVE_WIDE
extern const struct tn_kernels tn_kernels_wide;
#endif

const struct tn_kernels *kernels_at(size_t i)
{
    size_t count = 0;

    while (tn_kernels_row(count))
        count++;
#ifdef TN_HAVE_WIDE
    if (i == count && tn_kernels_pick("avx2"))
        return &tn_kernels_wide;
#endif
    return tn_kernels_row(i);
}
