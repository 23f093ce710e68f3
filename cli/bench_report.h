/* SPDX-License-Identifier: MIT */
/* bench_report.h - rows of the attention benchmark, for people and for programs. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdio.h>

#include "bench_row.h"

/* The machine and its limits, measured in the same process as the rows. */
struct bench_machine {
    char processor[128];
    const char *cpu; /* instruction set */
    size_t threads;
    double fma_gflops, read_gbps;
};

/* "forward and backward, causal, 8 heads of width 32" */
void report_subject(char *text, size_t size, const struct bench_row *row);

/* `label_width`: letters of the longest label. */
void report_table_head(const struct bench_machine *machine, const struct bench_row *row,
                       int label_width);
void report_table_row(const struct bench_machine *machine, const struct bench_row *row,
                      int label_width);

void report_json_row(const struct bench_machine *machine, const struct bench_row *row);

void report_csv_head(FILE *csv);
void report_csv_row(FILE *csv, const struct bench_machine *machine,
                    const struct bench_row *row);

/* ---- bench_demo.c ------------------------------------------------------- */

/* The methods of the demonstration, as --attention takes them: demo_row() wants their rows of
 * one length, in this order. */
extern const char demo_methods[];
enum { DEMO_METHODS = 3 };

void demo_head(const struct bench_machine *machine, const struct bench_row *row);
void demo_row(const struct bench_row rows[DEMO_METHODS]);

#endif
