/* SPDX-License-Identifier: MIT */
/* machine.h - what this processor is and what it can do at most.
 *
 * The measuring functions take a fraction of a second each and use the calling
 * process's threads. They allocate only where they say so. A figure is
 * the best of several runs: noise only ever slows a run down. */
#ifndef TARN_MACHINE_H
#define TARN_MACHINE_H

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Instruction sets that tarn has loops for and this processor runs, best first:
 * tarn_cpu_name(0) is what is used unless a caller asks for another; the last is
 * "portable"; NULL beyond it. */
TARN_API const char *tarn_cpu_name(size_t index);

/* The library that multiplies matrices where it is the fastest to: "oneDNN 2.6.3", or
 * "portable" in a build without. Products that tarn does faster by its own loops
 * (docs/decisions.md) do not go there. */
TARN_API const char *tarn_matmul_backend(void);

/* Threads that a plan with `threads = 0` uses. */
TARN_API size_t tarn_threads_default(void);

/* Fused multiply-adds in registers, in GFLOP/s (two flops each), over `threads`
 * threads (0: default) with the loops of `cpu` (NULL: best). */
TARN_API tarn_status tarn_measure_fma_f32(double *gflops, const char *cpu, size_t threads,
                                          tarn_error *err);

/* The same for products of bf16 pairs summed in f32. TARN_EMACHINE where the
 * processor has no such instruction. */
TARN_API tarn_status tarn_measure_fma_bf16(double *gflops, size_t threads, tarn_error *err);

/* Reads `memory` again and again, each thread its own share, in GB/s. The size
 * decides which level of the memory is measured. It must have been written, with ordinary
 * numbers: pages that do not exist yet are read faster, denormal floats added more slowly. */
TARN_API tarn_status tarn_measure_read(double *gbps, const void *memory, size_t bytes,
                                       const char *cpu, size_t threads, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
