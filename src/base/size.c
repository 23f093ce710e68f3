/* SPDX-License-Identifier: MIT */
#include "base/base.h"

bool tn_size_product(size_t *out, const size_t *factors, size_t n)
{
    size_t product = 1;

    for (size_t i = 0; i < n; i++) {
        if (factors[i] && product > SIZE_MAX / factors[i])
            return false;
        product *= factors[i];
    }
    *out = product;
    return true;
}
