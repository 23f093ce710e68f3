/* SPDX-License-Identifier: MIT */
/* frequencies.h - whether draws are as likely as they should be. */
#ifndef FREQUENCIES_H
#define FREQUENCIES_H

#include "support/testing.h"

/* How often each of n symbols came in `draws` draws, against its probability: each count within
 * five deviations of its own, with Bernstein's allowance for the long tail of a small count
 * (less likely to fail than exp(-12.5)), and all together: the sum of squares has the mean f
 * and the variance 2 f, f the number of symbols less one. */
void check_counts(const size_t *counts, const double *p, size_t n, size_t draws);

#endif
