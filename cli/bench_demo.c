/* SPDX-License-Identifier: MIT */
/* bench_demo.c - the paper's point in one small table. */
#include <stdio.h>

#include "bench_report.h"
#include "words.h"

const char demo_methods[] = "softmax;softmax-stored;linear";

enum { TILED, STORED, LINEAR };

void demo_head(const struct bench_machine *machine, const struct bench_row *row)
{
    char subject[128];

    report_subject(subject, sizeof subject, row);
    printf("One sequence through attention, %s,\non %zu thread%s of %s.\n\n", subject,
           machine->threads, machine->threads == 1 ? "" : "s", machine->processor);
    printf("%8s | %21s | %21s | %21s | %s\n", "", "softmax, stored  ", "softmax, tiled   ",
           "linear        ", "   linear is");
    printf("%8s | %10s %10s | %10s %10s | %10s %10s | %9s %9s\n", "length", "time", "memory",
           "time", "memory", "time", "memory", "faster", "smaller");
    printf("---------+-----------------------+-----------------------+-----------------------+"
           "--------------------\n");
}

static void print_method(const struct bench_row *row)
{
    char memory[32];

    words_bytes(memory, sizeof memory, (double)bench_row_peak_bytes(row));
    if (row->skipped)
        printf(" %10s %10s |", "-", memory);
    else
        printf(" %7.1f ms %10s |", 1e3 * bench_row_seconds(row), memory);
}

/* Faster than the faster softmax, smaller than the one that stores its matrix. */
void demo_row(const struct bench_row rows[DEMO_METHODS])
{
    const struct bench_row *const linear = &rows[LINEAR];
    const double faster = bench_row_seconds(&rows[TILED]) / bench_row_seconds(linear);
    const double smaller =
        (double)bench_row_peak_bytes(&rows[STORED]) / (double)bench_row_peak_bytes(linear);

    printf("%8zu |", linear->desc.queries);
    print_method(&rows[STORED]);
    print_method(&rows[TILED]);
    print_method(linear);
    printf(" %8.1fx %8.1fx\n", faster, smaller);
    fflush(stdout);
}
