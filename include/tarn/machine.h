/* SPDX-License-Identifier: MIT */
/* machine.h - instruction sets, threads, and the peak performance of this machine.
 *
 * Each measurement takes a fraction of a second and runs on the threads of this process. A
 * figure is the best of several repetitions, because noise only ever slows one down.
 *
 * Everything that computes takes a tarn_host: how many threads, which instruction set, and
 * where memory comes from. */
#ifndef TARN_MACHINE_H
#define TARN_MACHINE_H

#include "tarn/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an object computes with. Zero is a valid default for every field. It is read when the
 * object is created: neither the string nor the tarn_allocator has to live longer. */
typedef struct tarn_host {
    size_t threads;                  /* 0: tarn_threads_default() */
    const char *cpu;                 /* instruction set, a tarn_cpu_name(); NULL: the best */
    const tarn_allocator *allocator; /* NULL: malloc() */
} tarn_host;

/* Instruction sets that both tarn and this processor support, best first. tarn_cpu_name(0) is
 * the default, the last one is "portable"; NULL past the last. */
TARN_API const char *tarn_cpu_name(size_t index);

/* Number of threads that `threads = 0` stands for. */
TARN_API size_t tarn_threads_default(void);

/* Measures fused multiply-adds in registers, in GFLOP/s (two operations each), on `threads`
 * threads (0: the default) with instruction set `cpu` (NULL: the best). */
TARN_API tarn_status tarn_measure_fma_f32(double *gflops, const char *cpu, size_t threads,
                                          tarn_error *err);

/* The same for bf16 dot products accumulated in f32. TARN_EMACHINE: this processor or this
 * build does not support them. */
TARN_API tarn_status tarn_measure_fma_bf16(double *gflops, size_t threads, tarn_error *err);

/* Measures read bandwidth in GB/s: all threads read `memory` repeatedly, each its own part. The
 * size decides which level of the memory hierarchy is measured. Fill the memory with normal
 * floats first: pages that were never written read too fast, denormal numbers too slowly. */
TARN_API tarn_status tarn_measure_read(double *gbps, const void *memory, size_t bytes,
                                       const char *cpu, size_t threads, tarn_error *err);

/* The vector loops that tarn is built on, by name; NULL beyond the last. */
TARN_API const char *tarn_loop_name(size_t index);

/* Loop `loop`, in the order of tarn_loop_name(), over rows of `width` floats, 1 to
 * TARN_LOOP_WIDTH_MAX, in the first-level cache: nanoseconds per float on the calling thread
 * with the instruction set `cpu` (NULL: best). Allocates its arrays and frees them. */
#define TARN_LOOP_WIDTH_MAX 4096
TARN_API tarn_status tarn_measure_loop(double *nanoseconds, size_t loop, size_t width,
                                       const char *cpu, tarn_error *err);

#ifdef __cplusplus
}
#endif
#endif
