/* SPDX-License-Identifier: MIT */
/* machine_loops.c - how long one vector loop takes at one width. */
#include <math.h>

#include "kernel/host.h"
#include "kernel/loops.h"

enum {
    RUNS = 3,
    PLACES = 4,        /* of the arrays in memory */
    PLACE_BYTES = 4160 /* from one place to the next: a page and a line of the cache */
};

static const double long_enough = 2e-5; /* seconds: short, so that a busy machine misses some */

const char *tarn_loop_name(size_t index)
{
    const struct tn_loop *const loop = tn_loop_row(index);

    return loop ? loop->name : NULL;
}

static double run(const struct tn_loop *loop, const struct tn_loop_arrays *arrays,
                  size_t rounds)
{
    const double start = tn_seconds();

    for (size_t i = 0; i < rounds; i++)
        loop->run(arrays);
    return tn_seconds() - start;
}

/* Seconds of one round, in the best of several runs. */
static double best_round(const struct tn_loop *loop, const struct tn_loop_arrays *arrays)
{
    size_t rounds = 1;
    double best = run(loop, arrays, rounds);

    while (best < long_enough)
        best = run(loop, arrays, rounds *= 2);
    for (int i = 0; i < RUNS; i++)
        best = fmin(best, run(loop, arrays, rounds));
    return best / (double)rounds;
}

/* Of a float, with the arrays at `memory`. Where they lie decides which of their lines evict
 * each other from the cache, which is not the loop's doing: callers try several places. */
static double nanoseconds_at(void *memory, size_t loop, size_t width,
                             const struct tn_kernels *kernels)
{
    struct tn_arena arena = tn_arena_over(memory);
    const struct tn_loop_arrays arrays = tn_loop_arrays_lay_out(kernels, width, &arena);

    return 1e9 * best_round(tn_loop_row(loop), &arrays) / (double)(arrays.rows * width);
}

static tarn_status check(const double *nanoseconds, size_t loop, size_t width, tarn_error *err)
{
    if (!nanoseconds)
        return tn_fail(err, TARN_EINVAL, "nanoseconds must not be NULL");
    if (!tn_loop_row(loop))
        return tn_fail(err, TARN_EUNKNOWN, "loop %zu does not exist; see tarn_loop_name()",
                       loop);
    if (width < 1 || width > TARN_LOOP_WIDTH_MAX)
        return tn_fail(err, TARN_EINVAL, "width is %zu; it must be from 1 to %d", width,
                       TARN_LOOP_WIDTH_MAX);
    return TARN_OK;
}

tarn_status tarn_measure_loop(double *nanoseconds, size_t loop, size_t width, const char *cpu,
                              tarn_error *err)
{
    struct tn_arena arena = tn_arena_over(NULL);
    struct tn_host host;
    tarn_status status = check(nanoseconds, loop, width, err);

    if (status != TARN_OK ||
        (status = tn_host_init(&host, &(tarn_host){.cpu = cpu}, err)) != TARN_OK)
        return status;
    tn_loop_arrays_lay_out(host.kernels, width, &arena);

    const size_t bytes = tn_arena_bytes(&arena) + (PLACES - 1) * PLACE_BYTES;
    char *const memory = tn_allocate(NULL, bytes);

    if (!memory)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for %zu bytes of arrays", bytes);
    *nanoseconds = (double)INFINITY;
    for (size_t place = 0; place < PLACES; place++)
        *nanoseconds = fmin(*nanoseconds, nanoseconds_at(memory + place * PLACE_BYTES, loop,
                                                         width, host.kernels));
    tn_release(NULL, memory);
    return TARN_OK;
}
