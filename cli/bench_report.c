/* SPDX-License-Identifier: MIT */
#include "bench_report.h"

#include <math.h>

#include "json_line.h"

void report_subject(char *text, size_t size, const struct bench_row *row)
{
    const tarn_attention_desc *const d = &row->desc;
    char values[32] = "";

    if (d->value_width != d->query_width)
        snprintf(values, sizeof values, " and %zu", d->value_width);
    snprintf(text, size, "%s, %s, %zu head%s of width %zu%s, arrays %s",
             row->forward_only ? "forward" : "forward and backward",
             d->causal ? "causal" : "non-causal", d->heads, d->heads == 1 ? "" : "s",
             d->query_width, values, row->heads_first ? "(B, H, N, D)" : "(B, N, H, D)");
}

/* ---- table -------------------------------------------------------------- */

static void print_number(int width, double value)
{
    if (!isfinite(value))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, value < 10.0 ? 3 : value < 100.0 ? 2 : 1, value);
}

void report_table_head(const struct bench_machine *machine, const struct bench_row *row,
                       int label_width)
{
    char subject[128];

    report_subject(subject, sizeof subject, row);
    printf(
        "%s, instruction set %s, %zu thread%s\nPeak: %.1f GFLOP/s, read bandwidth %.1f GB/s\n",
        machine->processor, machine->cpu, machine->threads, machine->threads == 1 ? "" : "s",
        machine->fma_gflops, machine->read_gbps);
    printf("Attention, %s.\nMemory includes all arrays and buffers.\n\n", subject);
    printf("%8s %6s  %-*s %11s %12s %9s %11s %9s %8s\n", "length", "batch", label_width,
           "attention", "forward ms", "backward ms", "us/token", "MiB/sample", "GFLOP/s",
           "of peak");
}

void report_table_row(const struct bench_machine *machine, const struct bench_row *row,
                      int label_width)
{
    const double gflops = bench_row_gflops(row);

    printf("%8zu %6zu  %-*s", row->desc.queries, row->desc.batch, label_width, row->label);
    if (row->skipped) {
        printf("  %s\n", row->skipped);
    } else {
        print_number(11, 1e3 * row->forward_s);
        print_number(12, 1e3 * row->backward_s);
        print_number(9, bench_row_us_per_token(row));
        print_number(11, bench_row_bytes_per_sample(row) / 1048576.0);
        print_number(9, gflops);
        print_number(8, gflops / machine->fma_gflops);
        printf("\n");
    }
    fflush(stdout);
}

/* ---- JSON --------------------------------------------------------------- */

static void put_result(json_t *object, const struct bench_machine *machine,
                       const struct bench_row *row)
{
    const double gflops = bench_row_gflops(row);
    json_put_number(object, "forward_s", row->forward_s);
    json_put_number(object, "backward_s", row->backward_s);
    json_put_number(object, "us_per_token", bench_row_us_per_token(row));
    json_put_number(object, "seconds_per_sample", bench_row_seconds_per_sample(row));
    json_put_count(object, "peak_bytes", bench_row_peak_bytes(row));
    json_put_count(object, "extra_bytes", row->extra_bytes);
    json_put_number(object, "peak_bytes_per_sample", bench_row_bytes_per_sample(row));
    json_put_number(object, "gflops", gflops);
    json_put_number(object, "of_peak", gflops / machine->fma_gflops);
    json_put_text(object, "skipped", row->skipped);
}

void report_json_row(const struct bench_machine *machine, const struct bench_row *row)
{
    const tarn_attention_desc *const d = &row->desc;
    json_t *const object = json_object();

    json_put_text(object, "attention", row->label);
    json_put_text(object, "kind", d->kind);
    json_put_text(object, "feature_map", d->feature_map);
    json_put_bool(object, "causal", d->causal);
    json_put_count(object, "length", d->queries);
    json_put_count(object, "batch", d->batch);
    json_put_count(object, "heads", d->heads);
    json_put_count(object, "head_width", d->query_width);
    json_put_count(object, "value_width", d->value_width);
    json_put_text(object, "layout", row->heads_first ? "bhnd" : "bnhd");
    json_put_text(object, "cpu", machine->cpu);
    json_put_count(object, "threads", machine->threads);
    json_put_number(object, "fma_f32_gflops", machine->fma_gflops);
    json_put_number(object, "read_gbps", machine->read_gbps);
    put_result(object, machine, row);
    json_print_line(object);
}

/* ---- CSV ---------------------------------------------------------------- */

void report_csv_head(FILE *csv)
{
    fprintf(csv, "attention,causal,length,batch,heads,head_width,value_width,threads,forward_s,"
                 "backward_s,us_per_token,seconds_per_sample,peak_bytes,extra_bytes,"
                 "peak_bytes_per_sample,gflops,of_peak,skipped\n");
}

/* An empty field where there is no number. */
static void put_csv(FILE *csv, double value)
{
    if (isfinite(value))
        fprintf(csv, "%.7g", value);
    fputc(',', csv);
}

void report_csv_row(FILE *csv, const struct bench_machine *machine, const struct bench_row *row)
{
    const tarn_attention_desc *const d = &row->desc;
    const double gflops = bench_row_gflops(row);

    /* A spec may hold commas. */
    fprintf(csv, "\"%s\",%d,%zu,%zu,%zu,%zu,%zu,%zu,", row->label, d->causal, d->queries,
            d->batch, d->heads, d->query_width, d->value_width, machine->threads);
    put_csv(csv, row->forward_s);
    put_csv(csv, row->backward_s);
    put_csv(csv, bench_row_us_per_token(row));
    put_csv(csv, bench_row_seconds_per_sample(row));
    fprintf(csv, "%zu,%zu,", bench_row_peak_bytes(row), row->extra_bytes);
    put_csv(csv, bench_row_bytes_per_sample(row));
    put_csv(csv, gflops);
    put_csv(csv, gflops / machine->fma_gflops);
    fprintf(csv, "%s\n", row->skipped ? row->skipped : "");
    fflush(csv);
}
