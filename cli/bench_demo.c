/* SPDX-License-Identifier: MIT */
/* bench_demo.c - the table of tarn bench attention --demo. */
#include "attention_timing.h"
#include "words.h"

const char demo_methods[] = "softmax;softmax-stored;linear";

enum { TILED, STORED, LINEAR, METHODS };

static void print_head(const struct bench_run *run)
{
    printf("%s:\none sequence on %zu thread%s of %s.\n\n", run->title, run->threads,
           run->threads == 1 ? "" : "s", run->processor);
    printf("%8s | %21s | %21s | %21s | %s\n", "", "softmax, stored  ", "softmax, tiled   ",
           "linear        ", "   linear is");
    printf("%8s | %10s %10s | %10s %10s | %10s %10s | %9s %9s\n", "length", "time", "memory",
           "time", "memory", "time", "memory", "faster", "smaller");
    printf("---------+-----------------------+-----------------------+-----------------------+"
           "--------------------\n");
}

static void print_method(const struct attention_timing *t)
{
    char memory[32];

    words_bytes(memory, sizeof memory, (double)attention_timing_peak_bytes(t));
    if (t->skipped)
        printf(" %10s %10s |", "-", memory);
    else
        printf(" %7.1f ms %10s |", 1e3 * attention_timing_seconds(t), memory);
}

/* Faster than the faster softmax, smaller than the one that stores its matrix. */
void demo_put(const struct bench_run *run, const struct attention_timing *t)
{
    const size_t index = bench_case_index(run, t);
    const struct attention_timing *const methods = t - LINEAR;

    if (index == 0)
        print_head(run);
    if (index % METHODS != LINEAR)
        return;
    printf("%8zu |", t->desc.queries);
    print_method(&methods[STORED]);
    print_method(&methods[TILED]);
    print_method(t);
    printf(" %8.1fx %8.1fx\n",
           attention_timing_seconds(&methods[TILED]) / attention_timing_seconds(t),
           (double)attention_timing_peak_bytes(&methods[STORED]) /
               (double)attention_timing_peak_bytes(t));
    fflush(stdout);
}
