/* SPDX-License-Identifier: MIT */
/* machine.c - the limits that every speed is a fraction of.
 *
 * A run gives every thread one equal task. How long a task must be, so that starting threads is
 * nothing beside it, is found on one thread, of several tries: where other processes have the
 * cores, a run of several threads takes long however little they do. */
#include <math.h>

#include "kernel/host.h"
#include "kernel/matmul.h"

enum { RUNS = 16, TRIES = 3, BYTES_MIN = 1 << 16, SHARE_MIN = 1 << 12 };

static const double long_enough = 0.025; /* seconds */

/* One thread's work: `rounds` repetitions; returns what it did, in flops or bytes. */
struct load {
    double (*repeat)(const struct load *load, size_t share, size_t rounds);
    struct tn_host host;
    const float *memory; /* read: the shares lie behind each other */
    size_t share;        /* read: floats */
    size_t rounds;
    double done[TN_THREADS_MAX];
};

size_t tarn_threads_default(void)
{
    return tn_threads_available();
}

static tarn_status init_host(struct load *load, const char *cpu, size_t threads,
                             tarn_error *err)
{
    return tn_host_init(&load->host, &(tarn_host){.threads = threads, .cpu = cpu}, err);
}

static void run_share(void *arg, size_t share, size_t thread)
{
    struct load *const load = arg;

    (void)thread;
    load->done[share] = load->repeat(load, share, load->rounds);
}

static double run(struct load *load, size_t threads)
{
    const double start = tn_seconds();

    tn_parallel(threads, threads, run_share, load);
    return tn_seconds() - start;
}

static double best_run(struct load *load, size_t threads, int runs)
{
    double best = run(load, threads);

    for (int i = 1; i < runs; i++)
        best = fmin(best, run(load, threads));
    return best;
}

/* What all threads together do per second. */
static double best_rate(struct load *load)
{
    const size_t threads = load->host.threads;
    double done = 0.0;

    load->rounds = 1;
    while (best_run(load, 1, TRIES) < long_enough && load->rounds < SIZE_MAX / 2)
        load->rounds *= 2;
    const double best = best_run(load, threads, RUNS);

    for (size_t i = 0; i < threads; i++)
        done += load->done[i];
    return done / best;
}

/* ---- multiply-adds ------------------------------------------------------ */

static double repeat_f32(const struct load *load, size_t share, size_t rounds)
{
    (void)share;
    return load->host.kernels->burn(rounds);
}

tarn_status tarn_measure_fma_f32(double *gflops, const char *cpu, size_t threads,
                                 tarn_error *err)
{
    struct load load = {.repeat = repeat_f32};

    if (!gflops)
        return tn_fail(err, TARN_EINVAL, "gflops must not be NULL");
    const tarn_status status = init_host(&load, cpu, threads, err);

    if (status == TARN_OK)
        *gflops = 1e-9 * best_rate(&load);
    return status;
}

static double repeat_bf16(const struct load *load, size_t share, size_t rounds)
{
    (void)share;
    return load->host.kernels->burn_bf16(rounds);
}

tarn_status tarn_measure_fma_bf16(double *gflops, size_t threads, tarn_error *err)
{
    struct load load = {.repeat = repeat_bf16};

    if (!gflops)
        return tn_fail(err, TARN_EINVAL, "gflops must not be NULL");
    const tarn_status status = init_host(&load, NULL, threads, err);

    if (status != TARN_OK)
        return status;
    if (!tn_host_has_bf16(&load.host))
        return tn_fail(
            err, TARN_EMACHINE,
            "this processor, or this build of tarn, does not support bf16 dot products");
    *gflops = 1e-9 * best_rate(&load);
    return TARN_OK;
}

/* ---- memory ------------------------------------------------------------- */

static double repeat_read(const struct load *load, size_t share, size_t rounds)
{
    const float *const memory = load->memory + share * load->share;

    for (size_t i = 0; i < rounds; i++)
        load->host.kernels->read(memory, load->share);
    return (double)(load->share * sizeof(float)) * (double)rounds;
}

static tarn_status check_memory(const void *memory, size_t bytes, size_t threads,
                                tarn_error *err)
{
    const size_t least = tn_max(BYTES_MIN, threads * SHARE_MIN);

    if (!memory)
        return tn_fail(err, TARN_EINVAL, "memory must not be NULL");
    if ((uintptr_t)memory % sizeof(float) != 0)
        return tn_fail(err, TARN_EINVAL,
                       "memory is misaligned; its address must be a multiple of %zu",
                       sizeof(float));
    if (bytes < least)
        return tn_fail(err, TARN_EINVAL,
                       "bytes is %zu; it must be at least %zu for %zu threads", bytes, least,
                       threads);
    return TARN_OK;
}

tarn_status tarn_measure_read(double *gbps, const void *memory, size_t bytes, const char *cpu,
                              size_t threads, tarn_error *err)
{
    struct load load = {.repeat = repeat_read};

    if (!gbps)
        return tn_fail(err, TARN_EINVAL, "gbps must not be NULL");
    tarn_status status = init_host(&load, cpu, threads, err);

    if (status == TARN_OK)
        status = check_memory(memory, bytes, load.host.threads, err);
    if (status != TARN_OK)
        return status;

    /* Shares are whole passes of read(), whose widest vectors are 64 bytes, eight at a time. */
    const size_t skip = (size_t)(-(uintptr_t)memory % TN_ALIGN);
    const size_t pass = 8 * TN_ALIGN;

    load.memory = (const float *)((const char *)memory + skip);
    load.share = (bytes - skip) / load.host.threads / pass * pass / sizeof(float);
    *gbps = 1e-9 * best_rate(&load);
    return TARN_OK;
}
