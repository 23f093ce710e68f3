/* SPDX-License-Identifier: MIT */
/* bench_output.c - where the results of a benchmark go: to standard output as they come, to a
 * CSV and a plot when all are there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"
#include "files.h"
#include "plot.h"

enum { PATH = TARN_PATH_SIZE };

static struct {
    struct bench_record *records;
    size_t count, room, results; /* results: records that were not skipped */
    FILE *csv;                   /* NULL: none */
    char path[PATH];             /* of the CSV */
    char temporary[PATH + 8];    /* that becomes it; "": it is written itself */
} output;

/* ---- Files -------------------------------------------------------------- */

static void remove_temporary(void)
{
    if (*output.temporary)
        remove(output.temporary);
}

/* Rows go beside the CSV until all are there: those of an earlier run stay until then. A device
 * is written itself. */
static void open_csv(void)
{
    struct stat about;
    const bool is_device = stat(output.path, &about) == 0 && !S_ISREG(about.st_mode);

    if (!is_device)
        snprintf(output.temporary, sizeof output.temporary, "%s.tmp", output.path);
    output.csv = fopen(is_device ? output.path : output.temporary, "w");
    if (!output.csv)
        fail("%s: %s", output.path, strerror(errno));
    atexit(remove_temporary);
}

/* The numbers of "fig1.svg" go to "fig1.csv". */
void bench_output_open(const struct bench_run *run)
{
    const char *const csv = run->options->csv, *const plot = run->options->plot;

    if (csv && (!*csv || strlen(csv) >= PATH))
        refuse("--csv is '%.80s'; it must be a file name", csv);
    if (plot && (!plot_name_is_fit(plot) || strlen(plot) >= PATH))
        refuse("--plot is '%.80s'; it must be a file name that ends in .svg or .png", plot);
    if (csv)
        snprintf(output.path, PATH, "%s", csv);
    else if (plot)
        snprintf(output.path, PATH, "%.*s.csv", (int)strlen(plot) - 4, plot);
    if (*output.path)
        open_csv();
    if (plot && !plot_is_writable(plot))
        fail("%s: %s", plot, strerror(errno));
}

static void finish_csv(void)
{
    if (!close_written(output.csv) ||
        (*output.temporary && rename(output.temporary, output.path) != 0))
        fail("cannot write %s", output.path);
    *output.temporary = '\0';
}

/* ---- Records ------------------------------------------------------------ */

static void print_head(const struct bench_run *run)
{
    printf("%s, instruction set %s", run->processor, run->cpu);
    if (run->bench->has_peak)
        printf(", %zu thread%s, peak %.1f GFLOP/s", run->threads, run->threads == 1 ? "" : "s",
               run->fma_gflops);
    printf("\n%s.\n%s%s\n", run->title, run->bench->note ? run->bench->note : "",
           run->bench->note ? "\n" : "");
}

/* For the plot. */
static void keep(const struct bench_record *record)
{
    if (output.count == output.room) {
        output.room = 2 * output.room + 64;
        output.records = realloc(output.records, output.room * sizeof *record);
        if (!output.records)
            fail("not enough memory for the results");
    }
    output.records[output.count++] = *record;
    output.results += !record->skipped;
}

void bench_report(const struct bench_run *run, const struct bench_record *record)
{
    const bool is_first = output.count == 0, json = run->options->json;
    const bool prints = json || !run->quiet;

    keep(record);
    if (is_first && prints && !json) {
        print_head(run);
        bench_table_head(record);
    }
    if (is_first && output.csv)
        bench_csv_head(output.csv, record);
    if (output.csv)
        bench_csv_row(output.csv, record);
    if (prints)
        (json ? bench_json : bench_table_row)(record);
}

void bench_output_finish(const struct bench_run *run)
{
    const char *const plot = run->options->plot;

    if (output.results == 0)
        fail("everything was skipped; raise the limits or reduce the length");
    if (output.csv)
        finish_csv();
    if (plot)
        bench_plot_write(plot, run, output.records, output.count);
    free(output.records);
}
