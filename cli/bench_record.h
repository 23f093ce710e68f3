/* SPDX-License-Identifier: MIT */
/* bench_record.h - one row of results: written down once, printed as a row of a table, a JSON
 * object or a line of CSV. */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum bench_kind { BENCH_TEXT, BENCH_COUNT, BENCH_NUMBER, BENCH_BYTES, BENCH_BOOL };

struct bench_cell {
    const char *key;   /* in JSON and CSV; NULL: not there */
    const char *title; /* in the table; NULL: not there */
    enum bench_kind kind;
    const char *text;
    double number;
};

enum { BENCH_CELLS = 40 };

struct bench_record {
    struct bench_cell cells[BENCH_CELLS];
    size_t count;
    const char *skipped; /* why there are no results; NULL: there are */
};

/* Appends a cell. Texts are not copied; NULL is null in JSON. Numbers that are not finite are
 * null in JSON, empty in CSV and "-" in the table. */
void bench_text(struct bench_record *record, const char *key, const char *title,
                const char *text);
void bench_count(struct bench_record *record, const char *key, const char *title, size_t count);
void bench_number(struct bench_record *record, const char *key, const char *title,
                  double number);
void bench_bytes(struct bench_record *record, const char *key, const char *title, double bytes);
void bench_bool(struct bench_record *record, const char *key, bool truth);

/* A number that the table shows in another unit, `scale` times as large. */
void bench_scaled(struct bench_record *record, const char *key, double number,
                  const char *title, double scale);

/* The last cell, "skipped". If there is a reason, the table shows it instead of results. */
void bench_skipped(struct bench_record *record, const char *reason);

/* NULL: there is no such cell. */
const struct bench_cell *bench_cell(const struct bench_record *record, const char *key);

void bench_table_head(const struct bench_record *record);
void bench_table_row(const struct bench_record *record);
void bench_json(const struct bench_record *record);
void bench_csv_head(FILE *csv, const struct bench_record *record);
void bench_csv_row(FILE *csv, const struct bench_record *record);

#endif
