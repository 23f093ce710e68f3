/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "json_line.h"
#include "words.h"

/* ---- Cells -------------------------------------------------------------- */

static void add(struct bench_record *record, struct bench_cell cell)
{
    assert(record->count < BENCH_CELLS);
    record->cells[record->count++] = cell;
}

void bench_text(struct bench_record *record, const char *key, const char *title,
                const char *text)
{
    add(record, (struct bench_cell){key, title, BENCH_TEXT, text, 0.0});
}

void bench_count(struct bench_record *record, const char *key, const char *title, size_t count)
{
    add(record, (struct bench_cell){key, title, BENCH_COUNT, NULL, (double)count});
}

void bench_number(struct bench_record *record, const char *key, const char *title,
                  double number)
{
    add(record, (struct bench_cell){key, title, BENCH_NUMBER, NULL, number});
}

void bench_bytes(struct bench_record *record, const char *key, const char *title, double bytes)
{
    add(record, (struct bench_cell){key, title, BENCH_BYTES, NULL, bytes});
}

void bench_bool(struct bench_record *record, const char *key, bool truth)
{
    add(record, (struct bench_cell){key, NULL, BENCH_BOOL, NULL, truth});
}

void bench_scaled(struct bench_record *record, const char *key, double number,
                  const char *title, double scale)
{
    bench_number(record, key, NULL, number);
    bench_number(record, NULL, title, scale * number);
}

void bench_skipped(struct bench_record *record, const char *reason)
{
    bench_text(record, "skipped", NULL, reason);
    record->skipped = reason;
}

const struct bench_cell *bench_cell(const struct bench_record *record, const char *key)
{
    for (size_t i = 0; i < record->count; i++)
        if (record->cells[i].key && strcmp(record->cells[i].key, key) == 0)
            return &record->cells[i];
    return NULL;
}

/* ---- Table -------------------------------------------------------------- */

/* Columns are narrow, so that most tables fit into 80; the first one has names of methods. */
static int width_of(bool is_first, const struct bench_cell *cell)
{
    static const int least[] = {
        [BENCH_TEXT] = 11, [BENCH_COUNT] = 5, [BENCH_NUMBER] = 7, [BENCH_BYTES] = 8};
    const int title = (int)strlen(cell->title), width = least[cell->kind];

    if (is_first && cell->kind == BENCH_TEXT)
        return 16;
    return title > width ? title : width;
}

static void print_aligned(bool is_first, const struct bench_cell *cell, const char *text)
{
    printf("%s", is_first ? "" : " ");
    printf(cell->kind == BENCH_TEXT ? "%-*s" : "%*s", width_of(is_first, cell), text);
}

/* Four digits or so. */
static void number_text(char *text, size_t size, double number)
{
    const double most = fabs(number);

    if (!isfinite(number))
        snprintf(text, size, "-");
    else if (most < 0.1)
        snprintf(text, size, "%.3g", number);
    else
        snprintf(text, size, "%.*f",
                 most < 10.0    ? 3
                 : most < 100.0 ? 2
                 : most < 1e3   ? 1
                                : 0,
                 number);
}

static void print_cell(bool is_first, const struct bench_cell *cell)
{
    char text[32];

    if (cell->kind == BENCH_COUNT)
        snprintf(text, sizeof text, "%.0f", cell->number);
    else if (cell->kind == BENCH_BYTES)
        words_bytes(text, sizeof text, cell->number);
    else
        number_text(text, sizeof text, cell->number);
    print_aligned(is_first, cell, cell->kind == BENCH_TEXT ? cell->text : text);
}

void bench_table_head(const struct bench_record *record)
{
    bool is_first = true;

    for (size_t i = 0; i < record->count; i++)
        if (record->cells[i].title) {
            print_aligned(is_first, &record->cells[i], record->cells[i].title);
            is_first = false;
        }
    printf("\n");
}

static bool is_result(const struct bench_cell *cell)
{
    return cell->kind == BENCH_NUMBER || cell->kind == BENCH_BYTES;
}

void bench_table_row(const struct bench_record *record)
{
    bool is_first = true;

    for (size_t i = 0; i < record->count; i++)
        if (record->cells[i].title && !(record->skipped && is_result(&record->cells[i]))) {
            print_cell(is_first, &record->cells[i]);
            is_first = false;
        }
    printf("%s%s\n", record->skipped ? "  " : "", record->skipped ? record->skipped : "");
    fflush(stdout);
}

/* ---- For programs ------------------------------------------------------- */

static void put_json(json_t *object, const struct bench_cell *cell)
{
    switch (cell->kind) {
    case BENCH_TEXT:
        json_put_text(object, cell->key, cell->text);
        break;
    case BENCH_COUNT:
        json_put_count(object, cell->key, (size_t)cell->number);
        break;
    case BENCH_NUMBER:
    case BENCH_BYTES:
        json_put_number(object, cell->key, cell->number);
        break;
    case BENCH_BOOL:
        json_put_bool(object, cell->key, cell->number != 0.0);
    }
}

void bench_json(const struct bench_record *record)
{
    json_t *const object = json_object();

    for (size_t i = 0; i < record->count; i++)
        if (record->cells[i].key)
            put_json(object, &record->cells[i]);
    json_print_line(object);
}

/* A text may contain commas. */
static void put_csv(FILE *csv, const struct bench_cell *cell)
{
    if (cell->kind == BENCH_TEXT && cell->text)
        fprintf(csv, "\"%s\"", cell->text);
    else if (cell->kind == BENCH_COUNT)
        fprintf(csv, "%.0f", cell->number);
    else if (cell->kind != BENCH_TEXT && isfinite(cell->number))
        fprintf(csv, "%.7g", cell->number);
}

void bench_csv(FILE *csv, const struct bench_record *record, bool head)
{
    const char *between = "";

    for (size_t i = 0; i < record->count; i++) {
        const struct bench_cell *const cell = &record->cells[i];

        if (!cell->key)
            continue;
        fprintf(csv, "%s%s", between, head ? cell->key : "");
        between = ",";
        if (!head)
            put_csv(csv, cell);
    }
    fputc('\n', csv);
    fflush(csv);
}
