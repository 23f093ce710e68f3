/* SPDX-License-Identifier: MIT */
/* shuffle.h - one place of a permutation, without the rest of it. */
#ifndef TN_SHUFFLE_H
#define TN_SHUFFLE_H

#include "base/base.h"

/* Where a permutation of 0 .. n-1 that `key` names puts i < n. */
size_t tn_shuffle(uint64_t key, size_t n, size_t i);

#endif
