/* SPDX-License-Identifier: MIT */
/* image_report.h - what tarn bench image found, for people and for programs. */
#ifndef IMAGE_REPORT_H
#define IMAGE_REPORT_H

#include "image_timing.h"

/* By the paper's names; linear is the first. */
struct image_method {
    tarn_table_row about;
    const char *attention, *method;
    bool counted; /* a number of flops is agreed */
};
extern const struct image_method image_methods[];

enum { IMAGE_ROWS_MAX = 64 };

struct image_row {
    size_t method, batch;
    struct image_timing timing;
};

struct image_bench {
    const char *preset, *precision, *cpu; /* cpu NULL: best */
    size_t length, threads, repeat;
    double budget;
    bool json;
    struct image_row rows[IMAGE_ROWS_MAX];
    size_t count;
    double peak; /* GFLOP/s */
};

void image_report(const struct image_bench *bench);

#endif
