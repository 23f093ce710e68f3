/* SPDX-License-Identifier: MIT */
/* kernel_list.h - every table of kernels that can be run here. */
#ifndef KERNEL_LIST_H
#define KERNEL_LIST_H

#include "kernel/kernels.h"

/* Those of tarn_cpu_name(), then the one of 16 lanes without AVX-512; NULL past the last. */
const struct tn_kernels *kernels_at(size_t i);

#endif
