/* SPDX-License-Identifier: MIT */
/* bench_peak.c - the limits of this machine, on one thread and on all.
 *
 * The bandwidth of each level of memory is measured on a block that fits into it but not into
 * the level before: half of every thread's L2, half of every L3 in use, and far more than L3.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_memory.h"
#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "tarn/tarn.h"

struct values {
    size_t threads;
    bool json;
};

static const struct args_option options[] = {
    {"threads", "N", ARGS_COUNT, "0", offsetof(struct values, threads), 0, 1024,
     "number of threads; 0: one thread, then all cores"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "print one JSON object per number of threads"},
    {0},
};

/* Results for one number of threads; NAN: not available. */
struct peak {
    size_t threads, l2_bytes, l3_bytes, memory_bytes;
    double fma_f32, fma_bf16, read_l2, read_l3, read_memory;
};

enum { COLUMNS_MAX = 2 };

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Bytes to read at each level; 0 if there is no such level. */
static void choose_sizes(struct peak *peak)
{
    const struct hardware_cache l2 = hardware_cache(2), l3 = hardware_cache(3);
    const size_t l3_used = (peak->threads + l3.sharers - 1) / l3.sharers;
    const size_t quarter = hardware_memory() / 4;

    peak->l2_bytes = larger(l2.bytes / 2, l2.bytes ? 4096 : 0) * peak->threads;
    peak->l3_bytes =
        l3.bytes ? larger(l3.bytes / 2 * l3_used, 2 * l2.bytes * peak->threads) : 0;
    peak->memory_bytes = larger((size_t)256 << 20, 4 * l3.bytes * l3_used);
    if (peak->memory_bytes > quarter)
        peak->memory_bytes = quarter;
}

static tarn_status measure_read(double *gbps, const float *memory, size_t bytes,
                                const char *cpu, size_t threads, tarn_error *err)
{
    *gbps = (double)NAN;
    return bytes ? tarn_measure_read(gbps, memory, bytes, cpu, threads, err) : TARN_OK;
}

static tarn_status measure(struct peak *peak, const float *memory, const char *cpu,
                           tarn_error *err)
{
    const size_t threads = peak->threads;
    tarn_status status = tarn_measure_fma_f32(&peak->fma_f32, cpu, threads, err);

    if (status == TARN_OK && tarn_measure_fma_bf16(&peak->fma_bf16, threads, NULL) != TARN_OK)
        peak->fma_bf16 = (double)NAN;
    if (status == TARN_OK)
        status = measure_read(&peak->read_l2, memory, peak->l2_bytes, cpu, threads, err);
    if (status == TARN_OK)
        status = measure_read(&peak->read_l3, memory, peak->l3_bytes, cpu, threads, err);
    if (status == TARN_OK)
        status =
            measure_read(&peak->read_memory, memory, peak->memory_bytes, cpu, threads, err);
    return status;
}

/* ---- output ------------------------------------------------------------- */

static void print_json(const struct peak *peak, const char *cpu)
{
    char name[128];
    json_t *const object = json_object();

    hardware_name(name, sizeof name);
    json_put_text(object, "processor", name);
    json_put_text(object, "cpu", cpu ? cpu : tarn_cpu_name(0));
    json_put_text(object, "matmul", tarn_matmul_backend());
    json_put_count(object, "threads", peak->threads);
    json_put_number(object, "fma_f32_gflops", peak->fma_f32);
    json_put_number(object, "fma_bf16_gflops", peak->fma_bf16);
    json_put_number(object, "read_l2_gbps", peak->read_l2);
    json_put_number(object, "read_l3_gbps", peak->read_l3);
    json_put_number(object, "read_gbps", peak->read_memory);
    json_put_count(object, "l2_bytes", peak->l2_bytes);
    json_put_count(object, "l3_bytes", peak->l3_bytes);
    json_put_count(object, "memory_bytes", peak->memory_bytes);
    json_print_line(object);
}

static void print_line(const char *what, const char *unit, const struct peak *peaks,
                       size_t count, size_t offset)
{
    printf("%-22s %-8s", what, unit);
    for (size_t i = 0; i < count; i++) {
        const double value = *(const double *)((const char *)&peaks[i] + offset);

        if (isfinite(value))
            printf(" %12.1f", value);
        else
            printf(" %12s", "none");
    }
    printf("\n");
}

static void print_table(const struct peak *peaks, size_t count, const char *cpu)
{
    char name[128];

    hardware_name(name, sizeof name);
    printf("%s, instruction set %s, built with %s\n\n%31s", name, cpu ? cpu : tarn_cpu_name(0),
           tarn_matmul_backend(), "");
    for (size_t i = 0; i < count; i++) {
        char head[32];

        snprintf(head, sizeof head, "%zu thread%s", peaks[i].threads,
                 peaks[i].threads == 1 ? "" : "s");
        printf(" %12s", head);
    }
    printf("\n");
    print_line("multiply-adds, f32", "GFLOP/s", peaks, count, offsetof(struct peak, fma_f32));
    print_line("multiply-adds, bf16", "GFLOP/s", peaks, count, offsetof(struct peak, fma_bf16));
    print_line("reading from L2", "GB/s", peaks, count, offsetof(struct peak, read_l2));
    print_line("reading from L3", "GB/s", peaks, count, offsetof(struct peak, read_l3));
    print_line("reading from memory", "GB/s", peaks, count, offsetof(struct peak, read_memory));
}

/* ---- the command -------------------------------------------------------- */

static size_t choose_columns(struct peak *peaks, size_t threads)
{
    const size_t all = tarn_threads_default();
    size_t count = 0;

    if (threads > 0) {
        peaks[count++].threads = threads;
    } else {
        peaks[count++].threads = 1;
        if (all > 1)
            peaks[count++].threads = all;
    }
    for (size_t i = 0; i < count; i++)
        choose_sizes(&peaks[i]);
    return count;
}

static int measure_and_report(const struct values *values, const char *cpu)
{
    struct peak peaks[COLUMNS_MAX] = {{0}};
    const size_t count = choose_columns(peaks, values->threads);
    const struct peak *const last = &peaks[count - 1];
    float *const memory =
        bench_block_new(larger(last->memory_bytes, larger(last->l2_bytes, last->l3_bytes)));
    tarn_status status = TARN_OK;
    tarn_error err;

    if (!memory) {
        fprintf(stderr, "tarn bench peak: not enough memory for the test block\n");
        return EXIT_FAILED;
    }
    for (size_t i = 0; status == TARN_OK && i < count; i++) {
        status = measure(&peaks[i], memory, cpu, &err);
        if (status == TARN_OK && values->json)
            print_json(&peaks[i], cpu);
    }
    free(memory);
    if (status != TARN_OK) {
        fprintf(stderr, "tarn bench peak: %s\n", err.text);
        return EXIT_FAILED;
    }
    if (!values->json)
        print_table(peaks, count, cpu);
    return EXIT_DONE;
}

static int run(void *given)
{
    const struct values *const values = given;
    const char *cpu;

    return hardware_cpu(&cpu) ? measure_and_report(values, cpu) : EXIT_USAGE;
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
    .values = sizeof(struct values),
    .run = run,
};
