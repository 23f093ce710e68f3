/* SPDX-License-Identifier: MIT */
#include "support/frequencies.h"

#include <math.h>

void check_counts(const size_t *counts, const double *p, size_t n, size_t draws)
{
    double square = 0.0, freedom = -1.0;

    for (size_t i = 0; i < n; i++) {
        const double mean = p[i] * (double)draws, off = (double)counts[i] - mean;

        if (p[i] == 0.0)
            assert_int_equal(counts[i], 0);
        else if (mean >= 5.0) {
            if (!(off * off <= 25.0 * (mean * (1.0 - p[i]) + fabs(off) / 3.0) + 1e-9))
                fail_msg("symbol %zu: %zu of %zu, not %g", i, counts[i], draws, mean);
            square += off * off / mean;
            freedom += 1.0;
        }
    }
    if (freedom >= 1.0 && !(square <= freedom + 5.0 * sqrt(2.0 * freedom) + 5.0))
        fail_msg("chi square %g for %g degrees of freedom", square, freedom);
}
