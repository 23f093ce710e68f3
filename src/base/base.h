/* SPDX-License-Identifier: MIT */
/* base.h - failures, checked sizes, memory laid out twice, random numbers, threads, time.
 *
 * Knows no learning. Letters used everywhere above: B batch, N length, H heads, D query width,
 * C feature width, M value width, F model width, L layers. */
#ifndef TN_BASE_H
#define TN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/status.h"

/* ---- status.c ----------------------------------------------------------- */

/* Fills *err (if there is one) and returns `status`, so that a check is one statement. */
tarn_status tn_fail(tarn_error *err, tarn_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- allocate.c --------------------------------------------------------- */

/* An allocator that is NULL or all zeros: malloc(). */
void *tn_allocate(const tarn_allocator *allocator, size_t bytes);
void tn_release(const tarn_allocator *allocator, void *memory);

/* Whether the system has so many bytes. Asked right before calls of libraries that do not check
 * all that they allocate, and would end the process. */
bool tn_has_memory(size_t bytes);

/* An array of the system's memory with room for more than `count` elements of `size` bytes;
 * NULL, and the array stays as it was: there is no memory. */
void *tn_grow(void *array, size_t *room, size_t count, size_t size);

/* Refuses a caller's allocator that is incomplete; NULL is not. */
tarn_status tn_allocator_check(const tarn_allocator *allocator, tarn_error *err);

/* ---- Sizes -------------------------------------------------------------- */

/* The product of n factors, or false if it does not fit. */
bool tn_size_product(size_t *out, const size_t *factors, size_t n);

static inline size_t tn_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t tn_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

static inline size_t tn_round_up(size_t n, size_t multiple)
{
    return (n + multiple - 1) / multiple * multiple;
}

static inline size_t tn_blocks(size_t n, size_t block)
{
    return (n + block - 1) / block;
}

/* |stride|, without overflow for the least of them. */
static inline size_t tn_magnitude(ptrdiff_t stride)
{
    return stride < 0 ? (size_t)0 - (size_t)stride : (size_t)stride;
}

/* ---- arena.c ------------------------------------------------------------ */

enum { TN_ALIGN = 64 };

/* Memory handed out front to back. The function that lays a block out runs twice: with base
 * NULL it measures, with the real block it carves, so the two cannot disagree. */
struct tn_arena {
    char *base;
    size_t used; /* SIZE_MAX once a request did not fit in a size_t */
};

/* Starts at the first aligned byte of `memory`; NULL measures. */
struct tn_arena tn_arena_over(void *memory);

/* 64-byte aligned, uninitialised; NULL while measuring. */
void *tn_arena_alloc(struct tn_arena *arena, size_t count, size_t size);
float *tn_arena_floats(struct tn_arena *arena, size_t count);

/* Bytes to ask for, with room to align the start; SIZE_MAX if they do not fit. */
size_t tn_arena_bytes(const struct tn_arena *arena);

/* ---- random.c ----------------------------------------------------------- */

/* xoshiro256++ seeded through splitmix64: equal seeds give equal numbers on every machine. */
struct tn_random {
    uint64_t s[4];
};

void tn_random_seed(struct tn_random *random, uint64_t seed);
uint64_t tn_random_bits(struct tn_random *random);
double tn_random_uniform(struct tn_random *random); /* [0, 1) */
double tn_random_normal(struct tn_random *random);  /* mean 0, variance 1 */

/* splitmix64's end: one to one, and every bit of x decides about every bit of the result. */
uint64_t tn_random_mix(uint64_t x);

/* One step of a hash: seeding spreads every bit of its argument over the whole state. */
uint64_t tn_random_absorb(uint64_t hash, uint64_t word);

/* ---- threads.c ---------------------------------------------------------- */

enum { TN_THREADS_MAX = 1024 };

/* What "all threads" means: OMP_NUM_THREADS or, if that is not set, the processors that this
 * process may use. As it was when first asked, so that sizes asked for once stay true. */
size_t tn_threads_available(void);

/* ---- cores.c ------------------------------------------------------------ */

/* The core that the calling thread runs on; -1 where the system does not say. */
int tn_core(void);

/* Moves the calling thread away from a core, to which it does not come back before it leaves
 * another one. False if it may run nowhere else; true also where the system does not say or
 * does not let it move. */
bool tn_core_leave(int core);

/* How long this thread, and those that it starts from now on, want to run at a time, at least
 * 1e-4 seconds; 0: as the system thinks best. */
void tn_time_slice(double seconds);

/* ---- parallel.c --------------------------------------------------------- */

/* Calls work(arg, i, t) for every i < count from up to `threads` threads; t, which is below
 * `threads` and `count`, names the thread, for its scratch. Which thread runs which i is not
 * fixed, so the work may depend on t for scratch only. Returns when all are done. Any number of
 * threads may call it at once; a call from inside `work` runs on the calling thread alone. */
typedef void tn_work(void *arg, size_t i, size_t thread);
void tn_parallel(size_t threads, size_t count, tn_work *work, void *arg);

/* ---- clock.c ------------------------------------------------------------ */

double tn_seconds(void);     /* monotonic */
double tn_cpu_seconds(void); /* of all threads of the process */

#endif
