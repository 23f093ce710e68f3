/* SPDX-License-Identifier: MIT */
/* bench_peak.c - the limits of this machine, on one thread and on all.
 *
 * The bandwidth of each level of memory is measured on a block that fits into it but not into
 * the level before: half of every thread's L2, half of every L3 in use, far more than L3. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static const struct args_option options[] = {
    BENCH_THREADS("number of threads; 0: one thread, then all cores"),
    BENCH_JSON("number of threads"),
    BENCH_FILES,
    {0},
};

enum { L2, L3, MEMORY, LEVELS };

/* For one number of threads; NAN: not available. */
struct peak {
    size_t threads;
    size_t bytes[LEVELS]; /* to read at each level; 0: there is no such level */
    double read[LEVELS];  /* GB/s */
    double fma_f32, fma_bf16;
};

static void choose_sizes(struct peak *peak)
{
    const struct hardware_cache l2 = hardware_cache(2), l3 = hardware_cache(3);
    const size_t l3_used = (peak->threads + l3.sharers - 1) / l3.sharers;
    const size_t quarter = hardware_memory() / 4;

    peak->bytes[L2] = larger(l2.bytes / 2, l2.bytes ? 4096 : 0) * peak->threads;
    peak->bytes[L3] =
        l3.bytes ? larger(l3.bytes / 2 * l3_used, 2 * l2.bytes * peak->threads) : 0;
    peak->bytes[MEMORY] = larger((size_t)256 << 20, 4 * l3.bytes * l3_used);
    if (peak->bytes[MEMORY] > quarter)
        peak->bytes[MEMORY] = quarter;
}

static void list(struct bench_run *run)
{
    const size_t given = run->options->host.threads;
    const size_t count = given == 0 && run->threads > 1 ? 2 : 1;
    struct peak *const cases = bench_cases(run, count);

    cases[0].threads = given > 0 ? given : 1;
    cases[count - 1].threads = run->threads;
    for (size_t i = 0; i < count; i++)
        choose_sizes(&cases[i]);
    bench_title(run, "Multiply-adds and reading");
}

static void measure(struct bench_run *run, void *one)
{
    const char *const cpu = run->options->host.cpu;
    struct peak *const peak = one;
    const size_t most = larger(peak->bytes[MEMORY], larger(peak->bytes[L2], peak->bytes[L3]));
    float *const block = hardware_block(most);

    if (!block)
        fail("not enough memory for the test block of %zu bytes", most);
    must(tarn_measure_fma_f32(&peak->fma_f32, cpu, peak->threads, &failure));
    if (tarn_measure_fma_bf16(&peak->fma_bf16, peak->threads, NULL) != TARN_OK)
        peak->fma_bf16 = (double)NAN;
    for (size_t i = 0; i < LEVELS; i++) {
        peak->read[i] = (double)NAN;
        if (peak->bytes[i] > 0)
            must(tarn_measure_read(&peak->read[i], block, peak->bytes[i], cpu, peak->threads,
                                   &failure));
    }
    free(block);
}

static void report(const struct bench_run *run, const void *one)
{
    const struct peak *const peak = one;
    struct bench_record r = {0};

    bench_text(&r, "processor", NULL, run->processor);
    bench_text(&r, "cpu", NULL, run->cpu);
    bench_count(&r, "threads", "threads", peak->threads);
    bench_number(&r, "fma_f32_gflops", "f32, GFLOP/s", peak->fma_f32);
    bench_number(&r, "fma_bf16_gflops", "bf16, GFLOP/s", peak->fma_bf16);
    bench_number(&r, "read_l2_gbps", "L2, GB/s", peak->read[L2]);
    bench_number(&r, "read_l3_gbps", "L3, GB/s", peak->read[L3]);
    bench_number(&r, "read_gbps", "memory, GB/s", peak->read[MEMORY]);
    bench_count(&r, "l2_bytes", NULL, peak->bytes[L2]);
    bench_count(&r, "l3_bytes", NULL, peak->bytes[L3]);
    bench_count(&r, "memory_bytes", NULL, peak->bytes[MEMORY]);
    bench_report(run, &r);
}

const struct command bench_peak = {
    .name = "tarn bench peak",
    .summary = "measure the peak multiply-add rate and memory bandwidth",
    .help =
        "Measure the limits of this machine: peak multiply-add rate, and read bandwidth of the "
        "caches and of memory. " CPU_NOTE,
    .options = options,
    .examples = "tarn bench peak\n"
                "TARN_CPU=avx2 tarn bench peak --threads 1 --json\n",
    .values = sizeof(struct bench_options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct peak),
            .plot = {.x = "threads",
                     .x_label = "threads",
                     .series = "cpu",
                     .panels = {{"fma_f32_gflops", "multiply-adds, GFLOP/s", 1.0},
                                {"read_gbps", "reading from memory, GB/s", 1.0}}},
            .open_one = true,
            .list = list,
            .measure = measure,
            .report = report,
        },
};
