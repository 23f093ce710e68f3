/* SPDX-License-Identifier: MIT */
#include "bench_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "plot.h"

/* ---- Names -------------------------------------------------------------- */

/* The numbers of "fig1.svg" go to "fig1.csv". */
int bench_output_check(struct bench_output *o)
{
    const char *const csv = o->run->options->csv, *const plot = o->run->options->plot;

    if (csv && (!*csv || strlen(csv) >= sizeof o->path))
        return command_refuse(o->run->command, "--csv is '%.80s'; it must be a file name", csv);
    if (plot && (!plot_name_is_fit(plot) || strlen(plot) >= sizeof o->path))
        return command_refuse(o->run->command,
                              "--plot is '%.80s'; it must be a file name that ends in .svg or "
                              ".png",
                              plot);
    if (csv)
        snprintf(o->path, sizeof o->path, "%s", csv);
    else if (plot)
        snprintf(o->path, sizeof o->path, "%.*s.csv", (int)strlen(plot) - 4, plot);
    return ARGS_GO_ON;
}

/* ---- Files -------------------------------------------------------------- */

/* Rows go beside the CSV until all are there: those of an earlier run stay until then. A device
 * is written itself. */
static FILE *open_csv(struct bench_output *o)
{
    struct stat about;

    if (stat(o->path, &about) == 0 && !S_ISREG(about.st_mode))
        return fopen(o->path, "w");
    snprintf(o->temporary, sizeof o->temporary, "%s.tmp", o->path);
    return fopen(o->temporary, "w");
}

bool bench_output_open(struct bench_output *o)
{
    const char *const plot = o->run->options->plot, *wrong = NULL;

    if (*o->path && !(o->csv = open_csv(o)))
        wrong = o->path;
    else if (plot && !plot_is_writable(plot))
        wrong = plot;
    if (wrong)
        command_fail(o->run->command, "%s: %s", wrong, strerror(errno));
    return !wrong;
}

/* With all rows, or as if there had been none. */
static bool close_csv(struct bench_output *o, bool whole)
{
    if (!o->csv)
        return true;
    const bool written = !ferror(o->csv);
    bool good = fclose(o->csv) == 0 && written;

    o->csv = NULL;
    if (whole && good && *o->temporary)
        good = rename(o->temporary, o->path) == 0;
    if (!good)
        command_fail(o->run->command, "cannot write %s", o->path);
    if (*o->temporary && !(whole && good))
        remove(o->temporary);
    return good;
}

/* ---- Records ------------------------------------------------------------ */

static void print_head(const struct bench_output *o)
{
    const struct bench_run *const run = o->run;

    printf("%s, instruction set %s", run->processor, run->cpu);
    if (run->bench->has_peak)
        printf(", %zu thread%s, peak %.1f GFLOP/s", run->threads, run->threads == 1 ? "" : "s",
               run->fma_gflops);
    printf("\n%s.\n%s%s\n", run->title, run->bench->note ? run->bench->note : "",
           run->bench->note ? "\n" : "");
}

/* The records of a plot, and how many there are. */
static void keep(struct bench_output *o, const struct bench_record *record)
{
    if (o->count == o->room) {
        const size_t room = 2 * o->room + 64;
        struct bench_record *const more = realloc(o->records, room * sizeof *more);

        if (!more) {
            o->failed = true;
            return;
        }
        o->records = more;
        o->room = room;
    }
    o->records[o->count++] = *record;
}

void bench_output_put(struct bench_output *o, const struct bench_record *record)
{
    const bool is_first = o->count == 0, json = o->run->options->json;
    const bool prints = json || !o->run->quiet;

    keep(o, record);
    if (is_first && prints && !json) {
        print_head(o);
        bench_table_head(record);
    }
    if (is_first && o->csv)
        bench_csv_head(o->csv, record);
    if (o->csv)
        bench_csv_row(o->csv, record);
    if (prints)
        (json ? bench_json : bench_table_row)(record);
}

static size_t count_results(const struct bench_output *o)
{
    size_t results = 0;

    for (size_t i = 0; i < o->count; i++)
        results += !o->records[i].skipped;
    return results;
}

int bench_output_finish(struct bench_output *o)
{
    const char *const plot = o->run->options->plot;

    if (o->failed)
        return command_fail(o->run->command, "not enough memory for the results");
    if (count_results(o) == 0)
        return command_fail(o->run->command,
                            "everything was skipped; raise the limits or reduce the length");
    return close_csv(o, true) && (!plot || bench_plot_write(plot, o->run, o->records, o->count))
               ? EXIT_DONE
               : EXIT_FAILED;
}

void bench_output_free(struct bench_output *o)
{
    close_csv(o, false);
    free(o->records);
}
